//! `kubeadm init`: creates a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::config::SharedPolicy;
use capstan_apiserver::{Config, Server};
use capstan_controller::{Client, Deletion};
use capstan_env::Env;
use capstan_object::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::etcd::Etcd;
use super::ports::Ports;
use super::state::{ControlPlane, Member, Size, State};
use super::{GuestCluster, actors, certificates, kinds, kubeadm};
use crate::request::{InitRequest, KubeadmError};
use crate::site::SiteOptions;

/// Watch history of a cluster's API server: it has few, fast clients, and there are many clusters.
const HISTORY_BYTES: u64 = 64 << 10;

/// Input of a new cluster.
pub(crate) struct InitCluster {
    pub(crate) env: Env,
    pub(crate) options: SiteOptions,
    pub(crate) policy: SharedPolicy,
    pub(crate) size: Size,
    pub(crate) request: InitRequest,
}

impl GuestCluster {
    /// Starts the control plane on its first machine and creates kubeadm's objects.
    pub(crate) async fn init(init: InitCluster) -> Result<Arc<Self>, KubeadmError> {
        let InitCluster { env, options, policy, size, request } = init;
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
            why: format!("kube-apiserver does not start: {error}"),
        })?;
        let client = Client::in_process(plane.clone(), "kubeadm");
        // The API server does not know the service network: its own Service is recreated with the right address.
        if let Some(services) = kinds::named("Service") {
            let key = Key::new("default", "kubernetes");
            client
                .delete(&services, &key, &Deletion::default())
                .await
                .map_err(|error| KubeadmError { phase: "wait-control-plane", why: error.to_string() })?;
        }
        for created in kubeadm::objects(&request, &ca, env.now())? {
            let namespace = created.object["metadata"]["namespace"].as_str().unwrap_or_default();
            client.create(&created.kind, namespace, &created.object).await.map_err(|error| KubeadmError {
                phase: created.phase,
                why: format!("unable to create {}: {error}", created.kind),
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
            notify: Arc::new(Notify::new()),
            task: Mutex::new(None),
        });
        ports.lead_to(&cluster);
        *cluster.task.lock() = Some(actors::begin(&cluster));
        Ok(cluster)
    }
}
