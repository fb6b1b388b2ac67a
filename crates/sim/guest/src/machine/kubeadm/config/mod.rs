//! kubeadm's configuration: parsed, validated, with defaults, in one version.

mod addresses;
mod cluster;
mod documents;
mod duration;
mod shape;
mod validate;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub(super) use addresses::of_api_service;
pub(super) use cluster::Cluster;
use documents::Document;
pub(super) use duration::go_duration;

use super::{Abort, Kubeadm};

/// `InitConfiguration`, in either version.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Init {
    pub(super) bootstrap_tokens: Vec<Value>,
    pub(super) node_registration: Node,
    #[serde(rename = "localAPIEndpoint")]
    pub(super) local_api_endpoint: Endpoint,
    pub(super) certificate_key: String,
    pub(super) skip_phases: Vec<String>,
    pub(super) patches: Option<Patches>,
}

/// `JoinConfiguration`, in either version.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Join {
    pub(super) node_registration: Node,
    pub(super) ca_cert_path: String,
    pub(super) discovery: Discovery,
    pub(super) control_plane: Option<JoinControlPlane>,
    pub(super) skip_phases: Vec<String>,
    pub(super) patches: Option<Patches>,
    pub(super) timeouts: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct JoinControlPlane {
    #[serde(rename = "localAPIEndpoint")]
    pub(super) local_api_endpoint: Endpoint,
    pub(super) certificate_key: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Discovery {
    pub(super) bootstrap_token: Option<TokenDiscovery>,
    pub(super) file: Option<FileDiscovery>,
    pub(super) tls_bootstrap_token: String,
    /// v1beta3 has the discovery timeout here.
    pub(super) timeout: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenDiscovery {
    pub(super) token: String,
    pub(super) api_server_endpoint: String,
    pub(super) ca_cert_hashes: Vec<String>,
    #[serde(rename = "unsafeSkipCAVerification")]
    pub(super) unsafe_skip_ca_verification: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FileDiscovery {
    pub(super) kube_config_path: String,
}

/// `nodeRegistration`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Node {
    pub(super) name: String,
    #[serde(rename = "criSocket")]
    pub(super) cri_socket: String,
    pub(super) taints: Option<Vec<Value>>,
    pub(super) kubelet_extra_args: Option<Arguments>,
    pub(super) ignore_preflight_errors: Vec<String>,
    pub(super) image_pull_policy: String,
}

/// Extra arguments of a component: a map in v1beta3, a list in v1beta4.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Arguments {
    Map(BTreeMap<String, String>),
    List(Vec<Argument>),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Argument {
    name: String,
    value: String,
}

impl Arguments {
    /// Names and values in order.
    pub(super) fn pairs(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Map(map) => map.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            Self::List(list) => list.iter().map(|flag| (flag.name.as_str(), flag.value.as_str())).collect(),
        }
    }
}

/// `localAPIEndpoint`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Endpoint {
    pub(super) advertise_address: String,
    pub(super) bind_port: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Patches {
    pub(super) directory: String,
}

impl Kubeadm<'_, '_> {
    /// The documents of a configuration file.
    fn documents(&self, path: &str) -> Result<Vec<Document>, Abort> {
        let text = self.guest.files.read(path).map_err(|error| {
            Abort(format!("unable to read config from {path:?} : open {path}: {}", error.lower()))
        })?;
        documents::split(&String::from_utf8_lossy(text)).map_err(Abort)
    }

    /// The configuration of `kubeadm init`.
    pub(super) fn init_configuration(&mut self, path: &str) -> Result<(Init, Cluster), Abort> {
        let mut documents = self.documents(path)?;
        // Sorted by kind: the ClusterConfiguration first.
        documents.sort_by(|a, b| (&a.api_version, &a.kind).cmp(&(&b.api_version, &b.kind)));
        let (mut init, mut cluster) = (None, None);
        for document in documents {
            match document.kind.as_str() {
                "InitConfiguration" => init = Some(self.decode(&document, "InitConfiguration")?),
                "ClusterConfiguration" => cluster = Some(self.decode(&document, "ClusterConfiguration")?),
                _ => self.other(&document)?,
            }
        }
        if init.is_none() && cluster.is_none() {
            return Err(Abort::new(
                "no InitConfiguration or ClusterConfiguration kind was found in the configuration file",
            ));
        }
        self.complete_init(typed(init.unwrap_or(Value::Null))?, cluster.unwrap_or(Value::Null))
    }

    /// Applies defaults to an init configuration and validates it.
    pub(super) fn complete_init(&mut self, mut init: Init, cluster: Value) -> Result<(Init, Cluster), Abort> {
        let cluster = Cluster::completed(cluster, &self.version)?;
        self.default_node(&mut init.node_registration);
        self.default_endpoint(&mut init.local_api_endpoint)?;
        let endpoint = cluster.text("/controlPlaneEndpoint");
        if let Some(why) = addresses::endpoint_fault(endpoint).filter(|_| !endpoint.is_empty()) {
            return Err(Abort(why));
        }
        self.check_versions(&cluster)?;
        let mut errors = validate::Errors::default();
        errors.init(&init);
        errors.cluster(&cluster, &self.version);
        errors.into_result()?;
        Ok((init, cluster))
    }

    /// The configuration of `kubeadm join`.
    pub(super) fn join_configuration(&mut self, path: &str) -> Result<Join, Abort> {
        let mut found = None;
        for document in self.documents(path)? {
            if document.kind == "JoinConfiguration" {
                found = Some(self.decode(&document, "JoinConfiguration")?);
            } else {
                let line = format!(
                    "[config] WARNING: Ignored configuration document with GroupVersionKind {}, Kind={}",
                    document.api_version, document.kind
                );
                self.warn(&line);
            }
        }
        let found = found.ok_or_else(|| Abort::new("no JoinConfiguration found in the supplied config"))?;
        self.complete_join(typed(found)?)
    }

    /// Applies defaults to a join configuration and validates it.
    pub(super) fn complete_join(&mut self, mut join: Join) -> Result<Join, Abort> {
        if join.ca_cert_path.is_empty() {
            join.ca_cert_path = "/etc/kubernetes/pki/ca.crt".to_owned();
        }
        if let (true, Some(token)) =
            (join.discovery.tls_bootstrap_token.is_empty(), &join.discovery.bootstrap_token)
        {
            join.discovery.tls_bootstrap_token = token.token.clone();
        }
        if let Some(file) = &mut join.discovery.file
            && let Some(path) = file.kube_config_path.strip_prefix("file://")
        {
            file.kube_config_path = path.to_owned();
        }
        self.default_node(&mut join.node_registration);
        if let Some(control_plane) = &mut join.control_plane {
            self.default_endpoint(&mut control_plane.local_api_endpoint)?;
        }
        let mut errors = validate::Errors::default();
        errors.join(&join, &self.guest.files);
        errors.into_result()?;
        Ok(join)
    }

    fn default_node(&mut self, node: &mut Node) {
        let name = if node.name.is_empty() { &self.guest.hostname } else { &node.name };
        node.name = name.trim().to_lowercase();
        if node.cri_socket.is_empty() {
            node.cri_socket = "unix:///var/run/containerd/containerd.sock".to_owned();
        } else if !node.cri_socket.starts_with("unix") {
            let line = format!(
                "Usage of CRI endpoints without URL scheme is deprecated and can cause kubelet errors in the future. \
                 Automatically prepending scheme \"unix\" to the \"criSocket\" with value {:?}. Please update your configuration!",
                node.cri_socket
            );
            self.warn(&line);
            node.cri_socket = format!("unix://{}", node.cri_socket);
        }
    }

    /// Where the API server listens: an address that others can reach.
    fn default_endpoint(&self, endpoint: &mut Endpoint) -> Result<(), Abort> {
        if endpoint.advertise_address.is_empty() {
            endpoint.advertise_address = "0.0.0.0".to_owned();
        }
        let Some(given) = addresses::address(&endpoint.advertise_address) else {
            return Err(Abort(format!(
                "couldn't use {:?} as \"apiserver-advertise-address\", must be ipv4 or ipv6 address",
                endpoint.advertise_address
            )));
        };
        let is_reached = !given.is_unspecified() && !given.is_loopback();
        endpoint.advertise_address =
            if is_reached { given.to_string() } else { self.guest.address.to_string() };
        if endpoint.bind_port == 0 {
            endpoint.bind_port = 6443;
        }
        Ok(())
    }

    /// Decodes a document of kubeadm's own kinds: known version, fields of the right types. Unknown fields are
    /// dropped with a warning, as kubeadm does.
    fn decode(&mut self, document: &Document, kind: &'static str) -> Result<Value, Abort> {
        let known = self.supported(document)?;
        let Some(fields) = known.then(|| shape::of(&document.api_version, kind)).flatten() else {
            return Err(Abort(format!(
                "no kind {kind:?} is registered for version {:?} in scheme \"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme/scheme.go:31\"",
                document.api_version
            )));
        };
        let (value, unknown) = shape::check(&document.value, fields, kind).map_err(Abort)?;
        if !unknown.is_empty() {
            let fields: Vec<String> =
                unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
            let line = format!(
                "error unmarshaling configuration {}: strict decoding error: {}",
                document.described(),
                fields.join(", ")
            );
            self.warn(&line);
        }
        Ok(value)
    }

    /// Whether this kubeadm supports a version of its configuration.
    fn supported(&mut self, document: &Document) -> Result<bool, Abort> {
        let version = document.api_version.as_str();
        if let Some((_, use_)) = shape::OLD.iter().find(|(old, _)| *old == version) {
            return Err(Abort(format!(
                "your configuration file uses an old API spec: {version:?} (kind: {:?}). Please use kubeadm {use_} instead and run \
                 'kubeadm config migrate --old-config old-config-file --new-config new-config-file', which will write the new, \
                 similar spec using a newer API version.",
                document.kind
            )));
        }
        match version {
            "kubeadm.k8s.io/v1beta3" => {
                if self.version.at_least(31) {
                    let line = format!(
                        "your configuration file uses a deprecated API spec: {version:?} (kind: {:?}). Please use 'kubeadm config migrate'",
                        document.kind
                    );
                    self.warn(&line);
                }
                Ok(true)
            }
            "kubeadm.k8s.io/v1beta4" => Ok(self.version.at_least(31)),
            _ => Ok(false),
        }
    }

    /// A document of another kind: a component's is accepted, others are ignored.
    fn other(&mut self, document: &Document) -> Result<(), Abort> {
        let component = ["kubelet.config.k8s.io/", "kubeproxy.config.k8s.io/"];
        if component.iter().any(|group| document.api_version.starts_with(group)) {
            return Ok(());
        }
        if document.api_version.starts_with("kubeadm.k8s.io/") {
            self.supported(document)?;
        }
        let line = format!("unknown configuration {}", document.described());
        self.warn(&line);
        let line = format!(
            "[config] WARNING: Ignored configuration document with GroupVersionKind {}, Kind={}",
            document.api_version, document.kind
        );
        self.warn(&line);
        Ok(())
    }
}

/// A checked document as its type.
fn typed<T: for<'de> Deserialize<'de> + Default>(value: Value) -> Result<T, Abort> {
    if value.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(without_nulls(value)).map_err(|error| {
        // Types were checked: what remains is a number out of range, and the error could contain its value.
        Abort(format!("json: cannot unmarshal configuration at line {}", error.line()))
    })
}

/// Removes fields that are `null`.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
