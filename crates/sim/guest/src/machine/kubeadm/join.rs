//! `kubeadm join`.

use std::time::Duration;

use serde_json::{Value, json};

use super::config::{Cluster, Endpoint, FileDiscovery, Join, JoinControlPlane, TokenDiscovery, go_duration};
use super::files::yaml;
use super::flags::Flags;
use super::init::{is_skipped, skipped_phases};
use super::kubeconfig::Servers;
use super::{Abort, DIRECTORY, Kubeadm, preflight};
use crate::request::{Discovery, JoinRequest};

/// Default discovery timeout.
const DISCOVERY: Duration = Duration::from_secs(5 * 60);
/// Certificate directory: before discovery a joining machine knows only the default.
const PKI: &str = "/etc/kubernetes/pki";

const PHASES: [&str; 9] = [
    "preflight",
    "control-plane-prepare",
    "check-etcd",
    "kubelet-start",
    "etcd-join",
    "kubelet-wait-bootstrap",
    "control-plane-join",
    "wait-control-plane",
    "kubelet-wait",
];

impl Kubeadm<'_, '_> {
    pub(super) async fn join(&mut self, flags: &Flags, endpoints: &[&str]) -> Result<(), Abort> {
        let mut join = match flags.get("config") {
            Some(path) => self.join_configuration(path)?,
            None => self.join_of_flags(flags, endpoints)?,
        };
        if let Some(name) = flags.get("node-name") {
            join.node_registration.name.clone_from(name);
        }
        let ignored = preflight::ignored(
            &flags.list("ignore-preflight-errors"),
            &join.node_registration.ignore_preflight_errors,
        )?;
        let skipped = skipped_phases(flags, &join.skip_phases, &PHASES)?;
        let runs = |phase: &str| !is_skipped(&skipped, phase);
        if runs("preflight") {
            self.print("[preflight] Running pre-flight checks");
            let checks = self.check_join(&join);
            self.conclude(checks, &ignored)?;
        }
        let discovery = self.discovery(&join)?;
        self.look_for(&discovery, &join).await?;
        let control_plane = match &join.control_plane {
            None => None,
            Some(control_plane) => {
                self.ready_for_control_plane(control_plane)?;
                Some(self.gather(PKI))
            }
        };
        self.read_patches(join.patches.as_ref(), "kubelet-start")?;
        let kubelet = self.kubelet(&join.node_registration, join.control_plane.is_some());
        if let Some(control_plane) = &join.control_plane {
            self.prepare(control_plane, &join, &discovery)?;
        }
        if runs("kubelet-start") {
            self.start_kubelet(&kubelet.flags)?;
        }
        self.wait_for_kubelet(&kubelet, "kubelet-start").await?;
        self.print("[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap");
        let token = &join.discovery.tls_bootstrap_token;
        let node = kubelet.request.name.clone();
        let is_control_plane = control_plane.is_some();
        let request = JoinRequest {
            node: kubelet.request,
            discovery,
            tls_bootstrap_token: (!token.is_empty()).then(|| token.clone()),
            control_plane,
            skipped_phases: skipped.clone(),
        };
        let joined = self.guest.control.join(request).await;
        if let Err(error) = joined {
            self.guest.services.remove("kubelet.service");
            return Err(error.into());
        }
        self.guest.node = Some(node.clone());
        if is_control_plane {
            self.print("[etcd] Waiting for the new etcd member to join the cluster. This can take up to 40s");
            self.print(&format!("[mark-control-plane] Marking the node {node} as control-plane"));
            self.print("");
            self.print("This node has joined the cluster and a new control plane instance was created:");
        } else {
            self.print("");
            self.print("This node has joined the cluster:");
        }
        self.print("* Certificate signing request was sent to apiserver and a response was received.");
        self.print("* The Kubelet was informed of the new secure connection details.");
        self.keep_kubelet_kubeconfig(&node)
    }

    /// `kubeadm join host:port --token …`.
    fn join_of_flags(&mut self, flags: &Flags, endpoints: &[&str]) -> Result<Join, Abort> {
        let text = |name: &str| flags.get(name).cloned().unwrap_or_default();
        let token = if text("discovery-token").is_empty() { text("token") } else { text("discovery-token") };
        let mut join = Join::default();
        match flags.get("discovery-file") {
            Some(path) => join.discovery.file = Some(FileDiscovery { kube_config_path: path.clone() }),
            None => {
                join.discovery.bootstrap_token = Some(TokenDiscovery {
                    token,
                    api_server_endpoint: endpoints.first().copied().unwrap_or_default().to_owned(),
                    ca_cert_hashes: flags.list("discovery-token-ca-cert-hash"),
                    unsafe_skip_ca_verification: flags.is_set("discovery-token-unsafe-skip-ca-verification"),
                });
            }
        }
        let tls = text("tls-bootstrap-token");
        join.discovery.tls_bootstrap_token = if tls.is_empty() { text("token") } else { tls };
        join.node_registration.name = text("node-name");
        join.node_registration.cri_socket = text("cri-socket");
        if flags.is_set("control-plane") {
            let endpoint = Endpoint {
                advertise_address: text("apiserver-advertise-address"),
                bind_port: flags.get("apiserver-bind-port").and_then(|port| port.parse().ok()).unwrap_or(0),
            };
            join.control_plane = Some(JoinControlPlane {
                local_api_endpoint: endpoint,
                certificate_key: text("certificate-key"),
            });
        }
        self.complete_join(join)
    }

