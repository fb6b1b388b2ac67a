//! The credential in use. The Secret that holds it says which one it is.

use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_provider_kit::SecretOutline;
use jiff::Timestamp;

/// On the Secrets: the number of the credential in them.
pub(super) const NUMBER: &str = "capstan.dev/openstack-application-credential-number";
/// On the Secrets: when they got it.
pub(super) const SINCE: &str = "capstan.dev/openstack-application-credential-since";
/// On the Secrets: the user in Keystone that it belongs to.
pub(super) const USER: &str = "capstan.dev/openstack-application-credential-user";

/// The credential in a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Current {
    pub number: u64,
    pub since: Timestamp,
    pub user: String,
}

impl Current {
    /// Of a Secret that was made for the cluster.
    pub fn of(cluster: &OpenStackCluster, secret: &SecretOutline) -> Option<Self> {
        let annotations = &secret.metadata.annotations;
        is_ours(cluster, secret).then_some(())?;
        Some(Self {
            number: annotations.get(NUMBER)?.parse().ok()?,
            since: annotations.get(SINCE)?.parse().ok()?,
            user: annotations.get(USER)?.clone(),
        })
    }
}

/// The Secret was made for the cluster.
pub(super) fn is_ours(cluster: &OpenStackCluster, secret: &SecretOutline) -> bool {
    secret.metadata.owner_references.iter().any(|owner| owner.uid == cluster.metadata.uid)
}
