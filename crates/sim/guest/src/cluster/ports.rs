//! Ports of Pods: what listens there is etcd, on machines of the control plane.

use std::sync::{Arc, OnceLock, Weak};

use capstan_apiserver::{PodStreamError, PodStreams, Stream};
use futures::future::BoxFuture;
use rustls::ServerConfig;
use tokio::sync::watch;

use super::GuestCluster;
use super::members::MemberService;
use super::state::Door;

/// Where etcd's clients are served.
const ETCD: u16 = 2379;
/// Bytes that may be under way in a stream.
const BUFFER: usize = 16 * 1024;

/// Reaches the Pods of a cluster, once there is one.
#[derive(Default)]
pub(super) struct Ports(OnceLock<Weak<GuestCluster>>);

impl Ports {
    pub(super) fn lead_to(&self, cluster: &Arc<GuestCluster>) {
        // A cluster is founded once.
        let _ = self.0.set(Arc::downgrade(cluster));
    }
}

impl PodStreams for Ports {
    fn connect<'a>(
        &'a self,
        namespace: &'a str,
        pod: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, PodStreamError>> {
        Box::pin(async move {
            let cluster = self.0.get().and_then(Weak::upgrade).ok_or(PodStreamError::NotRunning)?;
            let node = pod.strip_prefix("etcd-").filter(|_| namespace == "kube-system" && port == ETCD);
            let (vm, tls, door) = cluster.etcd_on(node.ok_or(PodStreamError::Refused)?)?;
            let service = Arc::new(MemberService::new(Arc::downgrade(&cluster), vm.clone()));
            let (near, far) = tokio::io::duplex(BUFFER);
            let cluster = Arc::downgrade(&cluster);
            tokio::spawn(async move {
                tokio::select! {
                    () = capstan_etcd::serve(far, Some(tls), service) => {}
                    () = ended(cluster, vm, door) => {}
                }
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

/// Waits until etcd on a machine has stopped.
async fn ended(cluster: Weak<GuestCluster>, vm: String, mut door: watch::Receiver<Door>) {
    while door.changed().await.is_ok() {
        let Some(cluster) = cluster.upgrade() else { return };
        let state = cluster.state.lock();
        if !state.runs(&vm) || state.etcd.on(&vm).is_none() {
            return;
        }
    }
}

impl GuestCluster {
    /// How etcd on the machine of a Node is reached. The kubelet lends its ports, so it has to run too.
    fn etcd_on(
        &self,
        node: &str,
    ) -> Result<(String, Arc<ServerConfig>, watch::Receiver<Door>), PodStreamError> {
        let state = self.state.lock();
        let mut machines = state.machines.iter().filter(|(_, member)| member.node.name == node);
        let (vm, serving) = machines
            .find_map(|(vm, member)| {
                let serving = member.control_plane.as_ref().filter(|_| member.running && member.kubelet)?;
                Some((vm, serving))
            })
            .ok_or_else(|| PodStreamError::Failed("the kubelet does not answer".to_owned()))?;
        if state.etcd.on(vm).is_none() {
            return Err(PodStreamError::Refused);
        }
        Ok((vm.clone(), serving.etcd_tls.clone(), serving.door.subscribe()))
    }
}
