//! Validation of configurations, with kubeadm's messages. Tokens and keys are redacted.

mod cluster;
mod networks;

use capstan_schema::meta::dns1123_subdomain;
use serde_json::{Value, json};

use super::super::Abort;
use super::addresses::{scheme, split_host_port};
use super::{Endpoint, Init, Join, Node};
use crate::machine::files::Files;
use crate::machine::screen::is_token;

/// Validation errors.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<String>);

impl Errors {
    /// All errors, joined as Go does.
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

    /// Like `invalid`, for secrets.
    fn invalid_secret(&mut self, path: &str, why: &str) {
        self.0.push(format!("{path}: Invalid value: \"<redacted>\": {why}"));
    }

    pub(super) fn init(&mut self, init: &Init) {
        self.node(&init.node_registration);
        for (index, token) in init.bootstrap_tokens.iter().enumerate() {
            self.token(token, &format!("bootstrapTokens.{index}"));
        }
        self.endpoint(&init.local_api_endpoint, "localAPIEndpoint");
        self.certificate_key(&init.certificate_key, "certificateKey");
    }

    /// A token to create; its format was checked when it was read.
    fn token(&mut self, token: &Value, path: &str) {
        let list = |name: &str, default: Value| token.get(name).cloned().unwrap_or(default);
        let usages = list("usages", json!(["signing", "authentication"]));
        let groups = list("groups", json!(["system:bootstrappers:kubeadm:default-node-token"]));
        let texts = |list: &Value| -> Vec<String> {
            let items = list.as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let unknown: Vec<String> = texts(&usages)
            .into_iter()
            .filter(|usage| !["signing", "authentication"].contains(&usage.as_str()))
            .collect();
        if !unknown.is_empty() {
            self.0.push(format!(
                "{path}.usages: Invalid value: {usages}: invalid bootstrap token usage string: {}, valid usage options: \
                 signing,authentication",
                unknown.join(",")
            ));
        }
        if !texts(&groups).is_empty() && !texts(&usages).iter().any(|usage| usage == "authentication") {
            self.0.push(format!(
                "{path}.groups: Invalid value: {groups}: token groups cannot be specified unless --usages includes \
                 \"authentication\""
            ));
        }
        for group in texts(&groups).iter().filter(|group| !is_bootstrap_group(group)) {
            self.0.push(format!(
                "{path}.groups: Invalid value: {groups}: bootstrap group {group:?} is invalid (must match \
                 \\Asystem:bootstrappers:[a-z0-9:-]{{0,255}}[a-z0-9]\\z)"
            ));
        }
        if token.get("expires").is_some() && token.get("ttl").is_some() {
            let why = "the BootstrapToken .TTL and .Expires fields are mutually exclusive";
            self.invalid(path, "", why);
        }
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
            if let Err(why) = split_host_port(&token.api_server_endpoint) {
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

    fn node(&mut self, node: &Node) {
        if node.name.is_empty() {
            let why = "--node-name or .nodeRegistration.name in the config file is a required value.";
            self.0.push(format!("nodeRegistration: Required value: {why}"));
        } else {
            for why in dns1123_subdomain(&node.name) {
                self.invalid("nodeRegistration.name", &node.name, &why);
            }
        }
        match scheme(&node.cri_socket) {
            Err(why) => {
                let why = format!("URL parsing error: {why}");
                self.invalid("nodeRegistration.criSocket", &node.cri_socket, &why);
            }
            Ok("unix") => {}
            Ok(scheme) => {
                let why = format!("only URL scheme \"unix\" is supported, got {scheme:?}");
                self.invalid("nodeRegistration.criSocket", &node.cri_socket, &why);
            }
        }
        self.arguments(node.kubelet_extra_args.as_ref(), "nodeRegistration.kubeletExtraArgs");
        if !["", "Always", "IfNotPresent", "Never"].contains(&node.image_pull_policy.as_str()) {
            self.invalid("nodeRegistration.imagePullPolicy", &node.image_pull_policy, "invalid pull policy");
        }
    }

    fn endpoint(&mut self, endpoint: &Endpoint, path: &str) {
        if !(1..=65_535).contains(&endpoint.bind_port) {
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
        } else if !key.len().is_multiple_of(2) {
            self.invalid_secret(path, "certificate key decoding error: encoding/hex: odd length hex string");
        } else if key.len() != 64 {
            let why = format!(
                "invalid certificate key size {}, the key must be an AES key of size 32",
                key.len() / 2
            );
            self.invalid_secret(path, &why);
        }
    }
}

/// A group that tokens may use.
fn is_bootstrap_group(name: &str) -> bool {
    name.strip_prefix("system:bootstrappers:").is_some_and(|rest| {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b":-".contains(&byte);
        let ends_well = rest.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit());
        rest.len() <= 256 && ends_well && rest.bytes().all(allowed)
    })
}
