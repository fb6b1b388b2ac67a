//! Validation of configurations, in kubeadm's words. Values of tokens and keys are left out.

use std::net::IpAddr;

use capstan_schema::meta::dns1123_subdomain;
use serde_json::Value;

use super::super::Abort;
use super::super::keys::Algorithm;
use super::{Arguments, Cluster, Endpoint, Init, Join, Node};
use crate::machine::files::Files;
use crate::machine::screen::is_token;

/// Gates that some kubeadm since 1.22 knew.
const GATES: [&str; 9] = [
    "ControlPlaneKubeletLocalMode",
    "EtcdLearnerMode",
    "IPv6DualStack",
    "NodeLocalCRISocket",
    "PublicKeysECDSA",
    "RootlessControlPlane",
    "UnversionedKubeletConfigMap",
    "UpgradeAddonsBeforeControlPlane",
    "WaitForAllControlPlaneComponents",
];

/// What is wrong with a configuration.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<String>);

impl Errors {
    /// All of it, as Go joins errors.
    pub(super) fn into_result(self) -> Result<(), Abort> {
        match self.0.as_slice() {
            [] => Ok(()),
            [one] => Err(Abort(one.clone())),
            many => Err(Abort(format!("[{}]", many.join(", ")))),
        }
    }

    fn invalid(&mut self, path: &str, value: &str, why: &str) {
        self.0.push(format!("{path}: Invalid value: {value:?}: {why}"));
    }

    /// The same for what must not be shown.
    fn invalid_secret(&mut self, path: &str, why: &str) {
        self.0.push(format!("{path}: Invalid value: \"<redacted>\": {why}"));
    }

    pub(super) fn init(&mut self, init: &Init) {
        self.node(&init.node_registration);
        for (index, token) in init.bootstrap_tokens.iter().enumerate() {
            let given = token.get("token").and_then(Value::as_str).unwrap_or_default();
            if !given.is_empty() && !is_token(given) {
                self.invalid_secret(
                    &format!("bootstrapTokens.{index}.token"),
                    "the bootstrap token is invalid",
                );
            }
            if token.get("expires").is_some() && token.get("ttl").is_some() {
                let why = "the BootstrapToken .TTL and .Expires fields are mutually exclusive";
                self.invalid(&format!("bootstrapTokens.{index}"), "", why);
            }
        }
        self.endpoint(&init.local_api_endpoint, "localAPIEndpoint");
        self.certificate_key(&init.certificate_key, "certificateKey");
    }

    pub(super) fn join(&mut self, join: &Join, files: &Files) {
        let discovery = &join.discovery;
        match (&discovery.bootstrap_token, &discovery.file) {
            (None, None) => self.invalid("discovery", "", "bootstrapToken or file must be set"),
            (Some(_), Some(_)) => self.invalid("discovery", "", "bootstrapToken and file cannot both be set"),
            _ => {}
        }
        if let Some(token) = &discovery.bootstrap_token {
            if token.api_server_endpoint.is_empty() {
                self.0.push(
                    "discovery.bootstrapToken: Required value: APIServerEndpoint is not set".to_owned(),
                );
            }
            if token.ca_cert_hashes.is_empty() && !token.unsafe_skip_ca_verification {
                let why = "using token-based discovery without caCertHashes can be unsafe. Set unsafeSkipCAVerification as \
                           true in your kubeadm config file or pass --discovery-token-unsafe-skip-ca-verification flag to continue";
                self.invalid("discovery.bootstrapToken.caCertHashes", "", why);
            }
            if !is_token(&token.token) {
                self.invalid_secret("discovery.bootstrapToken.token", "the bootstrap token is invalid");
            }
            if !is_host_port(&token.api_server_endpoint) {
                let why = format!("address {}: missing port in address", token.api_server_endpoint);
                self.invalid("discovery.bootstrapToken.apiServerEndpoint", &token.api_server_endpoint, &why);
            }
        }
        if let Some(file) = &discovery.file {
            let path = &file.kube_config_path;
            if path.contains("://") {
                if !path.starts_with("https://") {
                    self.invalid(
                        "discovery.file.kubeConfigPath",
                        path,
                        "if a URL is used, the scheme must be https",
                    );
                }
            } else if !files.exists(path) {
                self.invalid(
                    "discovery.file.kubeConfigPath",
                    path,
                    "not a valid HTTPS URL or a file on disk",
                );
            }
        }
        let needs_token = discovery.bootstrap_token.is_some() || !discovery.tls_bootstrap_token.is_empty();
        if needs_token && !is_token(&discovery.tls_bootstrap_token) {
            self.invalid_secret("discovery.tlsBootstrapToken", "the bootstrap token is invalid");
        }
        self.node(&join.node_registration);
        if let Some(control_plane) = &join.control_plane {
            self.endpoint(&control_plane.local_api_endpoint, "controlPlane.localAPIEndpoint");
            self.certificate_key(&control_plane.certificate_key, "controlPlane.certificateKey");
        }
        if !join.ca_cert_path.starts_with('/') || !join.ca_cert_path.ends_with(".crt") {
            self.invalid(
                "caCertPath",
                &join.ca_cert_path,
                "the ca certificate path must be an absolute path",
            );
        }
    }

