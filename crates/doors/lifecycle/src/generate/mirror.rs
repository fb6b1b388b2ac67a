//! Registry mirrors: where containerd pulls images from.

use std::collections::BTreeMap;

use capstan_capi_types::bootstrap::File;

use super::files::file;
use crate::types::RegistryMirrorConfiguration;

/// The registry that is mirrored if the manifest names none.
const DEFAULT_REGISTRY: &str = "public.ecr.aws";
const CERTIFICATES: &str = "/etc/containerd/certs.d";

/// Commands that make containerd read the files.
pub(super) const RELOAD: &str = "cat /etc/containerd/config_append.toml >> /etc/containerd/config.toml";

pub(super) fn files(mirror: &RegistryMirrorConfiguration) -> Vec<File> {
    let base = match mirror.endpoint.contains(':') {
        true => format!("[{}]:{}", mirror.endpoint, mirror.port),
        false => format!("{}:{}", mirror.endpoint, mirror.port),
    };
    let mut files = Vec::new();
    let certificate = mirror.ca_cert_content.trim();
    if !certificate.is_empty() {
        files.push(file(&format!("{CERTIFICATES}/{base}/ca.crt"), format!("{certificate}\n")));
    }
    files.push(file(
        "/etc/containerd/config_append.toml",
        format!("[plugins.\"io.containerd.grpc.v1.cri\".registry]\n  config_path = \"{CERTIFICATES}\"\n"),
    ));
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
