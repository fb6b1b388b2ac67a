//! The inventory of clusterctl, written as clusterctl would.
//!
//! `clusterctl move` rejects a target that lacks a provider of the source or has an older one, so entries exist
//! without `clusterctl init`.

use std::collections::BTreeSet;

use capstan_capi_types::clusterctl::{Provider, ProviderType};
use capstan_controller::{ApiError, Client, KindName, Patch};
use capstan_object::{Key, Object, Scope};
use capstan_provider_kit::Installed;
use serde_json::json;

use crate::controllers::Group;

/// The release of Cluster API that the controllers here correspond to.
pub const CLUSTER_API_RELEASE: &str = "v1.14.0";

/// The providers that groups of controllers correspond to; infrastructure providers add their own.
pub fn providers(groups: &BTreeSet<Group>) -> Vec<Installed> {
    let installed =
        |name, kind, namespace| Installed { name, kind, namespace, version: CLUSTER_API_RELEASE.to_owned() };
    groups
        .iter()
        .filter_map(|group| match group {
            Group::Core => Some(installed("cluster-api", ProviderType::Core, "capi-system")),
            Group::Bootstrap => {
                Some(installed("kubeadm", ProviderType::Bootstrap, "capi-kubeadm-bootstrap-system"))
            }
            Group::ControlPlane => {
                Some(installed("kubeadm", ProviderType::ControlPlane, "capi-kubeadm-control-plane-system"))
            }
            Group::Addons | Group::Infrastructure => None,
        })
        .collect()
}

/// Registers providers in the inventory. Unchanged entries are not written.
pub async fn register(client: &Client, providers: &[Installed]) -> Result<(), ApiError> {
    for provider in providers {
        let wanted = provider.entry();
        let key = wanted.key();
        match client.get::<Provider>(&key).await? {
            Some(current) if current.version == wanted.version => {}
            Some(_) => {
                let patch = Patch::Merge(json!({"version": wanted.version}));
                client.patch(&Provider::KIND.into(), &key, None, &patch).await?;
            }
            None => {
                ensure_namespace(client, provider.namespace).await?;
                client.create_object(&wanted).await?;
            }
        }
    }
    Ok(())
}

/// Creates a namespace unless it exists.
pub async fn ensure_namespace(client: &Client, name: &str) -> Result<(), ApiError> {
    let mut kind = KindName::namespaced("", "v1", "Namespace", "namespaces");
    kind.scope = Scope::Cluster;
    if client.get_raw(&kind, &Key::new("", name)).await?.is_some() {
        return Ok(());
    }
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match client.create(&kind, "", &body).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_clusterctls_names() {
        let names: Vec<String> = providers(&Group::ALL.into()).iter().map(Installed::label).collect();
        assert_eq!(names, ["cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm"]);
    }
}
