//! Registry mirrors: where containerd pulls images from.

use std::collections::BTreeMap;

use capstan_capi_types::bootstrap::{File, SecretFileSource};
use serde_json::Value;

use super::files::file;
use crate::names;
use crate::types::RegistryMirrorConfiguration;

/// The registry that is mirrored if the manifest names none.
const DEFAULT_REGISTRY: &str = "public.ecr.aws";
const CERTIFICATES: &str = "/etc/containerd/certs.d";

/// Commands that make containerd read the files.
pub(super) const RELOAD: &str = "cat /etc/containerd/config_append.toml >> /etc/containerd/config.toml";

/// With credentials only root may read what was appended.
pub(super) const PROTECT: &str = "chmod 600 /etc/containerd/config.toml";

/// Key of the Secret with containerd's configuration.
pub(crate) const CONFIGURATION_KEY: &str = "config_append.toml";

/// Who pulls from a mirror. `Debug` does not show it.
pub(crate) struct Login {
    pub username: String,
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

fn address(mirror: &RegistryMirrorConfiguration) -> String {
    match mirror.endpoint.contains(':') {
        true => format!("[{}]:{}", mirror.endpoint, mirror.port),
        false => format!("{}:{}", mirror.endpoint, mirror.port),
    }
}

/// What containerd's configuration gets.
pub(crate) fn configuration(mirror: &RegistryMirrorConfiguration, login: Option<&Login>) -> String {
    let registry = "plugins.\"io.containerd.grpc.v1.cri\".registry";
    let mut text = format!("[{registry}]\n  config_path = \"{CERTIFICATES}\"\n");
    if let Some(Login { username, password }) = login {
        // Strings of JSON are strings of TOML.
        let (username, password) = (Value::from(username.as_str()), Value::from(password.as_str()));
        text.push_str(&format!(
            "  [{registry}.configs.\"{}\".auth]\n    username = {username}\n    password = {password}\n",
            address(mirror)
        ));
    }
    text
}

/// The file that is appended to containerd's configuration; with credentials its content is in a Secret.
fn appended(mirror: &RegistryMirrorConfiguration, cluster: &str) -> File {
    let path = "/etc/containerd/config_append.toml";
    if !mirror.authenticate {
        return file(path, configuration(mirror, None));
    }
    let mut file = file(path, String::new());
    file.permissions = "0600".to_owned();
    file.content_from.secret =
        SecretFileSource { name: names::registry(cluster), key: CONFIGURATION_KEY.to_owned() };
    file
}

pub(super) fn files(mirror: &RegistryMirrorConfiguration, cluster: &str) -> Vec<File> {
    let base = address(mirror);
    let mut files = Vec::new();
    let certificate = mirror.ca_cert_content.trim();
    if !certificate.is_empty() {
        files.push(file(&format!("{CERTIFICATES}/{base}/ca.crt"), format!("{certificate}\n")));
    }
    files.push(appended(mirror, cluster));
    let mut hosts = |registry: &str, mirrored: &str| {
        let mut content = format!(
            "server = \"https://{registry}\"\n\n[host.\"https://{}\"]\n  capabilities = [\"pull\", \"resolve\"]\n  override_path = true\n",
            api(mirrored)
        );
        if !certificate.is_empty() {
            content.push_str(&format!("  ca = \"{CERTIFICATES}/{base}/ca.crt\"\n"));
        }
        if mirror.insecure_skip_verify {
            content.push_str("  skip_verify = true\n");
        }
        files.push(file(&format!("{CERTIFICATES}/{registry}/hosts.toml"), content));
    };
    hosts(&base, &base);
    // The last one counts if a registry is there twice.
    let mut registries: BTreeMap<&str, String> = mirror
        .oci_namespaces
        .iter()
        .map(|it| (it.registry.as_str(), format!("{base}/{}", it.namespace.trim_matches('/'))))
        .collect();
    if registries.is_empty() {
        registries.insert(DEFAULT_REGISTRY, base.clone());
    }
    for (registry, mirrored) in &registries {
        hosts(registry, mirrored);
    }
    files
}

/// The API of a registry: its second version, before the path.
fn api(address: &str) -> String {
    match address.trim_end_matches('/').split_once('/') {
        Some((host, path)) => format!("{host}/v2/{path}"),
        None => format!("{}/v2", address.trim_end_matches('/')),
    }
}
