//! Who may reach the API server.

use std::collections::BTreeSet;

use capstan_cloudstack_types::v1beta3::CloudStackCluster;

use crate::annotation;

/// Who may reach the API server if nobody says.
pub(crate) const EVERYBODY: &str = "0.0.0.0/0";

/// The manifest says who may reach the API server.
pub(super) fn is_asked(cluster: &CloudStackCluster) -> bool {
    let text = cluster.metadata.annotations.get(annotation::ALLOWED_CIDRS);
    text.is_some_and(|text| text.split(',').any(|cidr| !cidr.trim().is_empty()))
}

/// The port of a cluster's endpoint.
pub(super) fn api_port(cluster: &CloudStackCluster) -> u16 {
    let port = u16::try_from(cluster.spec.control_plane_endpoint.port).ok().filter(|port| *port != 0);
    port.unwrap_or(6443)
}

/// Who may reach the API server.
pub(crate) fn allowed(cluster: &CloudStackCluster) -> Vec<String> {
    let text = cluster.metadata.annotations.get(annotation::ALLOWED_CIDRS).map_or("", String::as_str);
    let cidrs: BTreeSet<&str> = text.split(',').map(str::trim).filter(|cidr| !cidr.is_empty()).collect();
    match cidrs.is_empty() {
        true => vec![EVERYBODY.to_owned()],
        false => cidrs.into_iter().map(str::to_owned).collect(),
    }
}
