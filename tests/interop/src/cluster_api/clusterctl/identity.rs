//! Identities of machines that must survive a move.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::own::{Bed, NAMESPACE};
use crate::api::Api;

/// The machines of a plane: objects, Nodes and instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// Names of Machines, with their provider ID.
    pub(super) machines: BTreeMap<String, String>,
    /// Names of Nodes, with their UID.
    pub(super) nodes: BTreeMap<String, String>,
    /// Instance ids at the site.
    pub(super) instances: BTreeSet<String>,
}

impl Identity {
    /// Reads them from the plane, the workload cluster and the site.
    pub(super) async fn of(bed: &Bed<'_>, plane: &Api, workload: &Path) -> Result<Self> {
        let workload = Api::from_kubeconfig(workload)?;
        let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/machines");
        Ok(Self {
            machines: named(plane, &path, "/spec/providerID").await?,
            nodes: named(&workload, "/api/v1/nodes", "/metadata/uid").await?,
            instances: bed.site.machines().await?,
        })
    }

    /// Whether it contains everything of `other`.
    pub(super) fn has_all_of(&self, other: &Self) -> bool {
        let kept = |mine: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>| {
            theirs.iter().all(|(name, id)| mine.get(name) == Some(id))
        };
        kept(&self.machines, &other.machines)
            && kept(&self.nodes, &other.nodes)
            && self.instances.is_superset(&other.instances)
    }
}

async fn named(api: &Api, path: &str, pointer: &str) -> Result<BTreeMap<String, String>> {
    let list = api.get(path).await?.success()?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = list["items"].as_array().context("no items")?;
    Ok(items.iter().map(|item| (text(item.pointer("/metadata/name")), text(item.pointer(pointer)))).collect())
}
