//! Which credentials objects use, for whoever asks about all clouds at once: `doctor` and `orphans`.

use std::collections::BTreeSet;

use capstan_controller::{ApiError, Client};
use capstan_object::Key;
use capstan_openstack_client::config::Clouds as CloudsYaml;
use capstan_openstack_types::v1alpha1::{OpenStackClusterIdentity, OpenStackFloatingIPPool, OpenStackServer};
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackIdentityReference, OpenStackMachine};
use capstan_provider_kit::{Secret, served};

use crate::clouds::CLOUDS_YAML;

/// Credentials, and the first object that names them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CredentialUse {
    pub kind: &'static str,
    pub name: String,
    pub reference: OpenStackIdentityReference,
    /// `None` if there is no such OpenStackClusterIdentity.
    pub secret: Option<Key>,
}

/// The Secret that a reference leads to. Namespaces are not checked: nothing is created.
fn secret_of(
    reference: &OpenStackIdentityReference,
    namespace: &str,
    identities: &[OpenStackClusterIdentity],
) -> Option<Key> {
    if reference.kind != CLUSTER_IDENTITY {
        return Some(Key::new(namespace, reference.name.as_str()));
    }
    let identity = identities.iter().find(|it| it.metadata.name == reference.name)?;
    let secret = &identity.spec.secret_ref;
    Some(Key::new(secret.namespace.as_str(), secret.name.as_str()))
}

/// The Secret that a reference leads to; `None` if there is no such OpenStackClusterIdentity.
pub(crate) async fn secret(
    client: &Client,
    reference: &OpenStackIdentityReference,
    namespace: &str,
) -> Result<Option<Key>, ApiError> {
    let identities = served::<OpenStackClusterIdentity>(client, "").await?.unwrap_or_default();
    Ok(secret_of(reference, namespace, &identities))
}

/// The type of references to OpenStackClusterIdentities.
const CLUSTER_IDENTITY: &str = "ClusterIdentity";

#[derive(Default)]
struct Uses {
    identities: Vec<OpenStackClusterIdentity>,
    known: BTreeSet<(Option<Key>, String, String)>,
    all: Vec<CredentialUse>,
}

impl Uses {
    fn add(
        &mut self,
        kind: &'static str,
        (namespace, name): (&str, &str),
        reference: &OpenStackIdentityReference,
    ) {
        let secret = secret_of(reference, namespace, &self.identities);
        let credentials = (secret.clone(), reference.cloud_name.clone(), reference.region.clone());
        if self.known.insert(credentials) {
            self.all.push(CredentialUse {
                kind,
                name: name.to_owned(),
                reference: reference.clone(),
                secret,
            });
        }
    }
}

/// The credentials that objects of a namespace use, or of all if it is empty. Then also those of
/// OpenStackClusterIdentities that nothing refers to: a project outlives its last cluster.
pub(crate) async fn all(client: &Client, namespace: &str) -> Result<Vec<CredentialUse>, ApiError> {
    let identities = served::<OpenStackClusterIdentity>(client, "").await?.unwrap_or_default();
    let mut uses = Uses { identities: identities.clone(), ..Uses::default() };
    macro_rules! of {
        ($kind:ident, $reference:expr) => {
            for it in served::<$kind>(client, namespace).await?.unwrap_or_default() {
                let reference: fn(&$kind) -> Option<&OpenStackIdentityReference> = $reference;
                if let Some(reference) = reference(&it) {
                    let meta = &it.metadata;
                    uses.add(stringify!($kind), (&meta.namespace, &meta.name), reference);
                }
            }
        };
    }
    of!(OpenStackCluster, |it| Some(&it.spec.identity_ref));
    of!(OpenStackServer, |it| Some(&it.spec.identity_ref));
    of!(OpenStackMachine, |it| it.spec.identity_ref.as_ref());
    of!(OpenStackFloatingIPPool, |it| Some(&it.spec.identity_ref));
    if !namespace.is_empty() {
        return Ok(uses.all);
    }
    for identity in &identities {
        let name = identity.metadata.name.as_str();
        for cloud in clouds_of(client, identity).await? {
            let secret = &identity.spec.secret_ref;
            let secret = Some(Key::new(secret.namespace.as_str(), secret.name.as_str()));
            // Whoever uses it may choose a region.
            if !uses.known.iter().any(|(held, of, _)| *held == secret && *of == cloud) {
                let reference = OpenStackIdentityReference {
                    kind: CLUSTER_IDENTITY.to_owned(),
                    name: name.to_owned(),
                    cloud_name: cloud,
                    ..OpenStackIdentityReference::default()
                };
                uses.add("OpenStackClusterIdentity", ("", name), &reference);
            }
        }
    }
    Ok(uses.all)
}

/// The clouds of an identity. One without a name if they cannot be read: using it reports why.
async fn clouds_of(client: &Client, identity: &OpenStackClusterIdentity) -> Result<Vec<String>, ApiError> {
    let secret = &identity.spec.secret_ref;
    let key = Key::new(secret.namespace.as_str(), secret.name.as_str());
    let content = client.get::<Secret>(&key).await?;
    let text = content.and_then(|content| content.text(CLOUDS_YAML).ok());
    let names = text.and_then(|text| CloudsYaml::parse(&text, None, None).ok()).map(|clouds| clouds.names());
    Ok(names.filter(|names| !names.is_empty()).unwrap_or_else(|| vec![String::new()]))
}