    fn discovery(&self, join: &Join) -> Result<Discovery, Abort> {
        if let Some(TokenDiscovery {
            token,
            api_server_endpoint,
            ca_cert_hashes,
            unsafe_skip_ca_verification,
        }) = join.discovery.bootstrap_token.clone()
        {
            return Ok(Discovery::Token {
                endpoint: api_server_endpoint,
                token,
                ca_cert_hashes,
                unsafe_skip_ca_verification,
            });
        }
        let path = join.discovery.file.as_ref().map(|file| file.kube_config_path.clone()).unwrap_or_default();
        let failed = |why: String| {
            Abort::phase("preflight", format!("couldn't validate the identity of the API Server: {why}"))
        };
        if path.starts_with("https://") {
            let host = path.trim_start_matches("https://").split('/').next().unwrap_or_default();
            return Err(failed(format!("Get \"{path}\": dial tcp: lookup {host}: no such host")));
        }
        let text = self
            .guest
            .files
            .text(&path)
            .map_err(|error| failed(format!("open {path}: {}", error.lower())))?;
        let kubeconfig: Value = serde_saphyr::from_str(&text)
            .map_err(|_| failed(format!("couldn't load the kubeconfig file {path}: it is not valid YAML")))?;
        if kubeconfig["clusters"].as_array().is_none_or(Vec::is_empty) {
            return Err(failed(format!("the discovery file {path} has no cluster")));
        }
        Ok(Discovery::File { kubeconfig })
    }

    /// Without a network, discovery fails after its timeout.
    async fn look_for(&mut self, discovery: &Discovery, join: &Join) -> Result<(), Abort> {
        if self.guest.has_network() {
            return Ok(());
        }
        let endpoint = endpoint_of(discovery);
        let timeout = join.timeouts["discovery"].as_str().or(join.discovery.timeout.as_deref());
        let timeout = timeout.and_then(go_duration).and_then(|duration| Duration::try_from(duration).ok());
        tokio::time::sleep(timeout.unwrap_or(DISCOVERY)).await;
        Err(Abort::phase(
            "preflight",
            format!(
                "couldn't validate the identity of the API Server: failed to request the cluster-info ConfigMap: Get \
                 \"https://{endpoint}/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s\": dial tcp {endpoint}: \
                 connect: no route to host"
            ),
        ))
    }

    fn ready_for_control_plane(&mut self, control_plane: &JoinControlPlane) -> Result<(), Abort> {
        if !control_plane.certificate_key.is_empty() {
            return Err(Abort::phase(
                "control-plane-prepare/download-certs",
                "error downloading certs: error downloading the secret: Secret \"kubeadm-certs\" was not found in the \
                 \"kube-system\" Namespace. This Secret might have expired. Please, run `kubeadm init phase upload-certs \
                 --upload-certs` on a control plane to generate a new one",
            ));
        }
        let errors = self.shared_certificates(PKI);
        if errors.is_empty() {
            self.print(
                "[preflight] Running pre-flight checks before initializing the new control plane instance",
            );
            return Ok(());
        }
        Err(Abort::phase(
            "preflight",
            format!(
                "One or more conditions for hosting a new control plane instance is not satisfied: [{}]",
                errors.join(", ")
            ),
        ))
    }

    /// Writes the files of a new control plane.
    fn prepare(
        &mut self,
        control_plane: &JoinControlPlane,
        join: &Join,
        discovery: &Discovery,
    ) -> Result<(), Abort> {
        let endpoint = &control_plane.local_api_endpoint;
        let local = format!("{}:{}", endpoint.advertise_address, endpoint.bind_port);
        // The rest of the configuration is in the cluster: nothing on this machine reads it.
        let cluster = Cluster::of_endpoint(endpoint_of(discovery), &self.version)?;
        let servers = Servers { cluster: cluster.server(&local), local: format!("https://{local}") };
        let node = &join.node_registration.name;
        if self.guest.files.exists(&format!("{PKI}/ca.key")) {
            self.print("[kubeconfig] Generating kubeconfig files");
            self.kubeconfigs("control-plane-prepare/kubeconfig", &cluster, node, &servers)?;
        }
        self.component_manifests(&cluster, endpoint)?;
        self.print("[check-etcd] Checking that the etcd cluster is healthy");
        self.etcd_manifest(&cluster, node, endpoint)
    }

    /// Writes the kubelet's kubeconfig after TLS bootstrap.
    fn keep_kubelet_kubeconfig(&mut self, node: &str) -> Result<(), Abort> {
        let user = format!("system:node:{node}");
        let certificate = "/var/lib/kubelet/pki/kubelet-client-current.pem";
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "default-auth",
            "contexts": [{"name": "default-auth", "context": {"cluster": "default-cluster", "user": user}}],
            "users": [{"name": user, "user": {"client-certificate": certificate, "client-key": certificate}}],
        });
        let path = format!("{DIRECTORY}/kubelet.conf");
        self.put(&path, yaml(&config).as_bytes(), 0o600).map_err(|error| {
            Abort::phase("kubelet-start", format!("couldn't save kubelet.conf to disk: {}", error.lower()))
        })
    }
}

/// `host:port` of a discovery.
fn endpoint_of(discovery: &Discovery) -> String {
    match discovery {
        Discovery::Token { endpoint, .. } => endpoint.clone(),
        Discovery::File { kubeconfig } => {
            let server =
                kubeconfig.pointer("/clusters/0/cluster/server").and_then(Value::as_str).unwrap_or_default();
            server.trim_start_matches("https://").to_owned()
        }
    }
}
