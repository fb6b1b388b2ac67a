//! kubeadm's access to the network and to a cluster, on one machine.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use capstan_controller::{ApiError, Client, Dial, KindName, Stream};
use capstan_object::{Key, Scope};
use futures::future::BoxFuture;
use serde_json::Value;

use super::dial::{SiteDial, Unreachable};
use super::discovery::{Found, described};
use super::retry::Retry;
use super::{Inner, discovery};
use crate::cluster::{GuestCluster, InitCluster, Joining, minor};
use crate::request::{Control, Files, InitRequest, JoinRequest, KubeadmError, NodeRequest};

/// How long kubeadm waits for a response of an API server or etcd.
const API_CALL: Duration = Duration::from_secs(60);
const ETCD_CALL: Duration = Duration::from_secs(120);
/// How long it waits for a new control plane.
const CONTROL_PLANE: Duration = Duration::from_secs(4 * 60);

/// Certificates that control plane machines have in common.
const SHARED: [(&str, &str); 4] =
    [("CA", "ca"), ("front-proxy CA", "front-proxy-ca"), ("etcd CA", "etcd/ca"), ("service account", "sa")];

/// The network and clusters as one machine sees them.
#[derive(Clone)]
pub(super) struct Kubeadm {
    site: Weak<Inner>,
    pub(super) vm: String,
}

impl Kubeadm {
    pub(super) fn new(site: Weak<Inner>, vm: &str) -> Self {
        Self { site, vm: vm.to_owned() }
    }

    pub(super) fn site(&self) -> Result<Arc<Inner>, KubeadmError> {
        self.site.upgrade().ok_or_else(|| failed("preflight", "the site is gone"))
    }

    /// The node as a cloud controller manager leaves it, where the site assumes one.
    fn initialized(&self, site: &Inner, mut node: NodeRequest) -> NodeRequest {
        if site.options.assume_addons && node.external.take().is_some() && node.provider_id.is_none() {
            node.provider_id = site.provider_id(&self.vm);
        }
        node
    }

    async fn init_cluster(&self, mut request: InitRequest) -> Result<(), KubeadmError> {
        let site = self.site()?;
        request.node = self.initialized(&site, request.node);
        tokio::time::sleep(site.options.timings.init).await;
        let node = request.node.name.clone();
        let endpoint = request.cluster_configuration["controlPlaneEndpoint"].as_str().map(str::to_owned);
        let size = site.size(&self.vm);
        let init = InitCluster {
            env: site.env.clone(),
            options: site.options.clone(),
            policy: site.policy.clone(),
            size,
            request,
        };
        let cluster = GuestCluster::init(init).await?;
        if site.options.assume_addons {
            cluster.install_assumed_cni().await?;
        }
        site.joined(&self.vm, &cluster, &node);
        if let Some(endpoint) = endpoint {
            self.check_endpoint(&cluster, &endpoint).await?;
        }
        cluster.registered(&node).await
    }

    /// Fails if the endpoint does not lead to the new control plane.
    async fn check_endpoint(&self, cluster: &Arc<GuestCluster>, endpoint: &str) -> Result<(), KubeadmError> {
        let Some((host, port)) = discovery::host_and_port(endpoint) else { return Ok(()) };
        // Host names, and addresses that machines announce themselves, are unknown to the site.
        let site = self.site()?;
        let address = site.network.lock().resolve(&host);
        if address.is_none_or(|address| site.network.lock().behind(address, port).is_none()) {
            return Ok(());
        }
        drop(site);
        let retry = Retry::with_timeout(CONTROL_PLANE);
        loop {
            let why = match self.server_at(&host, port) {
                Ok(found) if Arc::ptr_eq(&found, cluster) => return Ok(()),
                Ok(_) => "x509: certificate signed by unknown authority".to_owned(),
                Err(why) => why,
            };
            let why = format!("failed while waiting for the control plane to start: {why}");
            retry.wait_or(failed("wait-control-plane", &why)).await?;
        }
    }

    async fn join_cluster(&self, request: JoinRequest) -> Result<(), KubeadmError> {
        let site = self.site()?;
        tokio::time::sleep(site.options.timings.join).await;
        let JoinRequest { node, discovery, tls_bootstrap_token, control_plane, .. } = request;
        let Found { cluster, client } = self.discover(&discovery, tls_bootstrap_token.as_deref()).await?;
        let configuration = configuration(&client).await?;
        check_versions(&node, &configuration, control_plane.is_some())?;
        if let Some(files) = &control_plane {
            check_shared(files, &configuration)?;
            check_etcd(&cluster).await?;
        }
        check_name(&client, &node.name).await?;
        let node = self.initialized(&site, node);
        let name = node.name.clone();
        let configuration = Arc::new(configuration);
        let size = site.size(&self.vm);
        cluster.admit(Joining { node: Arc::new(node), size, control_plane, configuration })?;
        site.joined(&self.vm, &cluster, &name);
        drop(site);
        cluster.registered(&name).await
    }
}

impl Control for Kubeadm {
    fn init<'a>(&'a self, request: InitRequest) -> BoxFuture<'a, Result<(), KubeadmError>> {
        Box::pin(self.init_cluster(request))
    }

    fn join<'a>(&'a self, request: JoinRequest) -> BoxFuture<'a, Result<(), KubeadmError>> {
        Box::pin(self.join_cluster(request))
    }
}

/// Connects to the site's network from the machine.
impl Dial for Kubeadm {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let site = self.site.upgrade().ok_or(Unreachable::NoRoute)?;
            let address = site.network.lock().resolve(host);
            if let Some(address) = address {
                site.route_from(&self.vm, address, port)?;
            }
            SiteDial(site).dial(host, port).await
        })
    }
}

