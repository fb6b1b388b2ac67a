//! `kubeadm join` on the side of the cluster: etcd, the machine, its Node.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::state::{ControlPlane, Member, Size};
use super::{GuestCluster, certificates};
use crate::request::{Files, KubeadmError, NodeRequest};

/// How long kubeadm waits for a kubelet to register.
const REGISTRATION: Duration = Duration::from_secs(5 * 60);

/// A machine that has discovered its cluster and may join.
pub(crate) struct Joining {
    pub(crate) node: Arc<NodeRequest>,
    pub(crate) size: Size,
    /// `/etc/kubernetes/pki` of a machine of the control plane.
    pub(crate) control_plane: Option<Files>,
    pub(crate) configuration: Arc<Value>,
}

impl GuestCluster {
    /// Members of etcd that do not respond; kubeadm adds no member while there are any.
    pub(crate) fn dead_members(&self) -> Vec<String> {
        let state = self.state.lock();
        let dead = state.etcd.dead(|vm| state.runs(vm));
        dead.into_iter().map(|member| member.client_url.clone()).collect()
    }

    /// Adds a machine: signs its certificates, adds its etcd member, starts its kubelet.
    pub(crate) fn admit(&self, joining: Joining) -> Result<(), KubeadmError> {
        let Joining { node, size, control_plane, configuration } = joining;
        let control_plane = match control_plane {
            None => None,
            Some(files) => {
                let serving =
                    certificates::sign_and_serve(self.plane.pki(), &files, &configuration, &node, &self.env)?;
                Some(ControlPlane::new(serving.api, serving.etcd, configuration))
            }
        };
        self.change(|state| {
            if control_plane.is_some() {
                if !state.has_quorum() {
                    return Err(KubeadmError {
                        phase: "etcd-join",
                        why: "error creating local etcd static pod manifest file: etcdserver: request timed out"
                            .to_owned(),
                    });
                }
                // First a learner, then a voter when it has caught up, which takes no time here.
                state.etcd.add(&self.env, &node.vm, &node.name, node.address, true);
                state.etcd.promote(&node.vm);
            }
            state.orphans.remove(&node.name);
            state.machines.insert(node.vm.clone(), Member::new(node, size, control_plane));
            Ok(())
        })
    }

    /// Waits until a kubelet has registered its Node.
    pub(crate) async fn registered(&self, node: &str) -> Result<(), KubeadmError> {
        let store = self.plane.store();
        let waiting = async {
            while store.get("/nodes", node).is_none() {
                store.reached(store.revision() + 1).await;
            }
        };
        tokio::time::timeout(REGISTRATION, waiting).await.map_err(|_| KubeadmError {
            phase: "kubelet-wait-bootstrap",
            why: "failed while waiting for TLS bootstrap: context deadline exceeded".to_owned(),
        })
    }
}
