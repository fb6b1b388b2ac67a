//! Rules of networks, the CNI and proxies.

use std::net::IpAddr;

use capstan_capi_types::admission::FieldError;
use ipnet::IpNet;

use super::Errors;
use crate::cni::Network;
use crate::endpoint;
use crate::names::annotation;
use crate::types::{Cilium, Cluster, ProxyConfiguration, Ranges};

const PATH: &str = "spec.clusterNetwork";
/// Nodes' shares of the Pods' addresses that the controller manager can number: 2^16.
const MASK_DIFFERENCE: i32 = 16;
/// Mask of a node's share without another.
const NODE_MASK: i32 = 24;

pub(super) fn validate(cluster: &Cluster, errors: &mut Errors) {
    let network = &cluster.spec.cluster_network;
    let pods = range(&network.pods, "pods", errors);
    let services = range(&network.services, "services", errors);
    let host = cluster.spec.control_plane_configuration.endpoint.as_ref();
    let address = host.and_then(|host| endpoint::parse(&host.host).ok()?.0.parse::<IpAddr>().ok());
    for (range, name) in [(pods, "pods"), (services, "services")] {
        if let (Some(range), Some(address)) = (range, address)
            && range.contains(&address)
        {
            let what = format!("the control plane endpoint is in the {name} CIDR block {range}");
            let path = "spec.controlPlaneConfiguration.endpoint.host";
            errors.push(FieldError::invalid(path, address.to_string(), what));
        }
    }
    if let (Some(pods), Some(services)) = (pods, services)
        && (pods.contains(&services) || services.contains(&pods))
    {
        let what = format!("the CIDR blocks of pods and services overlap: {pods}, {services}");
        errors.push(FieldError::forbidden(format!("{PATH}.services.cidrBlocks"), what));
    }
    if let Some(pods) = pods {
        let mask = network.nodes.as_ref().and_then(|nodes| nodes.cidr_mask_size).unwrap_or(NODE_MASK);
        let of_pods = i32::from(pods.prefix_len());
        let path = format!("{PATH}.nodes.cidrMaskSize");
        if mask <= of_pods {
            let what =
                format!("the range of a node must be smaller than the range of pods with mask {of_pods}");
            errors.push(FieldError::invalid(path, mask, what));
        } else if mask - of_pods > MASK_DIFFERENCE || mask > i32::from(pods.max_prefix_len()) {
            let what = format!(
                "the masks of pods ({of_pods}) and of a node may differ by at most {MASK_DIFFERENCE}"
            );
            errors.push(FieldError::invalid(path, mask, what));
        }
    }
    cni(cluster, errors);
    if let Some(proxy) = &cluster.spec.proxy_configuration {
        self::proxy(proxy, errors);
    }
}

fn range(ranges: &Ranges, name: &str, errors: &mut Errors) -> Option<IpNet> {
    let path = format!("{PATH}.{name}.cidrBlocks");
    match ranges.cidr_blocks.as_slice() {
        [] => errors.push(FieldError::required(path, format!("{name} CIDR block not specified or empty"))),
        [only] => match only.parse() {
            Ok(range) => return Some(range),
            Err(_) => {
                errors.push(FieldError::invalid(path, only.as_str(), "use a CIDR, such as 10.96.0.0/12"))
            }
        },
        _ => {
            let what = format!("multiple CIDR blocks for {name} are not yet supported: keep one");
            errors.push(FieldError::forbidden(path, what));
        }
    }
    None
}

fn cni(cluster: &Cluster, errors: &mut Errors) {
    let network = &cluster.spec.cluster_network;
    let kindnetd = "kindnetd is supported on Docker only: use cilium";
    match (network.cni.as_str(), &network.cni_config) {
        ("", None) => {
            errors.push(FieldError::required(format!("{PATH}.cniConfig"), "cni not specified: set cilium"));
        }
        ("", Some(config)) => {
            if config.kindnetd.is_some() {
                errors.push(FieldError::forbidden(format!("{PATH}.cniConfig.kindnetd"), kindnetd));
            } else if config.cilium.is_none() {
                let what = "no cni plugin specified: set cilium";
                errors.push(FieldError::required(format!("{PATH}.cniConfig.cilium"), what));
            }
        }
        (_, Some(_)) => {
            let what = "both old and new formats used, use only the cniConfig field";
            errors.push(FieldError::forbidden(format!("{PATH}.cni"), what));
        }
        ("cilium", None) => {}
        ("kindnetd", None) => errors.push(FieldError::forbidden(format!("{PATH}.cni"), kindnetd)),
        (other, None) => {
            errors.push(FieldError::not_supported(format!("{PATH}.cni"), other, &["cilium"]));
        }
    }
    if let Err(why) = Network::of(cluster) {
        errors.push(FieldError::invalid(
            format!("metadata.annotations[{}]", annotation::CNI),
            cluster.metadata.annotations.get(annotation::CNI).map_or("", String::as_str),
            why,
        ));
    }
    if let Some(settings) = cluster.cilium() {
        cilium(settings, errors);
    }
}

fn cilium(cilium: &Cilium, errors: &mut Errors) {
    let path = format!("{PATH}.cniConfig.cilium");
    let alone = Cilium { skip_upgrade: cilium.skip_upgrade, ..Cilium::default() };
    if cilium.skip_upgrade == Some(true) && *cilium != alone {
        let what = "when using skipUpgrade for cilium all other fields must be empty";
        errors.push(FieldError::forbidden(path.as_str(), what));
    }
    for (field, text, known) in [
        ("policyEnforcementMode", &cilium.policy_enforcement_mode, ["default", "always", "never"].as_slice()),
        ("routingMode", &cilium.routing_mode, &["default", "overlay", "direct"]),
    ] {
        if !text.is_empty() && !known.contains(&text.as_str()) {
            errors.push(FieldError::not_supported(format!("{path}.{field}"), text.as_str(), known));
        }
    }
    if cilium.routing_mode == "direct" && cilium.ipv4_native_routing_cidr.is_empty() {
        let what = "direct routing mode requires ipv4NativeRoutingCIDR to be set";
        errors.push(FieldError::required(format!("{path}.ipv4NativeRoutingCIDR"), what));
    }
}

fn proxy(proxy: &ProxyConfiguration, errors: &mut Errors) {
    let path = "spec.proxyConfiguration";
    for (field, text) in [("httpProxy", &proxy.http_proxy), ("httpsProxy", &proxy.https_proxy)] {
        let path = format!("{path}.{field}");
        if text.is_empty() {
            errors.push(FieldError::required(path, format!("no value set for {field}: use host:port")));
            continue;
        }
        if !is_plain(text) {
            let what =
                "spaces and the characters \" \\ % are not allowed: they mean something in systemd units";
            errors.push(FieldError::forbidden(path, what));
        } else if !is_proxy(text) {
            errors.push(FieldError::invalid(path, text.as_str(), "use host:port, or a URL with a port"));
        }
    }
    for (at, entry) in proxy.no_proxy.iter().enumerate() {
        if entry.is_empty() || !is_plain(entry) || entry.contains(',') {
            let what = "use a host, a domain or a CIDR";
            errors.push(FieldError::invalid(format!("{path}.noProxy[{at}]"), entry.as_str(), what));
        }
    }
}

/// Whether a text can be in a line of a systemd unit.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\%".contains(&byte))
}

/// `host:port`, or a URL with a port, which may have credentials and end with a slash.
fn is_proxy(text: &str) -> bool {
    let url = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let address = url.map_or(text, |url| {
        let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').map_or(authority, |(_, address)| address)
    });
    address.contains(':') && endpoint::parse(address).is_ok()
}
