//! State of a restored cluster that is not in its machines.

use capstan_controller::{List, ListOptions};
use serde_json::{Value, json};

use super::actors::would_install_network;
use super::{GuestCluster, kinds};
use crate::request::KubeadmError;

/// Name of the DaemonSet that stands for the cluster's CNI.
const NETWORK: &str = "recorded-cni";
/// Name of the DaemonSet that stands for an assumed CNI.
const ASSUMED: &str = "assumed-cni";

impl GuestCluster {
    /// Sets whether a machine's kubelet reports, and that its CNI is installed.
    pub(crate) fn resume(&self, vm: &str, reports: bool) {
        self.change(|state| {
            if let Some(member) = state.machines.get_mut(vm) {
                member.network = true;
                member.kubelet = reports;
            }
        });
    }

    /// Gives nodes that join later a CNI, in place of the original's.
    pub(crate) async fn install_recorded_cni(&self) -> Result<(), KubeadmError> {
        self.install_cni(NETWORK).await
    }

    /// Gives nodes a CNI that is not part of any manifest.
    pub(crate) async fn install_assumed_cni(&self) -> Result<(), KubeadmError> {
        self.install_cni(ASSUMED).await
    }

    /// Whether the assumed CNI is the only one: no DaemonSet would install another.
    pub async fn lacks_cni(&self) -> bool {
        let Some(kind) = kinds::named("DaemonSet") else { return false };
        let found: Result<List<Value>, _> = self.client.list(&kind, "", &ListOptions::default()).await;
        let Ok(found) = found else { return false };
        let mut plugins =
            found.items.iter().filter(|set| would_install_network(&set["spec"]["template"])).peekable();
        plugins.peek().is_some() && plugins.all(|set| set["metadata"]["name"] == ASSUMED)
    }

    async fn install_cni(&self, name: &str) -> Result<(), KubeadmError> {
        let labels = json!({"app": name});
        let plugin = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "hostNetwork": true, "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "network", "image": name}],
                    "volumes": [{"name": "network", "hostPath": {"path": "/etc/cni/net.d"}}],
                }},
            },
        });
        let Some(kind) = kinds::named("DaemonSet") else { return Ok(()) };
        let created = self.client.create(&kind, "kube-system", &plugin).await;
        created.map(drop).map_err(|error| KubeadmError { phase: "addon", why: error.to_string() })
    }
}
