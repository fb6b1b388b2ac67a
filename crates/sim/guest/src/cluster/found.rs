//! `kubeadm init`: a cluster comes to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::env::Env;
use capstan_apiserver::plane::{Config, Plane};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::etcd::Etcd;
use super::{ControlPlane, Door, GuestCluster, Member, State, certificates};
use crate::request::{InitRequest, KubeadmError};
use crate::site::SiteOptions;

/// What a cluster comes from.
pub(crate) struct Founding {
    pub(crate) env: Env,
    pub(crate) options: SiteOptions,
    pub(crate) request: InitRequest,
}

impl GuestCluster {
    /// Starts the control plane on its first machine.
    pub(crate) async fn found(founding: Founding) -> Result<Arc<Self>, KubeadmError> {
        let Founding { env, options, request } = founding;
        let pki = certificates::cluster_pki(&request.pki, &env)?;
        let tls = certificates::serving(&pki, &request.pki)?;
        let config = Config::in_memory().with_env(env.clone());
        let plane = Plane::start(config, pki.clone()).await.map_err(|error| KubeadmError {
            phase: "wait-control-plane",
            why: format!("a kube-apiserver that does not start: {error}"),
        })?;
        let mut etcd = Etcd::new(&env);
        etcd.add(&env, &request.node.name, request.node.address, false);
        let member = Member {
            node: request.node.name.clone(),
            running: true,
            kubelet: true,
            control_plane: Some(ControlPlane { tls, door: watch::Sender::new(Door::Closed) }),
        };
        let mut state = State { machines: BTreeMap::from([(request.node.vm.clone(), member)]), etcd };
        state.settle();
        let ca = certificates::text(&request.pki, "ca.crt")?.to_owned();
        Ok(Arc::new(Self { plane, ca, env, options, state: Mutex::new(state) }))
    }
}
