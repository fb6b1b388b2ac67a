//! The CRDs of upstream Cluster API and of the providers for CloudStack and OpenStack, from their modules.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::bed::install;
use crate::peers::catalog::{
    CAPC, CAPC_MODULE, CAPO, CAPO_MODULE, CLUSTER_API, CLUSTER_API_MODULE, CLUSTER_API_TEST_MODULE,
};
use crate::peers::module_dir;

/// One served version of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
    pub has_status: bool,
    pub schema: Value,
}

impl Kind {
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    pub fn collection(&self, namespace: &str) -> String {
        let scope = if self.namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        format!("/apis/{}/{}/{scope}{}", self.group, self.version, self.plural)
    }

    /// For example `DevCluster.v1beta2`.
    pub fn label(&self) -> String {
        format!("{}.{}", self.kind, self.version)
    }
}

/// Every CRD, without conversion webhooks.
pub fn definitions() -> Result<Vec<Value>> {
    let capi = format!("v{CLUSTER_API}");
    let folders = [
        module_dir(CLUSTER_API_MODULE, &capi)?.join("core/config/crd/bases"),
        module_dir(CLUSTER_API_MODULE, &capi)?.join("bootstrap/kubeadm/config/crd/bases"),
        module_dir(CLUSTER_API_MODULE, &capi)?.join("controlplane/kubeadm/config/crd/bases"),
        module_dir(CLUSTER_API_TEST_MODULE, &capi)?.join("infrastructure/docker/config/crd/bases"),
        module_dir(CAPC_MODULE, &format!("v{CAPC}"))?.join("config/crd/bases"),
        module_dir(CAPO_MODULE, &format!("v{CAPO}"))?.join("config/crd/bases"),
    ];
    let mut all = Vec::new();
    for folder in folders {
        let mut found = install::documents_in(&folder)?;
        found
            .iter_mut()
            .for_each(|definition| definition["spec"]["conversion"] = json!({"strategy": "None"}));
        all.extend(found);
    }
    Ok(all)
}

/// The served versions of CRDs.
pub fn served(definitions: &[Value]) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for definition in definitions {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().map(String::from).context("a CRD lacks a name");
        for version in
            spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true)
        {
            kinds.push(Kind {
                group: text(&spec["group"])?,
                version: text(&version["name"])?,
                kind: text(&spec["names"]["kind"])?,
                plural: text(&spec["names"]["plural"])?,
                namespaced: spec["scope"] == "Namespaced",
                has_status: version["subresources"]["status"].is_object(),
                schema: version["schema"]["openAPIV3Schema"].clone(),
            });
        }
    }
    Ok(kinds)
}
