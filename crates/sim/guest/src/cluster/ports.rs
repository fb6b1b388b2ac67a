//! Ports of Pods: etcd and the API server listen on control plane machines.

use std::sync::{Arc, OnceLock, Weak};

use capstan_streams::{PodStreamError, PodStreams, Stream};
use futures::future::BoxFuture;
use rustls::ServerConfig;
use tokio::sync::watch;

use super::GuestCluster;
use super::members::MemberService;
use super::state::{ControlPlane, ListenerState, State};
use crate::site::API_PORT;

const ETCD: u16 = 2379;
/// Bytes in flight per stream.
const BUFFER: usize = 16 * 1024;

/// Connects to Pods of a cluster, once it exists.
#[derive(Default)]
pub(super) struct Ports(OnceLock<Weak<GuestCluster>>);

impl Ports {
    pub(super) fn lead_to(&self, cluster: &Arc<GuestCluster>) {
        // A cluster is initialized once.
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
            let node_of = |component: &str| {
                let node = pod.strip_prefix(component).filter(|_| namespace == "kube-system");
                node.ok_or(PodStreamError::Refused)
            };
            let (near, far) = tokio::io::duplex(BUFFER);
            match port {
                API_PORT => {
                    let vm = cluster.api_on(node_of("kube-apiserver-")?)?;
                    tokio::spawn(cluster.serve(vm, far));
                }
                ETCD => {
                    let (vm, tls, listener) = cluster.etcd_on(node_of("etcd-")?)?;
                    let service = Arc::new(MemberService::new(Arc::downgrade(&cluster), vm.clone()));
                    let cluster = Arc::downgrade(&cluster);
                    tokio::spawn(async move {
                        tokio::select! {
                            () = capstan_etcd::serve(far, Some(tls), service) => {}
                            () = ended(cluster, vm, listener) => {}
                        }
                    });
                }
                _ => return Err(PodStreamError::Refused),
            }
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

/// Waits until etcd on a machine has stopped.
async fn ended(cluster: Weak<GuestCluster>, vm: String, mut listener: watch::Receiver<ListenerState>) {
    while listener.changed().await.is_ok() {
        let Some(cluster) = cluster.upgrade() else { return };
        let state = cluster.state.lock();
        if !state.runs(&vm) || state.etcd.on(&vm).is_none() {
            return;
        }
    }
}

impl GuestCluster {
    /// The machine of a Node, if its API server is reachable.
    fn api_on(&self, node: &str) -> Result<String, PodStreamError> {
        let state = self.state.lock();
        let (vm, _) = control_plane_on(&state, node)?;
        match state.listener(vm) {
            ListenerState::Open => Ok(vm.to_owned()),
            ListenerState::Broken | ListenerState::Closed => Err(PodStreamError::Refused),
        }
    }

    /// The connection to etcd on the machine of a Node.
    fn etcd_on(
        &self,
        node: &str,
    ) -> Result<(String, Arc<ServerConfig>, watch::Receiver<ListenerState>), PodStreamError> {
        let state = self.state.lock();
        let (vm, serving) = control_plane_on(&state, node)?;
        if state.etcd.on(vm).is_none() {
            return Err(PodStreamError::Refused);
        }
        Ok((vm.to_owned(), serving.etcd_tls.clone(), serving.listener.subscribe()))
    }
}

/// The control plane machine of a Node. Port forwarding goes through its kubelet, which must run too.
fn control_plane_on<'a>(state: &'a State, node: &str) -> Result<(&'a str, &'a ControlPlane), PodStreamError> {
    let mut machines = state.machines.iter().filter(|(_, member)| member.node.name == node);
    machines
        .find_map(|(vm, member)| {
            let serving = member.control_plane.as_ref().filter(|_| member.running && member.kubelet)?;
            Some((vm.as_str(), serving))
        })
        .ok_or_else(|| PodStreamError::Failed("the kubelet does not respond".to_owned()))
}
