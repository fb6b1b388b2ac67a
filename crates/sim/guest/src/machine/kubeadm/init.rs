//! `kubeadm init`.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::certs::Subject;
use super::config::{Cluster, Init};
use super::flags::Flags;
use super::kubeconfig::Servers;
use super::{Abort, Kubeadm, preflight};
use crate::request::InitRequest;

/// How long clients retry.
const API_CALLS: Duration = Duration::from_secs(60);

const PHASES: [&str; 14] = [
    "preflight",
    "certs",
    "kubeconfig",
    "etcd",
    "control-plane",
    "kubelet-start",
    "wait-control-plane",
    "upload-config",
    "upload-certs",
    "mark-control-plane",
    "bootstrap-token",
    "kubelet-finalize",
    "addon",
    "show-join-command",
];

/// Skipped phases, validated.
pub(super) fn skipped_phases(
    flags: &Flags,
    configured: &[String],
    known: &[&str],
) -> Result<Vec<String>, Abort> {
    let mut skipped = flags.list("skip-phases");
    if skipped.is_empty() {
        skipped = configured.to_vec();
    }
    for phase in &skipped {
        let top = phase.split('/').next().unwrap_or(phase);
        if !known.contains(&top) {
            return Err(Abort(format!("invalid phase name: {phase}")));
        }
    }
    Ok(skipped)
}

/// Whether a phase is skipped, itself or with its parent.
pub(super) fn is_skipped(skipped: &[String], phase: &str) -> bool {
    skipped.iter().any(|held| phase == held || phase.starts_with(&format!("{held}/")))
}

impl Kubeadm<'_, '_> {
    pub(super) async fn init(&mut self, flags: &Flags) -> Result<(), Abort> {
        let (mut init, cluster) = match flags.get("config") {
            Some(path) => self.init_configuration(path)?,
            None => self.init_of_flags(flags)?,
        };
        if let Some(name) = flags.get("node-name") {
            init.node_registration.name.clone_from(name);
        }
        let ignored = preflight::ignored(
            &flags.list("ignore-preflight-errors"),
            &init.node_registration.ignore_preflight_errors,
        )?;
        let skipped = skipped_phases(flags, &init.skip_phases, &PHASES)?;
        let runs = |phase: &str| !is_skipped(&skipped, phase);
        if flags.is_set("upload-certs") && runs("upload-certs") {
            return Err(Abort::phase("upload-certs", "upload-certs is not simulated"));
        }
        let version = cluster.text("/kubernetesVersion").to_owned();
        self.print(&format!("[init] Using Kubernetes version: {version}"));
        if runs("preflight") {
            self.print("[preflight] Running pre-flight checks");
            let checks = self.check_init(&cluster, &init.node_registration);
            self.conclude(checks, &ignored)?;
            self.print("[preflight] Pulling images required for setting up a Kubernetes cluster");
        }
        let node = init.node_registration.name.clone();
        let endpoint = &init.local_api_endpoint;
        let address: IpAddr = endpoint.advertise_address.parse().unwrap_or(self.guest.address.into());
        let local = format!("{}:{}", endpoint.advertise_address, endpoint.bind_port);
        if runs("certs") {
            self.certs(&Subject { node: &node, address, cluster: &cluster })?;
        }
        let servers = Servers { cluster: cluster.server(&local), local: format!("https://{local}") };
        if runs("kubeconfig") {
            self.kubeconfigs("kubeconfig", &cluster, &node, &servers)?;
        }
        self.read_patches(init.patches.as_ref(), "etcd/local")?;
        if runs("etcd") && cluster.has_local_etcd() {
            self.print("[etcd] Creating static Pod manifest for local etcd in \"/etc/kubernetes/manifests\"");
            self.etcd_manifest(&cluster, &node, endpoint)?;
        }
        if runs("control-plane") {
            self.component_manifests(&cluster, endpoint)?;
        }
        let kubelet = self.kubelet(&init.node_registration, true);
        if runs("kubelet-start") {
            self.start_kubelet(&kubelet.flags)?;
        }
        self.print(
            "[wait-control-plane] Waiting for the kubelet to boot up the control plane as static Pods from directory \
             \"/etc/kubernetes/manifests\"",
        );
        self.wait_for_kubelet(&kubelet, "wait-control-plane").await?;
        self.reach(&servers.cluster).await?;
        let bootstrap_tokens = self.bootstrap_tokens(&init);
        let pki = self.gather(cluster.certificates_dir());
        let request = InitRequest {
            node: kubelet.request,
            pki,
            cluster_configuration: cluster.value.clone(),
            bootstrap_tokens,
            skipped_phases: skipped.clone(),
        };
        self.guest.control.init(request).await?;
        self.guest.node = Some(node.clone());
        self.finish(&cluster, &node, &runs);
        Ok(())
    }

