//! `ClusterConfiguration` with defaults, as stored in the ConfigMap `kubeadm-config`.

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::super::keys::Algorithm;
use super::super::version::Version;
use super::super::{Abort, Kubeadm};
use super::{Arguments, go_duration};

#[derive(Debug, Clone)]
pub(in super::super) struct Cluster {
    pub(in super::super) value: Value,
    /// The configured key algorithm; empty for the default.
    given_algorithm: String,
    /// The version was a label, which only the internet can resolve.
    label: Option<String>,
}

impl Cluster {
    /// Applies defaults to a configuration of either version and converts it to the version that this kubeadm writes.
    pub(super) fn completed(given: Value, kubeadm: &Version) -> Result<Self, Abort> {
        let mut value = super::without_nulls(given);
        if value.is_null() {
            value = json!({});
        }
        let writes_v1beta4 = kubeadm.at_least(31);
        if writes_v1beta4 && value["apiVersion"] == "kubeadm.k8s.io/v1beta3" {
            convert(&mut value);
        }
        let given_algorithm = value["encryptionAlgorithm"].as_str().unwrap_or_default().to_owned();
        let version =
            value["kubernetesVersion"].as_str().filter(|text| !text.is_empty()).unwrap_or("stable-1");
        let is_label = ["stable", "latest", "ci/", "release/"].iter().any(|label| version.starts_with(label));
        let label = is_label.then(|| version.to_owned());
        let version = match (&label, Version::parse(version)) {
            (Some(_), _) => format!("v{kubeadm}"),
            (None, Some(version)) => format!("v{version}"),
            (None, None) => {
                return Err(Abort(format!(
                    "version {version:?} doesn't match patterns for neither semantic version nor labels (stable, latest, ...)"
                )));
            }
        };
        value["kubernetesVersion"] = version.into();
        value["apiVersion"] =
            if writes_v1beta4 { "kubeadm.k8s.io/v1beta4" } else { "kubeadm.k8s.io/v1beta3" }.into();
        value["kind"] = "ClusterConfiguration".into();
        let mut cluster = Self { value, given_algorithm, label };
        cluster.default("/certificatesDir", "/etc/kubernetes/pki".into());
        cluster.default("/imageRepository", "registry.k8s.io".into());
        cluster.default("/clusterName", "kubernetes".into());
        cluster.default("/networking/serviceSubnet", "10.96.0.0/12".into());
        cluster.default("/networking/dnsDomain", "cluster.local".into());
        if cluster.value.pointer("/etcd/external").is_none() {
            cluster.default("/etcd/local/dataDir", "/var/lib/etcd".into());
        }
        let mut sections = vec!["apiServer", "controllerManager", "scheduler", "dns"];
        if writes_v1beta4 {
            cluster.default("/encryptionAlgorithm", "RSA-2048".into());
            cluster.default("/certificateValidityPeriod", "8760h0m0s".into());
            cluster.default("/caCertificateValidityPeriod", "87600h0m0s".into());
            sections.push("proxy");
        }
        for section in sections {
            if cluster.value.get(section).is_none() {
                cluster.value[section] = json!({});
            }
        }
        Ok(cluster)
    }

    /// The configuration that a joining machine starts with: the endpoint.
    pub(in super::super) fn of_endpoint(endpoint: String, kubeadm: &Version) -> Result<Self, Abort> {
        Self::completed(
            json!({"controlPlaneEndpoint": endpoint, "kubernetesVersion": format!("v{kubeadm}")}),
            kubeadm,
        )
    }

    /// Sets a missing or empty field.
    fn default(&mut self, pointer: &str, value: Value) {
        let mut at = &mut self.value;
        for key in pointer.split('/').skip(1) {
            if at.is_null() {
                *at = json!({});
            }
            at = &mut at[key];
        }
        if at.is_null() || at == "" {
            *at = value;
        }
    }

    /// A field, empty if missing.
    pub(in super::super) fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// A list of texts.
    pub(in super::super) fn texts(&self, pointer: &str) -> Vec<&str> {
        self.value
            .pointer(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Extra arguments of a component, such as `etcd.local`.
    pub(super) fn arguments(&self, component: &str) -> Option<Arguments> {
        let held = self.value.pointer(&format!("/{}/extraArgs", component.replace('.', "/")))?;
        serde_json::from_value(held.clone()).ok()
    }

    pub(in super::super) fn version(&self) -> Option<Version> {
        Version::parse(self.text("/kubernetesVersion"))
    }

    pub(in super::super) fn certificates_dir(&self) -> &str {
        self.text("/certificatesDir")
    }

    pub(in super::super) fn has_local_etcd(&self) -> bool {
        self.value.pointer("/etcd/local").is_some()
    }

    /// The key algorithm; its name was validated.
    pub(in super::super) fn algorithm(&self) -> Algorithm {
        Algorithm::named(&self.given_algorithm).unwrap_or(Algorithm::EcdsaP256)
    }

    pub(super) fn given_algorithm(&self) -> &str {
        &self.given_algorithm
    }

    /// Validity of certificates, of CAs or others.
    pub(in super::super) fn validity(&self, authority: bool) -> SignedDuration {
        let (pointer, hours) = if authority {
            ("/caCertificateValidityPeriod", 87_600)
        } else {
            ("/certificateValidityPeriod", 8_760)
        };
        go_duration(self.text(pointer)).unwrap_or(SignedDuration::from_hours(hours))
    }

    /// URL of the API server: the cluster's endpoint, or this machine.
    pub(in super::super) fn server(&self, local: &str) -> String {
        match self.text("/controlPlaneEndpoint") {
            "" => format!("https://{local}"),
            endpoint if endpoint.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
                format!("https://{endpoint}")
            }
            endpoint => format!("https://{endpoint}:6443"),
        }
    }
}

/// Converts v1beta3 to v1beta4: extra arguments become lists.
fn convert(value: &mut Value) {
    for pointer in ["/apiServer", "/controllerManager", "/scheduler", "/etcd/local"] {
        let Some(component) = value.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        component.remove("timeoutForControlPlane");
        if let Some(Value::Object(flags)) = component.get("extraArgs") {
            let flags: Map<String, Value> = flags.clone();
            let list = flags.into_iter().map(|(name, value)| json!({"name": name, "value": value}));
            let list: Value = list.collect();
            component.insert("extraArgs".to_owned(), list);
        }
    }
}

impl Kubeadm<'_, '_> {
    /// Checks that this kubeadm supports the version. A newer version is a warning in the preflight checks.
    pub(super) fn check_versions(&mut self, cluster: &Cluster) -> Result<(), Abort> {
        if let Some(label) = &cluster.label {
            let line = format!(
                "could not fetch a Kubernetes version from the internet: unable to get URL for label {label:?}; falling back to \
                 the local client version: v{}",
                self.version
            );
            self.warn(&line);
        }
        let Some(version) = cluster.version() else { return Ok(()) };
        let oldest = self.version.minor().saturating_sub(1);
        if version.major() == self.version.major() && version.minor() < oldest {
            return Err(Abort(format!(
                "this version of kubeadm only supports deploying clusters with the control plane version >= 1.{oldest}.0. \
                 Current version: v{version}"
            )));
        }
        Ok(())
    }
}
