//! Reads what a decision about an OpenStackCluster is based on.

use std::collections::BTreeMap;
use std::time::Duration;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_controller::{ObserveError, View};
use capstan_object::{Key, ObjectMeta};
use capstan_openstack_client::load_balancer::{LoadBalancer, LoadBalancerFlavor, NameFilter, Pool};
use capstan_openstack_client::network::{
    FloatingIp, Network, Port, Router, SecurityGroup, Subnet, SubnetFilter,
};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{self, NetworkStatusWithSubnets, OpenStackCluster, OpenStackMachine};
use capstan_openstack_types::{ManagedSecurityGroupName, names};

use super::cluster_name::cluster_name;
use super::credential::{self, FreshCredentials};
use super::observed::{Balancer, CloudState, NodePort, Seen};
use super::plan::{self, Group};
use super::{image, server_groups, services, volumes};
use crate::clouds::Clouds;
use crate::error::CloudError;
use crate::mark::{self, Owner};
use crate::project::{Access, CATALOG, PENDING, SETTLED};
use crate::{code, lookup};

pub(super) async fn observe(
    object: &OpenStackCluster,
    view: &View,
    clouds: (&Clouds, &FreshCredentials),
) -> Result<Seen, ObserveError> {
    let cluster = owners::of::<Cluster>(&object.metadata, view)?;
    let cluster_name = cluster_name(&object.metadata, cluster.as_deref());
    let mut machines = Vec::new();
    let mut bastion = None;
    let mut wanted_groups = BTreeMap::new();
    if let Some(name) = &cluster_name {
        let all = view.labelled::<OpenStackMachine>(&object.metadata.namespace, label::CLUSTER_NAME, name)?;
        machines = all.iter().map(|machine| machine.metadata.name.clone()).collect();
        machines.sort();
        wanted_groups = server_groups::wanted(&all, object, view)?;
        let key = Key::new(object.metadata.namespace.as_str(), names::bastion(name));
        let held = view.get::<OpenStackServer>(&key)?;
        let uid = &object.metadata.uid;
        bastion = held.filter(|held| held.metadata.owner_references.iter().any(|owner| owner.uid == *uid));
    }
    let cloud = match &cluster_name {
        Some(name) => state(object, (name, bastion.as_deref(), &wanted_groups), view, clouds).await,
        None => Ok(CloudState::default()),
    };
    Ok(Seen { cluster, cluster_name, machines, bastion, wanted_groups, cloud })
}

async fn state(
    object: &OpenStackCluster,
    (cluster, bastion, wanted_groups): (&str, Option<&OpenStackServer>, &BTreeMap<String, String>),
    view: &View,
    (clouds, fresh): (&Clouds, &FreshCredentials),
) -> Result<CloudState, CloudError> {
    let access = clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await?;
    let mut state = CloudState::default();
    let deleting = object.metadata.is_deleting();
    if !deleting {
        state.external = external(object, &access).await?;
        state.zones = access.zones().await?.to_vec();
    }
    let of = Lookup { access: &access, object, cluster, mark: mark::of(&object.metadata), deleting };
    if plan::is_managed(&object.spec) {
        of.managed_network(&mut state).await?;
    } else {
        state.existing = of.existing_network().await?;
    }
    of.groups(&mut state).await?;
    state.server_groups = server_groups::observe(object, cluster, wanted_groups, &access).await?;
    state.credentials = credential::observe(object, cluster, (&access, view), fresh).await?;
    state.images = image::observe(object, &access, view).await?;
    state.volumes = volumes::observe(object, cluster, &access, view).await?;
    of.endpoint(&mut state).await?;
    if object.spec.bastion.is_some() || bastion.is_some() || deleting {
        of.bastion_address(bastion, &mut state).await?;
    }
    if !deleting {
        let network = state.network.as_ref().map(|network| network.id.to_string());
        let network = network.or_else(|| state.existing.as_ref().map(|network| network.id.clone()));
        if let Some(network) = network {
            state.control_plane = control_plane(object, cluster, &network, &access, view).await?;
        }
    }
    state.next_round = Some(access.next_round());
    Ok(state)
}