/// Reads the cluster's `kubeadm-config`.
async fn configuration(client: &Client) -> Result<Value, KubeadmError> {
    let failed =
        |why: &str| failed("preflight", &format!("unable to fetch the kubeadm-config ConfigMap: {why}"));
    let kind = KindName::namespaced("", "v1", "ConfigMap", "configmaps");
    let key = Key::new("kube-system", "kubeadm-config");
    let retry = Retry::with_timeout(API_CALL);
    let map = loop {
        match client.get_raw(&kind, &key).await {
            Ok(Some(reply)) => break reply.parse::<Value>().map_err(|error| failed(&error.to_string()))?,
            Ok(None) => {
                return Err(failed("failed to get config map: configmaps \"kubeadm-config\" not found"));
            }
            Err(error) => {
                let why = failed(&format!("failed to get config map: {}", described(&error, "kubernetes")));
                if !matches!(error, ApiError::Transport(_)) {
                    return Err(why);
                }
                retry.wait_or(why).await?;
            }
        }
    };
    let text = map["data"]["ClusterConfiguration"].as_str();
    let text = text.ok_or_else(|| failed("unexpected error when reading kubeadm-config ConfigMap: ClusterConfiguration key value pair missing"))?;
    serde_saphyr::from_str(text).map_err(|_| failed("failed to decode cluster configuration data"))
}

/// kubeadm supports its own minor release and the previous one; a control plane's kubelet must not be newer than it.
fn check_versions(
    node: &NodeRequest,
    configuration: &Value,
    control_plane: bool,
) -> Result<(), KubeadmError> {
    let version = configuration["kubernetesVersion"].as_str().unwrap_or_default();
    let (Some(own), Some(cluster)) = (minor(&node.kubelet_version), minor(version)) else {
        return Err(failed("preflight", &format!("couldn't parse Kubernetes version {version:?}")));
    };
    if cluster + 1 < own {
        return Err(failed(
            "preflight",
            &format!(
                "unable to fetch the kubeadm-config ConfigMap: this version of kubeadm only supports deploying \
                 clusters with the control plane version >= 1.{}.0. Current version: {version}",
                own - 1
            ),
        ));
    }
    if control_plane && own > cluster {
        return Err(fatal(
            "KubeletVersion",
            &format!(
                "the kubelet version is higher than the control plane version. This is not a supported version \
                 skew and may lead to a malfunctional cluster. Kubelet version: {:?} Control plane version: {:?}",
                node.kubelet_version.trim_start_matches('v'),
                version.trim_start_matches('v')
            ),
        ));
    }
    Ok(())
}

/// Checks the files that a joining control plane machine needs.
fn check_shared(files: &Files, configuration: &Value) -> Result<(), KubeadmError> {
    let unmet = |why: &str| {
        failed(
            "preflight",
            &format!(
                "\nOne or more conditions for hosting a new control plane instance is not satisfied.\n\n{why}\n\n\
                 Please ensure that:\n* The cluster has a stable controlPlaneEndpoint address.\n* The certificates \
                 that must be shared among control plane instances are provided.\n"
            ),
        )
    };
    if configuration["controlPlaneEndpoint"].as_str().is_none_or(str::is_empty) {
        return Err(unmet(
            "unable to add a new control plane instance to a cluster that doesn't have a stable \
             controlPlaneEndpoint address",
        ));
    }
    for (name, path) in SHARED {
        let public = if path == "sa" { "pub" } else { "crt" };
        for file in [format!("{path}.{public}"), format!("{path}.key")] {
            if !files.contains_key(&file) {
                return Err(unmet(&format!(
                    "failure loading certificate for {name}: couldn't load the certificate file \
                     /etc/kubernetes/pki/{file}: open /etc/kubernetes/pki/{file}: no such file or directory"
                )));
            }
        }
    }
    Ok(())
}

/// Checks that every etcd member responds before another is added.
async fn check_etcd(cluster: &GuestCluster) -> Result<(), KubeadmError> {
    let retry = Retry::with_timeout(ETCD_CALL);
    while let Some(dead) = cluster.dead_members().first() {
        let why = format!(
            "etcd cluster is not healthy: failed to dial endpoint {dead} with maintenance client: context deadline \
             exceeded"
        );
        retry.wait_or(failed("check-etcd", &why)).await?;
    }
    Ok(())
}

/// Fails if a Ready Node has this name.
async fn check_name(client: &Client, name: &str) -> Result<(), KubeadmError> {
    let mut kind = KindName::namespaced("", "v1", "Node", "nodes");
    kind.scope = Scope::Cluster;
    let failed = |why: &str| failed("kubelet-start", why);
    let node = client.get_raw(&kind, &Key::new("", name)).await;
    let node = node
        .map_err(|error| failed(&format!("cannot get Node {name:?}: {}", described(&error, "kubernetes"))))?;
    let Some(node) = node else { return Ok(()) };
    let node: Value = node.parse().map_err(|error| failed(&format!("cannot get Node {name:?}: {error}")))?;
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
        return Err(failed(&format!(
            "a Node with name {name:?} and status \"Ready\" already exists in the cluster. You must delete the \
             existing Node or change the name of this new joining Node"
        )));
    }
    Ok(())
}

fn failed(phase: &'static str, why: &str) -> KubeadmError {
    KubeadmError { phase, why: why.to_owned() }
}

/// A preflight check that failed.
fn fatal(check: &str, why: &str) -> KubeadmError {
    failed(
        "preflight",
        &format!(
            "[preflight] Some fatal errors occurred:\n\t[ERROR {check}]: {why}\n[preflight] If you know what you are \
             doing, you can make a check non-fatal with `--ignore-preflight-errors=...`"
        ),
    )
}
