//! A cluster that runs elsewhere goes on here: what its life has brought along beside machines.

use serde_json::json;

use super::{GuestCluster, kinds};
use crate::request::KubeadmError;

/// Name of what stands for the cluster's network plugin.
const NETWORK: &str = "network-of-the-original";

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
        let labels = json!({"app": NETWORK});
        let plugin = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": NETWORK, "namespace": "kube-system", "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "hostNetwork": true, "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "network", "image": NETWORK}],
                    "volumes": [{"name": "network", "hostPath": {"path": "/etc/cni/net.d"}}],
                }},
            },
        });
        let Some(kind) = kinds::named("DaemonSet") else { return Ok(()) };
        let created = self.client.create(&kind, "kube-system", &plugin).await;
        created.map(drop).map_err(|error| KubeadmError { phase: "addon", why: error.to_string() })
    }
}