/// The external network: the manifest's, or the only one there is.
pub(crate) async fn external(
    object: &OpenStackCluster,
    access: &Access,
) -> Result<Option<v1beta2::NetworkStatus>, CloudError> {
    if object.spec.enable_external_network == Some(false) {
        return Ok(None);
    }
    let all = access.external_networks().await?;
    let shown = |network: &Network| v1beta2::NetworkStatus {
        name: network.name.clone(),
        id: network.id.to_string(),
        tags: network.tags.clone(),
    };
    let field = "spec.externalNetwork";
    match (&object.spec.external_network, all.as_slice()) {
        (Some(param), _) => {
            let id = lookup::network(access, param, true, field).await?;
            let known = all.iter().find(|network| network.id.as_str() == id).map(shown);
            let missing = || {
                let message =
                    format!("{field}: {id} is not an external network that is visible to the project");
                CloudError::new(code::NOT_FOUND, "OpenStackError", message)
            };
            known.map(Some).ok_or_else(missing)
        }
        (None, []) => Ok(None),
        (None, [only]) => Ok(Some(shown(only))),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|network| network.name.as_str()).take(5).collect();
            let message = format!("there are several external networks ({}): set {field}", names.join(", "));
            Err(CloudError::new(code::AMBIGUOUS, "OpenStackError", message))
        }
    }
}

/// The thing of a name: ours by its mark, else one without a mark.
fn named<'a, R>(
    items: &'a [R],
    name: &str,
    mark: &str,
    deleting: bool,
    read: impl Fn(&R) -> (&str, &str),
) -> Result<Option<&'a R>, CloudError> {
    let of = |wanted: Owner| {
        items.iter().find(|item| {
            let (held, description) = read(item);
            held == name && mark::owner(description, mark) == wanted
        })
    };
    match of(Owner::Ours).or_else(|| of(Owner::Unmarked)) {
        Some(item) => Ok(Some(item)),
        None if !deleting && of(Owner::Foreign).is_some() => {
            let message = format!(
                "{name} exists in the project for another OpenStackCluster: use another name or namespace for this cluster, \
                 or another project"
            );
            Err(CloudError::new(code::NOT_OURS, "NotOurs", message))
        }
        None => Ok(None),
    }
}

struct Lookup<'a> {
    access: &'a Access,
    object: &'a OpenStackCluster,
    cluster: &'a str,
    mark: String,
    deleting: bool,
}

