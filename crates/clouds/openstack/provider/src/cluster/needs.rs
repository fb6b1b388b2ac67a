//! What a cluster takes of the quotas of its project besides its machines, and what its manifest names that is not there:
//! the part of a plan that concerns OpenStackClusters.

use capstan_openstack_types::v1beta2::OpenStackCluster;

use super::observe::external;
use super::plan;
use crate::error::CloudError;
use crate::lookup;
use crate::project::Access;

/// What is yet to be created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub networks: u64,
    pub subnets: u64,
    pub routers: u64,
    pub ports: u64,
    pub security_groups: u64,
    pub floating_ips: u64,
    pub load_balancers: u64,
}

impl Needs {
    pub(crate) fn add(&mut self, more: Self) {
        self.networks += more.networks;
        self.subnets += more.subnets;
        self.routers += more.routers;
        self.ports += more.ports;
        self.security_groups += more.security_groups;
        self.floating_ips += more.floating_ips;
        self.load_balancers += more.load_balancers;
    }
}

/// What a cluster still needs, by what its status lacks.
pub(crate) fn needs(object: &OpenStackCluster) -> Needs {
    let (spec, status) = (&object.spec, &object.status);
    let mut needs = Needs::default();
    let mut add = |wanted: bool, of: fn(&mut Needs) -> &mut u64| *of(&mut needs) += u64::from(wanted);
    let new = status.network.is_none();
    let managed = plan::is_managed(spec) && new;
    let routed = managed && spec.enable_external_network != Some(false);
    add(managed, |it| &mut it.networks);
    add(managed, |it| &mut it.subnets);
    add(routed && spec.router.is_none(), |it| &mut it.routers);
    // The router's interface.
    add(routed, |it| &mut it.ports);
    let balanced = plan::load_balancer(spec).is_some() && status.api_server_managed_load_balancer.is_none();
    add(balanced, |it| &mut it.load_balancers);
    // Its address in the network.
    add(balanced, |it| &mut it.ports);
    let given = plan::given_floating_ip(spec).is_some();
    add(new && plan::wants_floating_ip(spec) && !given, |it| &mut it.floating_ips);
    let bastion = plan::wants_bastion(spec) && status.bastion.is_none();
    let bastion_ip = spec.bastion.as_ref().and_then(|bastion| bastion.floating_ip.as_ref());
    add(bastion && bastion_ip.is_none(), |it| &mut it.floating_ips);
    add(bastion, |it| &mut it.ports);
    if spec.managed_security_groups.is_some() {
        add(status.control_plane_security_group.is_none(), |it| &mut it.security_groups);
        add(status.worker_security_group.is_none(), |it| &mut it.security_groups);
        add(bastion && status.bastion_security_group.is_none(), |it| &mut it.security_groups);
    }
    needs
}

/// What the manifest of a new cluster names and the project does not see.
pub(crate) async fn missing(object: &OpenStackCluster, access: &Access) -> Vec<CloudError> {
    if object.status.network.is_some() {
        return Vec::new();
    }
    let spec = &object.spec;
    let mut errors = Vec::new();
    errors.extend(external(object, access).await.err());
    if let Some(router) = &spec.router {
        errors.extend(lookup::router(access, router, "spec.router").await.err());
    }
    if plan::is_managed(spec) {
        return errors;
    }
    let network = match &spec.network {
        Some(network) => match lookup::network(access, network, false, "spec.network").await {
            Ok(id) => Some(id),
            Err(error) => {
                errors.push(error);
                return errors;
            }
        },
        None => None,
    };
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let field = format!("spec.subnets[{index}]");
        errors.extend(lookup::subnet(access, subnet, network.as_deref(), &field).await.err());
    }
    errors
}

#[cfg(test)]
mod tests {
    use capstan_openstack_types::v1beta2::NetworkStatusWithSubnets;
    use serde_json::{Value, json};

    use super::*;

    fn cluster(spec: Value) -> OpenStackCluster {
        let spec = serde_json::from_value(spec).expect("a spec");
        OpenStackCluster { spec, ..OpenStackCluster::default() }
    }

    #[test]
    fn a_new_cluster_needs_what_it_creates_and_one_that_has_it_nothing() {
        let identity = json!({"name": "s", "cloudName": "c"});
        let managed = json!({"identityRef": identity, "managedSubnets": [{"cidr": "10.6.0.0/24"}],
            "apiServer": {"managedLoadBalancer": {}}, "managedSecurityGroups": {}});
        let all = Needs {
            networks: 1,
            subnets: 1,
            routers: 1,
            ports: 2,
            security_groups: 2,
            floating_ips: 1,
            load_balancers: 1,
        };
        assert_eq!(needs(&cluster(managed.clone())), all);
        let mut existing = cluster(managed);
        existing.status.network = Some(NetworkStatusWithSubnets::default());
        existing.status.api_server_managed_load_balancer = Some(Default::default());
        existing.status.control_plane_security_group = Some(Default::default());
        existing.status.worker_security_group = Some(Default::default());
        assert_eq!(needs(&existing), Needs::default());
        let theirs = json!({"identityRef": identity, "network": {"id": "n"},
            "apiServer": {"floatingIP": "198.51.100.7"}});
        assert_eq!(needs(&cluster(theirs)), Needs::default());
    }
}
