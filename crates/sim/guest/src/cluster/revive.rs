//! A cluster that runs elsewhere goes on here: what its life has brought along beside machines.

use capstan_controller::{List, ListOptions};
use serde_json::{Value, json};

use super::life::would_install_network;
use super::{GuestCluster, kinds};
use crate::request::KubeadmError;

/// Name of what stands for the cluster's network plugin.
const NETWORK: &str = "network-of-the-original";
/// Name of what stands for a network plugin that nobody has brought yet.
const ASSUMED: &str = "network-that-is-assumed";

impl GuestCluster {
    /// Says of a machine whether its kubelet still reports, and that its network was installed long ago.
    pub(crate) fn resume(&self, vm: &str, reports: bool) {
        self.change(|state| {
            if let Some(member) = state.machines.get_mut(vm) {
                member.network = true;
                member.kubelet = reports;
            }
        });
    }

    /// Has nodes that join later get a network, as those before them did from a plugin that is not here.
    pub(crate) async fn stand_in_for_network(&self) -> Result<(), KubeadmError> {
        self.stand_in(NETWORK).await
    }

    /// Has nodes get a network that nobody brings.
    pub(crate) async fn assume_network(&self) -> Result<(), KubeadmError> {
        self.stand_in(ASSUMED).await
    }

    /// Whether nobody has brought the network that is assumed: no DaemonSet would install one.
    pub async fn lacks_network(&self) -> bool {
        let Some(kind) = kinds::named("DaemonSet") else { return false };
        let found: Result<List<Value>, _> = self.client.list(&kind, "", &ListOptions::default()).await;
        let Ok(found) = found else { return false };
        let mut plugins =
            found.items.iter().filter(|set| would_install_network(&set["spec"]["template"])).peekable();
        plugins.peek().is_some() && plugins.all(|set| set["metadata"]["name"] == ASSUMED)
    }

    async fn stand_in(&self, name: &str) -> Result<(), KubeadmError> {
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