impl Lookup<'_> {
    async fn managed_network(&self, state: &mut CloudState) -> Result<(), CloudError> {
        let name = names::network(&self.object.metadata.namespace, self.cluster);
        let age = self.network_age().await?;
        let networks = self.access.all::<Network>(age).await?;
        let found = named(&networks, &name, &self.mark, self.deleting, |it| (&it.name, &it.description))?;
        state.network = found.cloned();
        if let Some(network) = &state.network {
            let subnets = self.access.all::<Subnet>(age).await?;
            state.subnets = subnets.iter().filter(|it| it.network_id == network.id).cloned().collect();
        }
        if let Some(param) = &self.object.spec.router {
            let id = lookup::router(self.access, param, "spec.router").await?;
            let known = self.access.all::<Router>(age).await?;
            state.router = match known.iter().find(|router| router.id.as_str() == id) {
                Some(router) => Some(router.clone()),
                None => self.access.client.find(&id.as_str().into()).await?,
            };
        } else if state.network.is_some() || self.deleting {
            let routers = self.access.all::<Router>(age).await?;
            let found = named(&routers, &name, &self.mark, self.deleting, |it| (&it.name, &it.description))?;
            state.router = found.cloned();
        }
        let Some(network) = &state.network else { return Ok(()) };
        if state.router.is_none() && !self.deleting {
            state.gateway = self.gateway(state.external.as_ref()).await?;
            return Ok(());
        }
        let ports = self.access.all::<Port>(SETTLED).await?;
        let here = ports.iter().filter(|port| port.network_id == network.id);
        let routed =
            |port: &Port| port.device_owner.starts_with("network:") && port.device_owner.contains("router");
        let router = state.router.as_ref().map(|router| router.id.as_str()).unwrap_or_default();
        let interfaces = || here.clone().filter(|port| routed(port) && port.device_id == router);
        let has = |ipv6: bool| {
            interfaces().flat_map(|port| &port.fixed_ips).any(|ip| ip.ip_address.contains(':') == ipv6)
        };
        (state.attached, state.attached_ipv6) = match state.subnets.iter().all(|it| it.cidr.contains(':')) {
            // Its only subnet.
            true => (interfaces().next().is_some(), has(true)),
            false => (has(false), has(true)),
        };
        if self.deleting {
            let others = here.filter(|port| !port.device_owner.starts_with("network:"));
            state.ports = others.cloned().collect();
            state.services = services::observe(self.access, network).await?;
        }
        Ok(())
    }

    /// How old lists of networks, subnets and routers may be. Neutron deletes none of them while the router has a port in
    /// the subnet: the list of ports, which servers need anyway, shows that they are there.
    async fn network_age(&self) -> Result<Duration, CloudError> {
        let status = &self.object.status;
        let (Some(network), Some(router), false) = (&status.network, &status.router, self.deleting) else {
            return Ok(SETTLED);
        };
        let ports = self.access.all::<Port>(SETTLED).await?;
        let mut interfaces = ports.iter().filter(|port| port.device_id == router.id);
        let joined = |subnet: &v1beta2::Subnet| {
            interfaces.any(|port| port.fixed_ips.iter().any(|ip| ip.subnet_id.as_str() == subnet.id))
        };
        Ok(if network.subnets.first().is_some_and(joined) { CATALOG } else { SETTLED })
    }

    /// Subnets and addresses of the router that is to be created.
    async fn gateway(
        &self,
        external: Option<&v1beta2::NetworkStatus>,
    ) -> Result<Vec<(String, String)>, CloudError> {
        let wanted = self.object.spec.managed_router.as_ref().map(|router| router.external_ips.as_slice());
        let external = external.map(|network| network.id.as_str());
        let mut addresses = Vec::new();
        for (index, ip) in wanted.unwrap_or_default().iter().enumerate() {
            let field = format!("spec.managedRouter.externalIPs[{index}].subnet");
            let subnet = lookup::subnet(self.access, &ip.subnet, external, &field).await?;
            addresses.push((subnet, ip.fixed_ip.clone()));
        }
        Ok(addresses)
    }

    /// The network that the manifest refers to, with its subnets. It is looked up once.
    async fn existing_network(&self) -> Result<Option<NetworkStatusWithSubnets>, CloudError> {
        if let Some(known) = &self.object.status.network {
            return Ok(Some(known.clone()));
        }
        let spec = &self.object.spec;
        if self.deleting || (spec.network.is_none() && spec.subnets.is_empty()) {
            return Ok(None);
        }
        let mut subnets = Vec::new();
        let mut network = match &spec.network {
            Some(param) => Some(lookup::network(self.access, param, false, "spec.network").await?),
            None => None,
        };
        for (index, param) in spec.subnets.iter().enumerate() {
            let field = format!("spec.subnets[{index}]");
            let id = lookup::subnet(self.access, param, network.as_deref(), &field).await?;
            let subnet: Subnet = self.access.client.get(&id.as_str().into()).await?;
            let home = subnet.network_id.to_string();
            if *network.get_or_insert_with(|| home.clone()) != home {
                let message = format!(
                    "{field} is in network {home}, not in that of the others: use subnets of one network"
                );
                return Err(CloudError::new(code::REFUSED, "OpenStackError", message));
            }
            subnets.push(subnet);
        }
        let Some(network) = network else { return Ok(None) };
        self.described(&network, subnets).await.map(Some)
    }

    /// A network with some of its subnets, or all of them if none are given.
    async fn described(
        &self,
        network: &str,
        mut subnets: Vec<Subnet>,
    ) -> Result<NetworkStatusWithSubnets, CloudError> {
        let held: Network = self.access.client.get(&network.into()).await?;
        if subnets.is_empty() {
            let filter = SubnetFilter { network_id: Some(network.into()), ..SubnetFilter::default() };
            subnets = self.access.client.list::<Subnet>(&filter).await?;
        }
        Ok(plan::network_status(&held, &subnets))
    }

    async fn groups(&self, state: &mut CloudState) -> Result<(), CloudError> {
        if self.object.spec.managed_security_groups.is_none() && !self.deleting {
            return Ok(());
        }
        let all = self.access.all::<SecurityGroup>(SETTLED).await?;
        for group in [Group::ControlPlane, Group::Worker, Group::Bastion] {
            let name = plan::group_name(self.object, self.cluster, group);
            let found = named(&all, &name, &self.mark, self.deleting, |it| (&it.name, &it.description))?;
            state.groups.extend(found.cloned().map(|found| (group, found)));
        }
        Ok(())
    }

    async fn endpoint(&self, state: &mut CloudState) -> Result<(), CloudError> {
        let spec = &self.object.spec;
        if let Some(settings) = plan::load_balancer(spec) {
            self.balancer(state).await?;
            if !self.deleting && state.balancer.is_none() {
                if let Some(name) = &settings.flavor {
                    state.balancer_flavor = Some(self.balancer_flavor(name).await?);
                }
                state.balancer_network = self.balancer_network(settings).await?;
            }
            if state.balancer_network.is_none() {
                let known = self.object.status.api_server_managed_load_balancer.as_ref();
                state.balancer_network = known.and_then(|known| known.load_balancer_network.clone());
            }
        }
        if plan::wants_floating_ip(spec) || self.deleting {
            let all = self.access.all::<FloatingIp>(SETTLED).await?;
            state.address = self.floating_ip(&all, state.balancer.as_ref()).cloned();
        }
        Ok(())
    }

    async fn balancer(&self, state: &mut CloudState) -> Result<(), CloudError> {
        let name = names::load_balancer(&self.object.metadata.namespace, self.cluster);
        let mut age = SETTLED;
        let balancer = loop {
            let all = self.access.all::<LoadBalancer>(age).await?;
            let found = named(&all, &name, &self.mark, self.deleting, |it| (&it.name, &it.description))?;
            match found {
                Some(found) if found.provisioning_status.is_pending() && age == SETTLED => age = PENDING,
                found => break found.cloned(),
            }
        };
        let Some(balancer) = balancer else { return Ok(()) };
        let mut held = Balancer { balancer, ..Balancer::default() };
        // While it is being changed nothing of it can be changed.
        if !held.balancer.provisioning_status.is_pending() && !self.deleting {
            let (listeners, pools, monitors) = self.access.parts(&held.balancer).await?;
            held.monitors = monitors;
            let ours = |its: &[capstan_openstack_client::load_balancer::Ref<LoadBalancer>]| {
                its.iter().any(|it| it.id == held.balancer.id)
            };
            held.listeners = listeners.iter().filter(|it| ours(&it.loadbalancers)).cloned().collect();
            let mine: Vec<Pool> = pools.iter().filter(|it| ours(&it.loadbalancers)).cloned().collect();
            for pool in mine {
                let members = self.access.members(&pool).await?;
                held.pools.push((pool, members));
            }
        }
        state.balancer = Some(held);
        Ok(())
    }

    async fn balancer_flavor(&self, name: &str) -> Result<String, CloudError> {
        let filter = NameFilter { name: Some(name.to_owned()) };
        let found = self.access.client.list::<LoadBalancerFlavor>(&filter).await?;
        let enabled = found.iter().find(|flavor| flavor.enabled && flavor.name == name);
        enabled.map(|flavor| flavor.id.to_string()).ok_or_else(|| {
            let message = format!(
                "spec.apiServer.managedLoadBalancer.flavor: Octavia has no flavor {name:?} that is enabled; correct the name"
            );
            CloudError::new(code::NOT_FOUND, "OpenStackError", message)
        })
    }

    async fn balancer_network(
        &self,
        settings: &v1beta2::APIServerLoadBalancer,
    ) -> Result<Option<NetworkStatusWithSubnets>, CloudError> {
        let Some(param) = &settings.network else { return Ok(None) };
        let field = "spec.apiServer.managedLoadBalancer";
        let network = lookup::network(self.access, param, false, &format!("{field}.network")).await?;
        let mut subnets = Vec::new();
        for (index, param) in settings.subnets.iter().enumerate() {
            let field = format!("{field}.subnets[{index}]");
            let id = lookup::subnet(self.access, param, Some(&network), &field).await?;
            subnets.push(self.access.client.get(&id.as_str().into()).await?);
        }
        self.described(&network, subnets).await.map(Some)
    }

    /// The floating IP of the bastion: the manifest's, that of its port, or that of our mark.
    async fn bastion_address(
        &self,
        server: Option<&OpenStackServer>,
        state: &mut CloudState,
    ) -> Result<(), CloudError> {
        let all = self.access.all::<FloatingIp>(SETTLED).await?;
        let given = self.object.spec.bastion.as_ref().and_then(|bastion| bastion.floating_ip.as_ref());
        let ports = server.and_then(|server| server.status.resources.as_ref());
        let ports = ports.map(|resources| resources.ports.as_slice()).unwrap_or_default();
        let marked = plan::description(self.object, self.cluster, super::bastion::ADDRESS);
        let is_ours = |it: &&FloatingIp| match given {
            Some(given) => it.floating_ip_address == *given,
            None => {
                let at_port = |at: &str| ports.iter().any(|port| port.id == at);
                it.description == marked || it.port_id.as_ref().is_some_and(|port| at_port(port.as_str()))
            }
        };
        state.bastion_address = all.iter().find(is_ours).cloned();
        Ok(())
    }

    /// The floating IP of the API server: the manifest's, that of the load balancer, or that of our mark.
    fn floating_ip<'a>(&self, all: &'a [FloatingIp], balancer: Option<&Balancer>) -> Option<&'a FloatingIp> {
        if let Some(address) = plan::given_floating_ip(&self.object.spec) {
            return all.iter().find(|it| it.floating_ip_address == *address);
        }
        let vip = balancer.map(|held| &held.balancer.vip_port_id).filter(|port| !port.is_empty());
        let at_vip = all.iter().find(|it| vip.is_some() && it.port_id.as_ref() == vip);
        let marked = plan::description(self.object, self.cluster, plan::API_ADDRESS);
        at_vip.or_else(|| all.iter().find(|it| it.description == marked)).or_else(|| {
            // The user's, who named it as the endpoint; or CAPO's, without a load balancer.
            let host = &self.object.spec.control_plane_endpoint.as_ref()?.host;
            let created = |it: &FloatingIp| plan::created_address(self.object, self.cluster, &it.description);
            let may_lead = |it: &FloatingIp| it.port_id.is_none() || created(it);
            all.iter().find(|it| it.floating_ip_address == *host && may_lead(it))
        })
    }
}

