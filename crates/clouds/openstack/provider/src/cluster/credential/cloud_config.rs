//! What is written into the Secrets of a cluster's application credential.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_openstack_client::{Cloud, Trust};
use serde_json::{Value, json};

use super::Fresh;

/// Where the manifests of the cloud controller manager and the CSI driver mount the Secret.
const MOUNTED: &str = "/etc/config";

/// How the services of the project are reached.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reach {
    /// Name of the cloud in `clouds.yaml`.
    pub name: String,
    pub auth_url: String,
    pub region: Option<String>,
    pub interface: &'static str,
    /// Authorities to trust, in PEM.
    pub authorities: Option<Vec<u8>>,
    /// Certificates are not checked.
    pub unchecked: bool,
}

impl Reach {
    pub(super) fn of(cloud: &Cloud) -> Self {
        Self {
            name: cloud.name.clone(),
            auth_url: cloud.identity_url.to_string(),
            region: cloud.region.clone(),
            interface: cloud.interface.as_str(),
            authorities: match &cloud.trust {
                Trust::Bundle(pem) => Some(pem.clone()),
                Trust::System | Trust::Anyone => None,
            },
            unchecked: matches!(cloud.trust, Trust::Anyone),
        }
    }
}

/// A text in double quotes, as JSON, YAML and the INI files of Go's gcfg read it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// `clouds.yaml` with one cloud.
fn clouds_yaml(reach: &Reach, fresh: &Fresh) -> String {
    let mut text = format!(
        "clouds:\n  {}:\n    auth_type: v3applicationcredential\n    auth:\n      auth_url: {}\n      \
         application_credential_id: {}\n      application_credential_secret: {}\n    interface: {}\n",
        quoted(&reach.name),
        quoted(&reach.auth_url),
        quoted(&fresh.id),
        quoted(fresh.secret.expose()),
        reach.interface,
    );
    // Writing to a String cannot fail.
    if let Some(region) = &reach.region {
        let _ = writeln!(text, "    region_name: {}", quoted(region));
    }
    if reach.unchecked {
        text.push_str("    verify: false\n");
    }
    text
}

/// `cloud.conf` of the cloud controller manager and the CSI drivers.
fn cloud_conf(reach: &Reach, fresh: &Fresh) -> String {
    let mut text = format!(
        "[Global]\nauth-url={}\napplication-credential-id={}\napplication-credential-secret={}\n",
        quoted(&reach.auth_url),
        quoted(&fresh.id),
        quoted(fresh.secret.expose()),
    );
    if let Some(region) = &reach.region {
        let _ = writeln!(text, "region={}", quoted(region));
    }
    let _ = writeln!(text, "os-endpoint-type={}", quoted(reach.interface));
    if reach.authorities.is_some() {
        let _ = writeln!(text, "ca-file=\"{MOUNTED}/cacert\"");
    }
    if reach.unchecked {
        text.push_str("tls-insecure=true\n");
    }
    text
}

/// The data of the Secret with the credential.
pub(super) fn files(reach: &Reach, fresh: &Fresh) -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<String, Vec<u8>> = [
        ("clouds.yaml".to_owned(), clouds_yaml(reach, fresh).into_bytes()),
        ("cloud.conf".to_owned(), cloud_conf(reach, fresh).into_bytes()),
    ]
    .into();
    files.extend(reach.authorities.clone().map(|pem| ("cacert".to_owned(), pem)));
    files
}

/// The data of the Secret that a ClusterResourceSet applies: the Secret `cloud-config` in `kube-system`, which the manifests
/// of cloud-provider-openstack refer to.
pub(super) fn resources(reach: &Reach, fresh: &Fresh) -> BTreeMap<String, Vec<u8>> {
    let files = files(reach, fresh);
    let encoded: BTreeMap<&String, String> =
        files.iter().map(|(name, file)| (name, STANDARD.encode(file))).collect();
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "cloud-config", "namespace": "kube-system"}, "data": encoded,
    });
    [("cloud-config.yaml".to_owned(), manifest.to_string().into_bytes())].into()
}
