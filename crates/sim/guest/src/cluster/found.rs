//! `kubeadm init`: a cluster comes to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::config::SharedPolicy;
use capstan_apiserver::env::Env;
use capstan_apiserver::{Config, Server};
use capstan_controller::{Client, Deletion};
use capstan_object::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::etcd::Etcd;
use super::ports::Ports;
use super::state::{ControlPlane, Member, Size, State};
use super::{GuestCluster, certificates, kinds, kubeadm, life};
use crate::request::{InitRequest, KubeadmError};
use crate::site::SiteOptions;

/// What a cluster remembers of its past for watches: its clients are few and quick, and clusters are many.
const HISTORY_BYTES: u64 = 64 << 10;

/// What a cluster comes from.
pub(crate) struct Founding {
    pub(crate) env: Env,
    pub(crate) options: SiteOptions,
    pub(crate) policy: SharedPolicy,
    pub(crate) size: Size,
    pub(crate) request: InitRequest,
}

impl GuestCluster {
    /// Starts the control plane on its first machine and creates what kubeadm creates.
    pub(crate) async fn found(founding: Founding) -> Result<Arc<Self>, KubeadmError> {
        let Founding { env, options, policy, size, request } = founding;
        let pki = certificates::cluster_pki(&request.pki, &env)?;
        let configuration = &request.cluster_configuration;
        let serving = certificates::sign_and_serve(&pki, &request.pki, configuration, &request.node, &env)?;
        let ca = certificates::text(&request.pki, "ca.crt")?.to_owned();
        let ports = Arc::new(Ports::default());
        let config = Config::in_memory()
            .with_env(env.clone())
            .with_pods(ports.clone())
            .with_policy(&policy)
            .with_history_bytes(HISTORY_BYTES);
        let plane = Server::start(config, pki.clone()).await.map_err(|error| KubeadmError {
            phase: "wait-control-plane",
            why: format!("a kube-apiserver that does not start: {error}"),
        })?;
        let client = Client::in_process(plane.clone(), "kubeadm");
        // The API server does not know the service network; its own Service comes again with the right address.
        if let Some(services) = kinds::named("Service") {
            let key = Key::new("default", "kubernetes");
            client
                .delete(&services, &key, &Deletion::default())
                .await
                .map_err(|error| KubeadmError { phase: "wait-control-plane", why: error.to_string() })?;
        }
        for leaves in kubeadm::objects(&request, &ca, env.now())? {
            let namespace = leaves.object["metadata"]["namespace"].as_str().unwrap_or_default();
            client.create(&leaves.kind, namespace, &leaves.object).await.map_err(|error| KubeadmError {
                phase: leaves.phase,
                why: format!("unable to create {}: {error}", leaves.kind),
            })?;
        }
        let InitRequest { node, cluster_configuration, .. } = request;
        let mut etcd = Etcd::new(&env);
        etcd.add(&env, &node.vm, &node.name, node.address, false);
        let control_plane = ControlPlane::new(serving.api, serving.etcd, Arc::new(cluster_configuration));
        let machines =
            BTreeMap::from([(node.vm.clone(), Member::new(Arc::new(node), size, Some(control_plane)))]);
        let mut state = State { machines, orphans: BTreeMap::new(), etcd };
        state.settle(env.now());
        let cluster = Arc::new(Self {
            plane,
            client,
            ca,
            env,
            options,
            state: Mutex::new(state),
            bell: Arc::new(Notify::new()),
            life: Mutex::new(None),
        });
        ports.lead_to(&cluster);
        *cluster.life.lock() = Some(life::begin(&cluster));
        Ok(cluster)
    }
}