/// Control plane machines that have a server, and how they are reached in the cluster's network.
async fn control_plane(
    object: &OpenStackCluster,
    cluster: &str,
    network: &str,
    access: &Access,
    view: &View,
) -> Result<BTreeMap<String, NodePort>, CloudError> {
    let namespace = object.metadata.namespace.as_str();
    let mut found = BTreeMap::new();
    for machine in view.labelled::<OpenStackMachine>(namespace, label::CLUSTER_NAME, cluster)? {
        let meta = &machine.metadata;
        if meta.is_deleting() || !is_control_plane(meta, view)? {
            continue;
        }
        let server = view.get::<OpenStackServer>(&Key::new(namespace, meta.name.as_str()))?;
        let Some(server) = server.filter(|server| server.status.instance_id.is_some()) else { continue };
        let ids = server.status.resources.as_ref().map(|resources| resources.ports.as_slice());
        let ports = access.all::<Port>(SETTLED).await?;
        let port = ids.unwrap_or_default().iter().find_map(|id| {
            let port = ports.iter().find(|port| port.id.as_str() == id.id)?;
            // Load balancer and floating IP are of IPv4 wherever there is any.
            let v4 = port.fixed_ips.iter().find(|ip| !ip.ip_address.contains(':'));
            let address = v4.or(port.fixed_ips.first())?.ip_address.clone();
            (port.network_id.as_str() == network).then(|| NodePort { port: id.id.clone(), address })
        });
        found.extend(port.map(|port| (meta.name.clone(), port)));
    }
    Ok(found)
}

/// The contract puts the label on Machines; most clones have it on the infrastructure too.
fn is_control_plane(meta: &ObjectMeta, view: &View) -> Result<bool, ObserveError> {
    if meta.labels.contains_key(label::CONTROL_PLANE) {
        return Ok(true);
    }
    let owner = owners::of::<Machine>(meta, view)?;
    Ok(owner.is_some_and(|owner| owner.metadata.labels.contains_key(label::CONTROL_PLANE)))
}

impl From<Group> for ManagedSecurityGroupName {
    fn from(group: Group) -> Self {
        match group {
            Group::ControlPlane => Self::ControlPlane,
            Group::Worker => Self::Worker,
            Group::Bastion => Self::Bastion,
        }
    }
}
