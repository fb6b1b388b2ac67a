//! The application credential of a cluster: what its cloud controller manager and CSI drivers log in with, so that the
//! operator's credentials need not be in the workload.
//!
//! ```text
//! annotation ─▶ credential N in Keystone ─▶ Secrets refer to N ─▶ N-1 goes a while later
//!                 │ secret: shown once, kept in memory until it is in the Secrets
//!                 └ lost with the process ─▶ N is deleted, N+1 is made
//! ```
//!
//! Names have a number that is never used again, so that a creation whose answer was lost is recognized.

mod call;
mod cloud_config;
mod current;
mod decide;
mod observe;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_object::{Key, ObjectMeta};
use capstan_openstack_client::Secret;
use jiff::SignedDuration;
use parking_lot::Mutex;

pub(super) use call::{create, delete};
pub(super) use decide::{keep, removal};
pub use observe::CredentialState;
pub(super) use observe::observe;

/// On OpenStackClusters: the cluster has an application credential, which is replaced after this time.
pub const ROTATION: &str = "capstan.dev/openstack-application-credential";
/// On OpenStackClusterIdentities, with the value `true`: clusters that use it may have application credentials. Without it
/// nothing of its user gets into other namespaces.
const ALLOWED: &str = "capstan.dev/openstack-application-credentials-allowed";
/// On OpenStackClusters: the number of the next application credential.
const NEXT: &str = "capstan.dev/openstack-application-credential-next";

/// What a cluster needs of a project. Roles that the operator's token does not have are left out.
const ROLES: [&str; 3] = ["_member_", "load-balancer_member", "member"];

/// Tokens live for hours: replacing more often gains nothing.
const SHORTEST: SignedDuration = SignedDuration::from_hours(1);
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// How long a replaced credential stays at most, so that the workload can take over the new one.
const LONGEST_GRACE: SignedDuration = SignedDuration::from_hours(24);

/// How often a credential is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotation {
    Never,
    Every(SignedDuration),
}

impl Rotation {
    /// How long a replaced credential stays.
    fn grace(self) -> SignedDuration {
        match self {
            Self::Never => LONGEST_GRACE,
            Self::Every(time) => (time / 4).min(LONGEST_GRACE),
        }
    }
}

/// How often the annotation has the credential replaced; `None` without one.
pub(super) fn wanted(meta: &ObjectMeta) -> Result<Option<Rotation>, String> {
    let Some(text) = meta.annotations.get(ROTATION) else { return Ok(None) };
    let wrong = || {
        format!(
            "annotation {ROTATION} is {text:?}: use hours or days from 1h to 3650d, such as 30d, or never"
        )
    };
    if text == "never" {
        return Ok(Some(Rotation::Never));
    }
    let (number, hours) = match (text.strip_suffix('h'), text.strip_suffix('d')) {
        (Some(number), _) => (number, 1),
        (_, Some(number)) => (number, 24),
        _ => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let time = SignedDuration::from_hours(i64::from(number) * hours);
    match (SHORTEST..=LONGEST).contains(&time) {
        true => Ok(Some(Rotation::Every(time))),
        false => Err(wrong()),
    }
}

/// The number that the next credential has at least; `None` if there never was one.
fn recorded(meta: &ObjectMeta) -> Option<u64> {
    Some(meta.annotations.get(NEXT)?.parse().unwrap_or(1))
}

/// The names of a cluster's credentials but for the number. Users are shared by management clusters: the mark identifies theirs.
fn prefix(namespace: &str, cluster: &str, mark: &str) -> String {
    format!("capstan-{namespace}-{cluster}-{mark}-")
}

/// The Secret with `clouds.yaml` and `cloud.conf`.
fn secret_name(cluster: &str) -> String {
    format!("{cluster}-workload-cloud-config")
}

/// The Secret that a ClusterResourceSet can apply in the workload.
fn resources_name(cluster: &str) -> String {
    format!("{cluster}-workload-cloud-config-resources")
}

/// A credential whose secret is in no Secret yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Fresh {
    pub number: u64,
    pub id: String,
    pub secret: Secret,
}

/// Credentials that were made by this process and are in no Secret yet, by OpenStackCluster: one each.
#[derive(Clone, Default)]
pub(super) struct FreshCredentials(Arc<Mutex<BTreeMap<Key, Fresh>>>);

impl FreshCredentials {
    fn put(&self, cluster: Key, fresh: Fresh) {
        self.0.lock().insert(cluster, fresh);
    }

    fn get(&self, cluster: &Key) -> Option<Fresh> {
        self.0.lock().get(cluster).cloned()
    }

    pub(super) fn forget(&self, cluster: &Key) {
        self.0.lock().remove(cluster);
    }
}
