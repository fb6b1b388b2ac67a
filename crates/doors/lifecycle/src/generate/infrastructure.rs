//! The Cluster and its infrastructure.

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{
    APIEndpoint, Cluster, ClusterNetwork, ContractVersionedObjectReference, NetworkRanges,
};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomainSpec, Endpoint, Network, SecretReference, Zone,
};
use capstan_object::Object;

use super::{Manifests, cluster_name, metadata};
use crate::names::SYSTEM_NAMESPACE;

/// A reference to an object by kind.
pub(super) fn reference<T: Object>(name: &str) -> ContractVersionedObjectReference {
    ContractVersionedObjectReference {
        kind: T::KIND.kind.to_owned(),
        name: name.to_owned(),
        api_group: T::KIND.group.to_owned(),
    }
}

pub(super) fn cluster(manifests: &Manifests<'_>) -> Result<Cluster, String> {
    let own = manifests.cluster;
    let name = cluster_name(own);
    let (host, port) = manifests.endpoint()?;
    let network = &own.spec.cluster_network;
    let ranges = |blocks: &[String]| NetworkRanges { cidr_blocks: blocks.to_vec() };
    let mut cluster = Cluster { metadata: metadata(own, name), ..Cluster::default() };
    cluster.spec.cluster_network = ClusterNetwork {
        pods: ranges(&network.pods.cidr_blocks),
        services: ranges(&network.services.cidr_blocks),
        ..ClusterNetwork::default()
    };
    cluster.spec.control_plane_endpoint = APIEndpoint { host: host.to_owned(), port: port.into() };
    cluster.spec.control_plane_ref = reference::<KubeadmControlPlane>(name);
    cluster.spec.infrastructure_ref = reference::<CloudStackCluster>(name);
    Ok(cluster)
}

pub(super) fn cloudstack_cluster(manifests: &Manifests<'_>) -> Result<CloudStackCluster, String> {
    let own = manifests.cluster;
    let (host, port) = manifests.endpoint()?;
    let mut cluster =
        CloudStackCluster { metadata: metadata(own, cluster_name(own)), ..CloudStackCluster::default() };
    cluster.spec.control_plane_endpoint = Endpoint { host: host.to_owned(), port: port.into() };
    let zones = manifests.datacenter.spec.zones();
    cluster.spec.failure_domains = zones
        .into_iter()
        .map(|zone| CloudStackFailureDomainSpec {
            name: zone.name,
            zone: Zone {
                id: zone.zone.id,
                name: zone.zone.name,
                network: Network {
                    id: zone.zone.network.id,
                    name: zone.zone.network.name,
                    ..Network::default()
                },
            },
            domain: zone.domain,
            account: zone.account,
            acs_endpoint: SecretReference {
                name: zone.credentials_ref,
                namespace: SYSTEM_NAMESPACE.to_owned(),
            },
            ..CloudStackFailureDomainSpec::default()
        })
        .collect();
    Ok(cluster)
}
