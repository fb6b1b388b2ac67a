//! The proxy that containerd uses.

use capstan_capi_types::bootstrap::File;

use super::Manifests;
use super::files::file;
use crate::types::ProxyConfiguration;

/// Reached without a proxy by every machine.
const DIRECT: [&str; 3] = ["localhost", "127.0.0.1", ".svc"];

pub(super) fn file_of(manifests: &Manifests<'_>, proxy: &ProxyConfiguration) -> Result<File, String> {
    let network = &manifests.cluster.spec.cluster_network;
    let zones = manifests.datacenter.spec.zones();
    let hosts = zones.iter().filter_map(|zone| {
        let url = url::Url::parse(&zone.management_api_endpoint).ok()?;
        url.host_str().map(str::to_owned)
    });
    let (host, port) = manifests.endpoint()?;
    let direct: Vec<String> = network
        .pods
        .cidr_blocks
        .iter()
        .chain(&network.services.cidr_blocks)
        .chain(&proxy.no_proxy)
        .cloned()
        .chain(DIRECT.map(str::to_owned))
        .chain(hosts)
        .chain([format!("{host}:{port}")])
        .collect();
    let content = format!(
        "[Service]\nEnvironment=\"HTTP_PROXY={}\"\nEnvironment=\"HTTPS_PROXY={}\"\nEnvironment=\"NO_PROXY={}\"\n",
        proxy.http_proxy,
        proxy.https_proxy,
        direct.join(",")
    );
    Ok(file("/etc/systemd/system/containerd.service.d/http-proxy.conf", content))
}
