//! The OpenStackServer of a machine or bastion, as CAPO makes it.

use capstan_capi_types::kubernetes::LocalObjectReference;
use capstan_openstack_types::conversion::server_ports;
use capstan_openstack_types::v1alpha1::OpenStackServerSpec;
use capstan_openstack_types::v1beta2::{
    FixedIP, NetworkParam, OpenStackCluster, OpenStackMachineSpec, PortOpts, SecurityGroupParam, SubnetParam,
};

/// What a server gets beside the spec of its machine.
pub(crate) struct Surroundings<'a> {
    pub cluster: &'a OpenStackCluster,
    pub zone: Option<String>,
    /// Name of the Secret with the user data.
    pub user_data: Option<String>,
    /// Id of the managed security group.
    pub group: Option<&'a str>,
}

/// The server of a machine's spec, or why there can be none.
pub(crate) fn server_spec(
    spec: &OpenStackMachineSpec,
    around: &Surroundings<'_>,
) -> Result<OpenStackServerSpec, String> {
    let cluster = around.cluster;
    let mut tags = spec.tags.clone();
    tags.extend(cluster.spec.tags.iter().filter(|tag| !spec.tags.contains(tag)).cloned());
    let ports = server_ports(&ports(spec, around)?).map_err(|error| format!("spec.ports: {error}"))?;
    Ok(OpenStackServerSpec {
        identity_ref: spec.identity_ref.clone().unwrap_or_else(|| cluster.spec.identity_ref.clone()),
        image: spec.image.clone(),
        ports,
        ssh_key_name: spec.ssh_key_name.clone(),
        additional_block_devices: spec.additional_block_devices.clone(),
        availability_zone: around.zone.clone().filter(|zone| !zone.is_empty()),
        config_drive: spec.config_drive,
        flavor: spec.flavor.filter.as_ref().and_then(|filter| filter.name.clone()),
        flavor_id: spec.flavor.id.clone(),
        floating_ip_pool_ref: spec.floating_ip_pool_ref.clone(),
        root_volume: spec.root_volume.clone(),
        // They are on the ports.
        security_groups: Vec::new(),
        server_group: spec.server_group.clone(),
        server_metadata: spec.server_metadata.clone(),
        tags,
        trunk: spec.trunk.then_some(true),
        user_data_ref: around.user_data.clone().map(|name| LocalObjectReference { name }),
        scheduler_hint_additional_properties: spec.scheduler_hint_additional_properties.clone(),
    })
}

/// The ports: in the cluster's network and with the managed security group where the manifest has nothing else.
fn ports(spec: &OpenStackMachineSpec, around: &Surroundings<'_>) -> Result<Vec<PortOpts>, String> {
    let cluster = around.cluster;
    let network = cluster.status.network.as_ref().map(|network| network.id.clone());
    let mut ports = spec.ports.clone();
    if ports.is_empty() {
        if network.is_none() {
            return Err("the cluster has no network: set spec.ports with a network".to_owned());
        }
        ports.push(PortOpts::default());
    }
    let subnets = match &cluster.spec.primary_subnet {
        Some(primary) => std::slice::from_ref(primary),
        None => cluster.spec.subnets.as_slice(),
    };
    for port in &mut ports {
        if let (None, Some(network)) = (&port.network, &network) {
            port.network = Some(NetworkParam { id: Some(network.clone()), filter: None });
            if port.fixed_ips.is_empty() {
                let fixed = |subnet: &SubnetParam| FixedIP { subnet: Some(subnet.clone()), ip_address: None };
                port.fixed_ips = subnets.iter().map(fixed).collect();
            }
        }
        if port.enable_port_security == Some(false) {
            continue;
        }
        if let (true, Some(group)) = (port.security_groups.is_empty(), around.group) {
            port.security_groups.push(SecurityGroupParam { id: Some(group.to_owned()), filter: None });
        }
        port.security_groups.extend(spec.security_groups.iter().cloned());
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use capstan_openstack_types::v1beta2::NetworkStatusWithSubnets;

    use super::*;

    fn cluster() -> OpenStackCluster {
        let mut cluster = OpenStackCluster::default();
        cluster.status.network =
            Some(NetworkStatusWithSubnets { id: "net".to_owned(), ..NetworkStatusWithSubnets::default() });
        cluster
    }

    fn spec_of(ports: Vec<PortOpts>) -> OpenStackServerSpec {
        let cluster = cluster();
        let around = Surroundings { cluster: &cluster, zone: None, user_data: None, group: Some("managed") };
        server_spec(&OpenStackMachineSpec { ports, ..OpenStackMachineSpec::default() }, &around)
            .expect("a server")
    }

    fn groups(spec: &OpenStackServerSpec) -> Vec<Vec<Option<String>>> {
        spec.ports.iter().map(|port| port.security_groups.iter().map(|it| it.id.clone()).collect()).collect()
    }

    #[test]
    fn a_machine_without_ports_has_one_in_the_cluster_network_with_the_managed_group() {
        let spec = spec_of(Vec::new());
        let network = spec.ports[0].network.as_ref().and_then(|network| network.id.clone());
        assert_eq!((spec.ports.len(), network), (1, Some("net".to_owned())));
        assert_eq!(groups(&spec), [[Some("managed".to_owned())]]);
    }

    #[test]
    fn a_port_that_is_not_guarded_has_no_group_and_one_with_groups_keeps_them() {
        let open = PortOpts { enable_port_security: Some(false), ..PortOpts::default() };
        let own = SecurityGroupParam { id: Some("own".to_owned()), filter: None };
        let with = PortOpts { security_groups: vec![own], ..PortOpts::default() };
        let spec = spec_of(vec![open, with]);
        assert_eq!(groups(&spec), [vec![], vec![Some("own".to_owned())]]);
        assert_eq!(spec.ports[0].disable_port_security, Some(true));
    }

    #[test]
    fn a_machine_without_any_network_is_refused() {
        let cluster = OpenStackCluster::default();
        let around = Surroundings { cluster: &cluster, zone: None, user_data: None, group: None };
        assert!(server_spec(&OpenStackMachineSpec::default(), &around).is_err());
    }
}