    pub(super) fn cluster(&mut self, cluster: &Cluster) {
        for why in dns1123_subdomain(cluster.text("/networking/dnsDomain")) {
            self.invalid("networking.dnsDomain", cluster.text("/networking/dnsDomain"), &why);
        }
        for (path, pointer) in [
            ("networking.serviceSubnet", "/networking/serviceSubnet"),
            ("networking.podSubnet", "/networking/podSubnet"),
        ] {
            let subnets = cluster.text(pointer);
            let parts: Vec<&str> = subnets.split(',').collect();
            if subnets.is_empty() {
                continue;
            }
            if !parts.iter().all(|subnet| is_subnet(subnet)) {
                self.invalid(path, subnets, "couldn't parse subnet");
            } else if parts.len() > 2
                || (parts.len() == 2 && parts[0].contains(':') == parts[1].contains(':'))
            {
                let why = "expected one (IPv4 or IPv6) CIDR or two CIDRs from each family for dual-stack networking";
                self.invalid(path, subnets, why);
            }
        }
        for (path, pointer) in [
            ("apiServer.certSANs", "/apiServer/certSANs"),
            ("etcd.local.serverCertSANs", "/etcd/local/serverCertSANs"),
            ("etcd.local.peerCertSANs", "/etcd/local/peerCertSANs"),
        ] {
            for name in cluster.texts(pointer) {
                let plain = name.strip_prefix("*.").unwrap_or(name);
                let reasons = dns1123_subdomain(&plain.to_lowercase());
                if !reasons.is_empty() && name.parse::<IpAddr>().is_err() {
                    let why = format!(
                        "altname is not a valid IP address, DNS label or a DNS label with subdomain wildcards: {}",
                        reasons.join("; ")
                    );
                    self.invalid(path, name, &why);
                }
            }
        }
        for (path, pointer) in
            [("certificatesDir", "/certificatesDir"), ("etcd.local.dataDir", "/etcd/local/dataDir")]
        {
            let held = cluster.text(pointer);
            if !held.is_empty() && !held.starts_with('/') {
                self.invalid(path, held, "path is not absolute");
            }
        }
        let endpoint = cluster.text("/controlPlaneEndpoint");
        if !endpoint.is_empty() && !is_endpoint(endpoint) {
            self.invalid("controlPlaneEndpoint", endpoint, "endpoint is not valid");
        }
        let gates = cluster.value.get("featureGates").and_then(Value::as_object);
        for gate in gates.into_iter().flatten().map(|(gate, _)| gate) {
            if !GATES.contains(&gate.as_str()) {
                self.invalid("featureGates", gate, &format!("{gate} is not a valid feature name."));
            }
        }
        let external = cluster.value.pointer("/etcd/external");
        if external.is_some() && cluster.has_local_etcd() {
            self.invalid("etcd", "", ".Etcd.Local and .Etcd.External are mutually exclusive");
        }
        if external.is_some() && cluster.texts("/etcd/external/endpoints").is_empty() {
            self.invalid("etcd.external.endpoints", "", "at least one endpoint must be specified");
        }
        let algorithm = cluster.given_algorithm();
        if Algorithm::named(algorithm).is_none() {
            let why = format!(
                "Invalid encryption algorithm {algorithm:?}. Must be one of [ECDSA-P256 ECDSA-P384 RSA-2048 RSA-3072 RSA-4096]"
            );
            self.invalid("encryptionAlgorithm", algorithm, &why);
        }
    }

    fn node(&mut self, node: &Node) {
        if node.name.is_empty() {
            let why = "--node-name or .nodeRegistration.name in the config file is a required value.";
            self.0.push(format!("nodeRegistration: Required value: {why}"));
        } else {
            for why in dns1123_subdomain(&node.name) {
                self.invalid("nodeRegistration.name", &node.name, &why);
            }
        }
        if !node.cri_socket.starts_with("unix://") {
            let scheme = node.cri_socket.split_once("://").map_or("", |(scheme, _)| scheme);
            let why = format!("only URL scheme \"unix\" is supported, got {scheme:?}");
            self.invalid("nodeRegistration.criSocket", &node.cri_socket, &why);
        }
        for (index, (name, _)) in node.kubelet_extra_args.iter().flat_map(Arguments::pairs).enumerate() {
            if name.is_empty() {
                self.invalid(
                    "nodeRegistration.kubeletExtraArgs",
                    &format!("index {index}"),
                    "argument has no name",
                );
            }
        }
    }

    fn endpoint(&mut self, endpoint: &Endpoint, path: &str) {
        if endpoint.advertise_address.parse::<IpAddr>().is_err() {
            self.invalid(
                &format!("{path}.advertiseAddress"),
                &endpoint.advertise_address,
                "ip address is not valid",
            );
        }
        if endpoint.bind_port == 0 || endpoint.bind_port > 65_535 {
            self.0.push(format!(
                "{path}.bindPort: Invalid value: {}: port number is not valid",
                endpoint.bind_port
            ));
        }
    }

    fn certificate_key(&mut self, key: &str, path: &str) {
        if key.is_empty() {
            return;
        }
        if !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            self.invalid_secret(path, "certificate key decoding error: encoding/hex: invalid byte");
        } else if key.len() != 64 {
            let why = format!(
                "invalid certificate key size {}, the key must be an AES key of size 32",
                key.len() / 2
            );
            self.invalid_secret(path, &why);
        }
    }
}

fn is_subnet(text: &str) -> bool {
    text.trim().split_once('/').is_some_and(|(address, bits)| {
        let most = match address.parse() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    })
}

fn is_host_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// A host name or address, with or without a port.
fn is_endpoint(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let host = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => host,
        Some(_) => return false,
        None => text,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok() || dns1123_subdomain(host).is_empty()
}