    /// `kubeadm init --control-plane-endpoint …`.
    fn init_of_flags(&mut self, flags: &Flags) -> Result<(Init, Cluster), Abort> {
        let mut cluster = json!({});
        for (flag, section, field) in [
            ("control-plane-endpoint", "", "controlPlaneEndpoint"),
            ("kubernetes-version", "", "kubernetesVersion"),
            ("image-repository", "", "imageRepository"),
            ("cert-dir", "", "certificatesDir"),
            ("pod-network-cidr", "networking", "podSubnet"),
            ("service-cidr", "networking", "serviceSubnet"),
            ("service-dns-domain", "networking", "dnsDomain"),
        ] {
            if let Some(value) = flags.get(flag) {
                let place = if section.is_empty() { &mut cluster } else { &mut cluster[section] };
                place[field] = value.as_str().into();
            }
        }
        let names = flags.list("apiserver-cert-extra-sans");
        if !names.is_empty() {
            cluster["apiServer"]["certSANs"] = names.into();
        }
        let mut init = Init::default();
        init.node_registration.cri_socket = flags.get("cri-socket").cloned().unwrap_or_default();
        init.node_registration.name = flags.get("node-name").cloned().unwrap_or_default();
        init.local_api_endpoint.advertise_address =
            flags.get("apiserver-advertise-address").cloned().unwrap_or_default();
        init.bootstrap_tokens.extend(flags.get("token").map(|token| json!({"token": token})));
        self.complete_init(init, cluster)
    }

    /// kubeadm fails if the load balancer of the control plane is not reachable.
    async fn reach(&mut self, server: &str) -> Result<(), Abort> {
        let host = server.trim_start_matches("https://").rsplit_once(':').map_or(server, |(host, _)| host);
        if self.guest.has_network() || host == self.guest.address.to_string() {
            return Ok(());
        }
        tokio::time::sleep(API_CALLS).await;
        Err(Abort::phase(
            "upload-config/kubeadm",
            format!(
                "could not bootstrap the admin user in file admin.conf: unable to create ClusterRoleBinding: Post \
                 \"{server}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?timeout=10s\": dial tcp {}: connect: no route \
                 to host",
                server.trim_start_matches("https://")
            ),
        ))
    }

    /// The configured tokens with defaults, or a random one.
    fn bootstrap_tokens(&mut self, init: &Init) -> Vec<Value> {
        let mut tokens = init.bootstrap_tokens.clone();
        if tokens.is_empty() {
            tokens.push(json!({}));
        }
        for token in &mut tokens {
            if token.get("token").and_then(Value::as_str).is_none_or(str::is_empty) {
                let random = format!("{}{}", self.guest.env.uuid(), self.guest.env.uuid()).replace('-', "");
                token["token"] = format!("{}.{}", &random[..6], &random[32..48]).into();
            }
            if token.get("ttl").is_none() && token.get("expires").is_none() {
                token["ttl"] = "24h0m0s".into();
            }
            if token.get("usages").is_none() {
                token["usages"] = json!(["signing", "authentication"]);
            }
            if token.get("groups").is_none() {
                token["groups"] = json!(["system:bootstrappers:kubeadm:default-node-token"]);
            }
        }
        tokens
    }

    /// Prints the output of the phases that the cluster has executed.
    fn finish(&mut self, cluster: &Cluster, node: &str, runs: &dyn Fn(&str) -> bool) {
        if runs("upload-config") {
            self.print(
                "[upload-config] Storing the configuration used in ConfigMap \"kubeadm-config\" in the \"kube-system\" Namespace",
            );
        }
        if runs("mark-control-plane") {
            self.print(&format!("[mark-control-plane] Marking the node {node} as control-plane"));
        }
        if runs("bootstrap-token") {
            self.print("[bootstrap-token] Configuring bootstrap tokens, cluster-info ConfigMap, RBAC Roles");
            self.print(
                "[bootstrap-token] Creating the \"cluster-info\" ConfigMap in the \"kube-public\" namespace",
            );
        }
        if runs("kubelet-finalize") {
            self.print(
                "[kubelet-finalize] Updating \"/etc/kubernetes/kubelet.conf\" to point to a rotatable kubelet client certificate \
                 and key",
            );
        }
        let enabled = |section: &str| {
            cluster.value.pointer(&format!("/{section}/disabled")) != Some(&Value::Bool(true))
        };
        if runs("addon/coredns") && enabled("dns") {
            self.print("[addons] Applied essential addon: CoreDNS");
        }
        if runs("addon/kube-proxy") && enabled("proxy") {
            self.print("[addons] Applied essential addon: kube-proxy");
        }
        self.print("");
        self.print("Your Kubernetes control-plane has initialized successfully!");
    }
}
