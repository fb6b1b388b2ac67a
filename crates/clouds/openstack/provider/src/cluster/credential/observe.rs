//! The application credentials of a cluster in Keystone, and the Secrets with the one in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_controller::{ObserveError, View};
use capstan_object::Key;
use capstan_openstack_client::identity::ApplicationCredential;
use capstan_openstack_types::v1alpha1::OpenStackClusterIdentity;
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_provider_kit::SecretOutline;
use jiff::Timestamp;

use super::cloud_config::Reach;
use super::current::Current;
use super::{ALLOWED, Fresh, FreshCredentials, ROLES, prefix, recorded, resources_name, secret_name, wanted};
use crate::error::CloudError;
use crate::mark::{self, Owner};
use crate::project::{Access, PENDING, SETTLED};

/// The credentials of a cluster. Empty for clusters that never had one.
#[derive(Debug, Clone, Default)]
pub struct CredentialState {
    /// Those in Keystone, by number.
    pub held: BTreeMap<u64, Held>,
    /// The Secret with the credential, whoever made it.
    pub secret: Option<Arc<SecretOutline>>,
    /// The Secret for a ClusterResourceSet, whoever made it.
    pub resources: Option<Arc<SecretOutline>>,
    /// The one that is in no Secret yet.
    pub fresh: Option<Fresh>,
    /// The OpenStackClusterIdentity that does not allow clusters to have credentials.
    pub forbidden_by: Option<String>,
    /// The operator's user.
    pub user: String,
    /// The roles that a cluster needs and the operator's token has, sorted.
    pub roles: Vec<String>,
    pub reach: Reach,
}

/// A credential in Keystone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    pub id: String,
    pub expires: Option<Timestamp>,
    /// Sorted.
    pub roles: Vec<String>,
}

impl Held {
    fn of(credential: &ApplicationCredential) -> Self {
        let mut roles: Vec<String> = credential.roles.iter().map(|role| role.name.clone()).collect();
        roles.sort();
        Self { id: credential.id.to_string(), expires: credential.expires_at.map(|time| time.0), roles }
    }
}

/// The identity of the cluster, if it is shared and keeps its credentials to itself.
fn forbidden_by(object: &OpenStackCluster, view: &View) -> Result<Option<String>, ObserveError> {
    let reference = &object.spec.identity_ref;
    if reference.kind != "ClusterIdentity" {
        return Ok(None);
    }
    let identity = view.get::<OpenStackClusterIdentity>(&Key::new("", reference.name.as_str()))?;
    let allows =
        |it: &OpenStackClusterIdentity| it.metadata.annotations.get(ALLOWED).is_some_and(|it| it == "true");
    Ok(Some(reference.name.clone()).filter(|_| !identity.as_deref().is_some_and(allows)))
}

pub(in crate::cluster) async fn observe(
    object: &OpenStackCluster,
    cluster: &str,
    (access, view): (&Access, &View),
    fresh: &FreshCredentials,
) -> Result<CredentialState, CloudError> {
    let meta = &object.metadata;
    if matches!(wanted(meta), Ok(None)) && recorded(meta).is_none() {
        return Ok(CredentialState::default());
    }
    let namespace = meta.namespace.as_str();
    let key = |name: String| Key::new(namespace, name.as_str());
    let token = access.client.token().await?;
    let has = |role: &&&str| token.roles().iter().any(|held| held.name == ***role);
    let mut state = CredentialState {
        held: BTreeMap::new(),
        secret: view.get(&key(secret_name(cluster)))?,
        resources: view.get(&key(resources_name(cluster)))?,
        fresh: fresh.get(&meta.key()),
        forbidden_by: forbidden_by(object, view)?,
        user: token.user().id.clone(),
        roles: ROLES.iter().filter(has).map(|role| (*role).to_owned()).collect(),
        reach: Reach::of(access.client.cloud()),
    };
    let mark = mark::of(meta);
    let prefix = prefix(namespace, cluster, &mark);
    let ours = |all: &[ApplicationCredential]| -> BTreeMap<u64, Held> {
        let number = |it: &ApplicationCredential| it.name.strip_prefix(&prefix)?.parse().ok();
        let ours = all.iter().filter(|it| mark::owner(&it.description, &mark) == Owner::Ours);
        ours.filter_map(|it| Some((number(it)?, Held::of(it)))).collect()
    };
    state.held = ours(&access.application_credentials(SETTLED).await?);
    let in_use = state.secret.as_deref().and_then(|secret| Current::of(object, secret));
    if let (Some(current), Some(kept)) = (&in_use, &state.fresh)
        && current.number >= kept.number
    {
        fresh.forget(&meta.key());
        state.fresh = None;
    }
    if in_use.is_some_and(|current| !state.held.contains_key(&current.number)) {
        // A list from before its creation does not prove that it was revoked.
        state.held = ours(&access.application_credentials(PENDING).await?);
    }
    Ok(state)
}
