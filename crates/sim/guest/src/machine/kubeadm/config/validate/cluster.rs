//! Validation of `ClusterConfiguration`.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use capstan_schema::meta::dns1123_subdomain;
use regex::Regex;
use serde_json::Value;

use super::super::super::keys::Algorithm;
use super::super::super::version::Version;
use super::super::addresses::{address, scheme};
use super::super::{Arguments, Cluster};
use super::Errors;

/// Feature gates and the minor releases whose kubeadm has them.
const GATES: [(&str, RangeInclusive<u64>); 9] = [
    ("ControlPlaneKubeletLocalMode", 31..=35),
    ("EtcdLearnerMode", 27..=32),
    ("IPv6DualStack", 16..=23),
    ("NodeLocalCRISocket", 32..=u64::MAX),
    ("PublicKeysECDSA", 19..=u64::MAX),
    ("RootlessControlPlane", 22..=u64::MAX),
    ("UnversionedKubeletConfigMap", 22..=25),
    ("UpgradeAddonsBeforeControlPlane", 28..=30),
    ("WaitForAllControlPlaneComponents", 30..=34),
];

/// An image repository: a host and a path, or either.
static REPOSITORY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let host = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
    let domain = format!(r"(?:{host}(?:\.{host})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let part = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    Regex::new(&format!("^(?:{domain}|{part})(?:/{part})*$")).ok()
});

impl Errors {
    pub(in super::super) fn cluster(&mut self, cluster: &Cluster, kubeadm: &Version) {
        self.repository(cluster, "dns.imageRepository");
        self.networking(cluster);
        self.names(cluster, "apiServer.certSANs");
        for component in ["apiServer", "controllerManager", "scheduler"] {
            self.arguments(cluster.arguments(component).as_ref(), &format!("{component}.extraArgs"));
        }
        self.absolute(cluster, "certificatesDir");
        let gates = cluster.value.get("featureGates").and_then(Value::as_object);
        for gate in gates.into_iter().flatten().map(|(gate, _)| gate) {
            let knows = |(name, minors): &(&str, RangeInclusive<u64>)| {
                name == gate && minors.contains(&kubeadm.minor())
            };
            if !GATES.iter().any(knows) {
                self.invalid("featureGates", gate, &format!("{gate} is not a valid feature name."));
            }
        }
        self.repository(cluster, "imageRepository");
        self.etcd(cluster);
        let algorithm = cluster.given_algorithm();
        if Algorithm::named(algorithm).is_none() {
            let why = format!(
                "Invalid encryption algorithm {algorithm:?}. Must be one of [ECDSA-P256 ECDSA-P384 RSA-2048 RSA-3072 RSA-4096]"
            );
            self.invalid("encryptionAlgorithm", algorithm, &why);
        }
    }

    fn etcd(&mut self, cluster: &Cluster) {
        let Some(external) = cluster.value.pointer("/etcd/external") else {
            self.absolute(cluster, "etcd.local.dataDir");
            self.names(cluster, "etcd.local.serverCertSANs");
            self.names(cluster, "etcd.local.peerCertSANs");
            self.repository(cluster, "etcd.local.imageRepository");
            self.arguments(cluster.arguments("etcd.local").as_ref(), "etcd.local.extraArgs");
            return;
        };
        if cluster.has_local_etcd() {
            self.invalid("etcd", "", ".Etcd.Local and .Etcd.External are mutually exclusive");
            return;
        }
        let is_set = |name: &str| external.get(name).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
        let files = ["caFile", "certFile", "keyFile"];
        let [ca, certificate, key] = files.map(is_set);
        if certificate != key {
            let why = "either both or none of .Etcd.External.CertFile and .Etcd.External.KeyFile must be set";
            self.invalid("etcd.external", "", why);
        }
        if certificate && key && !ca {
            let why =
                "setting .Etcd.External.CertFile and .Etcd.External.KeyFile requires .Etcd.External.CAFile";
            self.invalid("etcd.external", "", why);
        }
        if cluster.texts("/etcd/external/endpoints").is_empty() {
            self.invalid("etcd.external.endpoints", "", "at least one endpoint must be specified");
        }
        self.urls(cluster, "etcd.external.endpoints", ca || certificate || key);
        self.urls(cluster, "etcd.external.httpEndpoints", false);
        for file in files.into_iter().filter(|file| is_set(file)) {
            self.absolute(cluster, &format!("etcd.external.{file}"));
        }
    }

    /// URLs of etcd; HTTPS only if there are certificates.
    fn urls(&mut self, cluster: &Cluster, path: &str, needs_https: bool) {
        for url in cluster.texts(&pointer(path)) {
            match scheme(url) {
                Err(why) => self.invalid(path, url, &format!("URL parse error: {why}")),
                Ok(scheme) => {
                    if needs_https && scheme != "https" {
                        self.invalid(path, url, "the URL must be using the HTTPS scheme");
                    }
                    if scheme.is_empty() {
                        self.invalid(path, url, "the URL without scheme is not allowed");
                    }
                }
            }
        }
    }

    /// Names in a certificate.
    fn names(&mut self, cluster: &Cluster, path: &str) {
        for name in cluster.texts(&pointer(path)) {
            let plain = name.strip_prefix("*.").unwrap_or(name);
            let reasons = dns1123_subdomain(&plain.to_lowercase());
            if !reasons.is_empty() && address(name).is_none() {
                let why = format!(
                    "altname is not a valid IP address, DNS label or a DNS label with subdomain wildcards: {}",
                    reasons.join("; ")
                );
                self.invalid(path, name, &why);
            }
        }
    }

    fn absolute(&mut self, cluster: &Cluster, path: &str) {
        let held = cluster.text(&pointer(path));
        if !held.is_empty() && !held.starts_with('/') {
            self.invalid(path, held, "path is not absolute");
        }
    }

    fn repository(&mut self, cluster: &Cluster, path: &str) {
        let held = cluster.text(&pointer(path));
        if !held.is_empty() && REPOSITORY.as_ref().is_some_and(|form| !form.is_match(held)) {
            self.invalid(path, held, "invalid image repository format");
        }
    }

    /// Flags must have names.
    pub(super) fn arguments(&mut self, arguments: Option<&Arguments>, path: &str) {
        for (index, (name, _)) in arguments.into_iter().flat_map(Arguments::pairs).enumerate() {
            if name.is_empty() {
                self.invalid(path, &format!("index {index}"), "argument has no name");
            }
        }
    }
}

/// The JSON pointer of a field.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}
