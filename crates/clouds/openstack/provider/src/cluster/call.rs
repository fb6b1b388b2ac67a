//! Calls for an OpenStackCluster. Each is one request that was complete when it was decided.

use capstan_controller::{Call, Outcome};
use capstan_openstack_client::compute::{NewServerGroup, ServerGroup};
use capstan_openstack_client::image::Image;
use capstan_openstack_client::load_balancer::{
    Listener, ListenerChange, LoadBalancer, Member, NewHealthMonitor, NewListener, NewMember, NewPool, Pool,
    ProvisioningStatus,
};
use capstan_openstack_client::network::{
    AllocationPool, ExternalGateway, FloatingIp, FloatingIpChange, GatewayIp, Network, NewFloatingIp,
    NewNetwork, NewRouter, NewSecurityGroup, NewSubnet, Port, Router, SecurityGroup, SecurityGroupRule,
    Subnet, SubnetChange,
};
use capstan_openstack_client::{Deletion, Error, Id};
use serde::{Deserialize, Serialize};

use super::balancer::{BalancerOrder, MemberOrder, Monitor};
use super::image::{self, WantedImage};
use super::rules::Rule;
use crate::error::failed;
use crate::project::{Access, Listed};

/// A kind of thing that has tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Tagged {
    Network,
    Subnet,
    Router,
    SecurityGroup,
    FloatingIp,
}

/// A call to the cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ClusterCall {
    CreateNetwork {
        name: String,
        description: String,
        mtu: Option<u32>,
        port_security: Option<bool>,
    },
    CreateSubnet {
        name: String,
        description: String,
        network: String,
        cidr: String,
        name_servers: Vec<String>,
        /// First and last addresses.
        pools: Vec<(String, String)>,
        /// Ports make their addresses from their MAC addresses.
        #[serde(default)]
        slaac: bool,
    },
    SetNameServers {
        subnet: String,
        name_servers: Vec<String>,
    },
    CreateRouter {
        name: String,
        description: String,
        external: String,
        /// Subnet and address of the gateway.
        addresses: Vec<(String, String)>,
    },
    AddInterface {
        router: String,
        subnet: String,
    },
    CreateGroup {
        name: String,
        description: String,
    },
    AddRules {
        group: String,
        rules: Vec<Rule>,
    },
    RemoveRule {
        group: String,
        rule: String,
    },
    CreateBalancer {
        name: String,
        order: Box<BalancerOrder>,
    },
    CreateListener {
        balancer: String,
        name: String,
        port: u16,
        allowed: Vec<String>,
        tags: Vec<String>,
    },
    SetAllowed {
        balancer: String,
        listener: String,
        allowed: Vec<String>,
    },
    CreatePool {
        balancer: String,
        name: String,
        listener: String,
        algorithm: String,
        tags: Vec<String>,
    },
    CreateMonitor {
        balancer: String,
        name: String,
        pool: String,
        monitor: Monitor,
    },
    SetMembers {
        balancer: String,
        pool: String,
        members: Vec<MemberOrder>,
    },
    CreateAddress {
        /// Identifies the address.
        description: String,
        network: String,
        /// The port it leads to.
        port: Option<String>,
        /// A certain address.
        address: Option<String>,
    },
    /// Lets a floating IP lead to a port.
    Associate {
        address: String,
        port: String,
    },
    SetTags {
        of: Tagged,
        id: String,
        tags: Vec<String>,
    },
    DeleteAddress {
        id: String,
    },
    DeleteBalancer {
        id: String,
    },
    DeletePort {
        id: String,
    },
    RemoveInterface {
        router: String,
        subnet: String,
    },
    DeleteRouter {
        id: String,
    },
    DeleteNetwork {
        id: String,
    },
    DeleteGroup {
        id: String,
    },
    CreateServerGroup {
        name: String,
        policy: String,
    },
    DeleteServerGroup {
        id: String,
    },
    /// Makes an application credential for the workload.
    CreateCredential {
        name: String,
        order: Box<CredentialOrder>,
    },
    DeleteCredential {
        id: String,
    },
    /// Registers an image without its data.
    CreateImage {
        image: Box<WantedImage>,
        mark: String,
    },
    /// Lets Glance download the data of an image.
    ImportImage {
        id: String,
        url: String,
    },
    DeleteImage {
        id: String,
    },
}

/// An application credential.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CredentialOrder {
    /// The number in its name.
    pub number: u64,
    pub description: String,
    /// Names of roles.
    pub roles: Vec<String>,
    pub expires: Option<String>,
}

impl Call for ClusterCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::CreateNetwork { name, .. } => format!("network/{name}"),
            Self::CreateSubnet { network, cidr, .. } => format!("subnet/{network}/{cidr}"),
            Self::SetNameServers { subnet, .. } => format!("subnet/{subnet}"),
            Self::CreateRouter { name, .. } => format!("router/{name}"),
            Self::AddInterface { router, subnet } | Self::RemoveInterface { router, subnet } => {
                format!("interface/{router}/{subnet}")
            }
            Self::CreateGroup { name, .. } => format!("group/{name}"),
            Self::AddRules { group, .. } => format!("rules/{group}"),
            Self::RemoveRule { rule, .. } => format!("rule/{rule}"),
            Self::CreateBalancer { name, .. } => format!("loadbalancer/{name}"),
            Self::CreateListener { balancer, port, .. } => format!("listener/{balancer}/{port}"),
            Self::SetAllowed { listener, .. } => format!("listener/{listener}"),
            Self::CreatePool { listener, .. } => format!("pool/{listener}"),
            Self::CreateMonitor { pool, .. } => format!("monitor/{pool}"),
            Self::SetMembers { pool, .. } => format!("members/{pool}"),
            Self::CreateAddress { description, .. } => format!("floatingip/{description}"),
            Self::Associate { address, .. } => format!("floatingip/{address}"),
            Self::SetTags { id, .. } => format!("tags/{id}"),
            Self::DeleteAddress { id }
            | Self::DeleteBalancer { id }
            | Self::DeletePort { id }
            | Self::DeleteRouter { id }
            | Self::DeleteNetwork { id }
            | Self::DeleteGroup { id }
            | Self::DeleteServerGroup { id }
            | Self::DeleteCredential { id }
            | Self::DeleteImage { id } => id.clone(),
            Self::CreateImage { image, .. } => format!("image/{}", image.name),
            Self::ImportImage { id, .. } => format!("import/{id}"),
            Self::CreateCredential { name, .. } => format!("credential/{name}"),
            Self::CreateServerGroup { name, .. } => format!("servergroup/{name}"),
        }
    }

    fn journalled(&self) -> bool {
        !matches!(
            self,
            Self::SetNameServers { .. }
                | Self::SetAllowed { .. }
                | Self::SetMembers { .. }
                | Self::Associate { .. }
                | Self::SetTags { .. }
        )
    }

    fn summary(&self) -> String {
        match self {
            Self::CreateNetwork { name, .. } => format!("create-network {name}"),
            Self::CreateSubnet { name, cidr, .. } => format!("create-subnet {name} {cidr}"),
            Self::SetNameServers { subnet, .. } => format!("set-name-servers {subnet}"),
            Self::CreateRouter { name, .. } => format!("create-router {name}"),
            Self::AddInterface { router, subnet } => format!("add-interface {subnet} to {router}"),
            Self::CreateGroup { name, .. } => format!("create-group {name}"),
            Self::AddRules { group, rules } => format!("add-rules {} to {group}", rules.len()),
            Self::RemoveRule { group, rule } => format!("remove-rule {rule} of {group}"),
            Self::CreateBalancer { name, .. } => format!("create-balancer {name}"),
            Self::CreateListener { name, .. } => format!("create-listener {name}"),
            Self::SetAllowed { listener, .. } => format!("set-allowed {listener}"),
            Self::CreatePool { name, .. } => format!("create-pool {name}"),
            Self::CreateMonitor { name, .. } => format!("create-monitor {name}"),
            Self::SetMembers { pool, members, .. } => {
                let members: Vec<&str> = members.iter().map(|member| member.address.as_str()).collect();
                format!("set-members {pool} [{}]", members.join(" "))
            }
            Self::CreateAddress { network, .. } => format!("create-address in {network}"),
            Self::Associate { address, port } => format!("associate {address} with {port}"),
            Self::SetTags { id, .. } => format!("set-tags {id}"),
            Self::DeleteAddress { id } => format!("delete-address {id}"),
            Self::DeleteBalancer { id } => format!("delete-balancer {id}"),
            Self::DeletePort { id } => format!("delete-port {id}"),
            Self::RemoveInterface { router, subnet } => format!("remove-interface {subnet} of {router}"),
            Self::DeleteRouter { id } => format!("delete-router {id}"),
            Self::DeleteNetwork { id } => format!("delete-network {id}"),
            Self::DeleteGroup { id } => format!("delete-group {id}"),
            Self::CreateServerGroup { name, .. } => format!("create-server-group {name}"),
            Self::DeleteServerGroup { id } => format!("delete-server-group {id}"),
            Self::CreateCredential { name, .. } => format!("create-credential {name}"),
            Self::DeleteCredential { id } => format!("delete-credential {id}"),
            Self::CreateImage { image, .. } => format!("create-image {}", image.name),
            Self::ImportImage { id, .. } => format!("import-image {id}"),
            Self::DeleteImage { id } => format!("delete-image {id}"),
        }
    }
}

/// Makes a call. What it changed is taken over into the project's lists; after an error they are read again.
pub(super) async fn make(call: &ClusterCall, access: &Access) -> Outcome {
    match carry_out(call, access).await {
        Ok(()) => Outcome::done(),
        Err(error) => {
            forget(call, access).await;
            failed(&error)
        }
    }
}

/// Drops the lists that a call concerns.
pub(super) async fn forget(call: &ClusterCall, access: &Access) {
    match call {
        ClusterCall::CreateNetwork { .. } | ClusterCall::DeleteNetwork { .. } => {
            access.forget::<Network>().await;
            access.forget::<Subnet>().await;
        }
        ClusterCall::CreateSubnet { .. } | ClusterCall::SetNameServers { .. } => {
            access.forget::<Subnet>().await;
        }
        ClusterCall::CreateRouter { .. } | ClusterCall::DeleteRouter { .. } => {
            access.forget::<Router>().await;
        }
        ClusterCall::AddInterface { .. }
        | ClusterCall::RemoveInterface { .. }
        | ClusterCall::DeletePort { .. } => access.forget::<Port>().await,
        ClusterCall::CreateGroup { .. }
        | ClusterCall::AddRules { .. }
        | ClusterCall::RemoveRule { .. }
        | ClusterCall::DeleteGroup { .. } => access.forget::<SecurityGroup>().await,
        ClusterCall::CreateServerGroup { .. } | ClusterCall::DeleteServerGroup { .. } => {
            access.forget::<ServerGroup>().await;
        }
        ClusterCall::CreateCredential { .. } | ClusterCall::DeleteCredential { .. } => {
            access.forget_application_credentials().await;
        }
        ClusterCall::CreateImage { .. }
        | ClusterCall::ImportImage { .. }
        | ClusterCall::DeleteImage { .. } => access.forget::<Image>().await,
        ClusterCall::CreateBalancer { .. }
        | ClusterCall::CreateListener { .. }
        | ClusterCall::SetAllowed { .. }
        | ClusterCall::CreatePool { .. }
        | ClusterCall::CreateMonitor { .. }
        | ClusterCall::SetMembers { .. }
        | ClusterCall::DeleteBalancer { .. } => {
            access.forget::<LoadBalancer>().await;
            access.forget::<Listener>().await;
            access.forget::<Pool>().await;
        }
        ClusterCall::CreateAddress { .. }
        | ClusterCall::Associate { .. }
        | ClusterCall::DeleteAddress { .. } => access.forget::<FloatingIp>().await,
        ClusterCall::SetTags { of, .. } => match of {
            Tagged::Network => access.forget::<Network>().await,
            Tagged::Subnet => access.forget::<Subnet>().await,
            Tagged::Router => access.forget::<Router>().await,
            Tagged::SecurityGroup => access.forget::<SecurityGroup>().await,
            Tagged::FloatingIp => access.forget::<FloatingIp>().await,
        },
    }
}

async fn carry_out(call: &ClusterCall, access: &Access) -> Result<(), Error> {
    let client = &access.client;
    match call {
        ClusterCall::CreateNetwork { name, description, mtu, port_security } => {
            let new = NewNetwork {
                name: name.clone(),
                description: Some(description.clone()),
                admin_state_up: Some(true),
                mtu: *mtu,
                port_security_enabled: *port_security,
            };
            access.put(&client.create::<Network>(&new).await?).await;
        }
        ClusterCall::CreateSubnet { name, description, network, cidr, name_servers, pools, slaac } => {
            let mode = slaac.then(|| "slaac".to_owned());
            let pools =
                pools.iter().map(|(start, end)| AllocationPool { start: start.clone(), end: end.clone() });
            let new = NewSubnet {
                network_id: network.as_str().into(),
                name: name.clone(),
                description: Some(description.clone()),
                ip_version: if cidr.contains(':') { 6 } else { 4 },
                cidr: cidr.clone(),
                allocation_pools: pools.collect(),
                dns_nameservers: name_servers.clone(),
                ipv6_address_mode: mode.clone(),
                ipv6_ra_mode: mode,
                ..NewSubnet::default()
            };
            access.put(&client.create::<Subnet>(&new).await?).await;
        }
        ClusterCall::SetNameServers { subnet, name_servers } => {
            let change =
                SubnetChange { dns_nameservers: Some(name_servers.clone()), ..SubnetChange::default() };
            access.put(&client.update::<Subnet>(&subnet.as_str().into(), &change).await?).await;
        }
        ClusterCall::CreateRouter { name, description, external, addresses } => {
            let addresses = addresses.iter().map(|(subnet, address)| GatewayIp {
                subnet_id: subnet.as_str().into(),
                ip_address: address.clone(),
            });
            let gateway = ExternalGateway {
                network_id: external.as_str().into(),
                external_fixed_ips: addresses.collect(),
                enable_snat: None,
            };
            let new = NewRouter {
                name: name.clone(),
                description: Some(description.clone()),
                external_gateway_info: Some(gateway),
            };
            access.put(&client.create::<Router>(&new).await?).await;
        }
        ClusterCall::AddInterface { router, subnet } => {
            client.add_router_interface(&router.as_str().into(), &subnet.as_str().into()).await?;
            access.forget::<Port>().await;
        }
        ClusterCall::RemoveInterface { router, subnet } => {
            client.remove_router_interface(&router.as_str().into(), &subnet.as_str().into()).await?;
            access.forget::<Port>().await;
        }
        ClusterCall::CreateGroup { name, description } => {
            let new = NewSecurityGroup { name: name.clone(), description: Some(description.clone()) };
            access.put(&client.create::<SecurityGroup>(&new).await?).await;
        }
        ClusterCall::AddRules { group, rules } => {
            let rules: Vec<_> = rules.iter().map(|rule| rule.request(group)).collect();
            let made = client.create_security_group_rules(&rules).await?;
            access.change::<SecurityGroup>(group, |held| held.security_group_rules.extend(made)).await;
        }
        ClusterCall::RemoveRule { group, rule } => {
            client.delete::<SecurityGroupRule>(&rule.as_str().into()).await?;
            let gone = |held: &mut SecurityGroup| {
                held.security_group_rules.retain(|held| held.id.as_str() != rule);
            };
            access.change(group, gone).await;
        }
        ClusterCall::CreateAddress { description, network, port, address } => {
            let new = NewFloatingIp {
                floating_network_id: network.as_str().into(),
                floating_ip_address: address.clone(),
                port_id: port.as_deref().map(Into::into),
                description: Some(description.clone()),
                ..NewFloatingIp::default()
            };
            access.put(&client.create::<FloatingIp>(&new).await?).await;
        }
        ClusterCall::Associate { address, port } => {
            let change = FloatingIpChange { port_id: Some(port.as_str().into()), fixed_ip_address: None };
            access.put(&client.update::<FloatingIp>(&address.as_str().into(), &change).await?).await;
        }
        ClusterCall::SetTags { of, id, tags } => set_tags(*of, id, tags, access).await?,
        ClusterCall::DeleteAddress { id } => delete::<FloatingIp>(id, access).await?,
        ClusterCall::DeletePort { id } => delete::<Port>(id, access).await?,
        ClusterCall::DeleteRouter { id } => delete::<Router>(id, access).await?,
        ClusterCall::DeleteNetwork { id } => delete::<Network>(id, access).await?,
        ClusterCall::DeleteGroup { id } => delete::<SecurityGroup>(id, access).await?,
        ClusterCall::CreateServerGroup { name, policy } => {
            let new =
                NewServerGroup { name: name.clone(), policy: policy.clone(), max_server_per_host: None };
            access.put(&client.create::<ServerGroup>(&new).await?).await;
        }
        ClusterCall::DeleteServerGroup { id } => delete::<ServerGroup>(id, access).await?,
        ClusterCall::CreateImage { image, mark } => image::create(image, mark, access).await?,
        ClusterCall::ImportImage { id, url } => {
            client.import_image(&id.as_str().into(), url).await?;
            access.forget::<Image>().await;
        }
        ClusterCall::DeleteImage { id } => delete::<Image>(id, access).await?,
        ClusterCall::CreateBalancer { .. }
        | ClusterCall::CreateListener { .. }
        | ClusterCall::SetAllowed { .. }
        | ClusterCall::CreatePool { .. }
        | ClusterCall::CreateMonitor { .. }
        | ClusterCall::SetMembers { .. }
        | ClusterCall::DeleteBalancer { .. } => balance(call, access).await?,
        // Made by the controller, which keeps the secret.
        ClusterCall::CreateCredential { .. } | ClusterCall::DeleteCredential { .. } => {}
    }
    Ok(())
}

async fn delete<R: Listed + capstan_openstack_client::Delete>(
    id: &str,
    access: &Access,
) -> Result<(), Error> {
    access.client.delete::<R>(&Id::new(id)).await?;
    access.remove::<R>(id).await;
    Ok(())
}

async fn set_tags(of: Tagged, id: &str, tags: &[String], access: &Access) -> Result<(), Error> {
    macro_rules! set {
        ($kind:ty) => {{
            let held = access.client.set_tags::<$kind>(&id.into(), tags).await?;
            access.change::<$kind>(id, |item| item.tags = held).await;
        }};
    }
    match of {
        Tagged::Network => set!(Network),
        Tagged::Subnet => set!(Subnet),
        Tagged::Router => set!(Router),
        Tagged::SecurityGroup => set!(SecurityGroup),
        Tagged::FloatingIp => set!(FloatingIp),
    }
    Ok(())
}

/// Calls to Octavia. Every change makes the load balancer pending.
async fn balance(call: &ClusterCall, access: &Access) -> Result<(), Error> {
    let client = &access.client;
    let balancer = match call {
        ClusterCall::CreateBalancer { name, order } => {
            access.put(&client.create::<LoadBalancer>(&order.request(name)).await?).await;
            access.forget::<Listener>().await;
            access.forget::<Pool>().await;
            return Ok(());
        }
        ClusterCall::DeleteBalancer { id } => {
            if client.delete_load_balancer(&id.as_str().into(), true).await? == Deletion::Absent {
                access.remove::<LoadBalancer>(id).await;
            }
            let leaving =
                |held: &mut LoadBalancer| held.provisioning_status = ProvisioningStatus::PendingDelete;
            access.change(id, leaving).await;
            return Ok(());
        }
        ClusterCall::CreateListener { balancer, name, port, allowed, tags } => {
            let new = NewListener {
                name: name.clone(),
                loadbalancer_id: balancer.as_str().into(),
                protocol: "TCP".to_owned(),
                protocol_port: *port,
                allowed_cidrs: allowed.clone(),
                tags: tags.clone(),
                ..NewListener::default()
            };
            client.create::<Listener>(&new).await?;
            balancer
        }
        ClusterCall::SetAllowed { balancer, listener, allowed } => {
            let change = ListenerChange { allowed_cidrs: Some(allowed.clone()), ..ListenerChange::default() };
            client.update::<Listener>(&listener.as_str().into(), &change).await?;
            balancer
        }
        ClusterCall::CreatePool { balancer, name, listener, algorithm, tags } => {
            let new = NewPool {
                name: name.clone(),
                listener_id: Some(listener.as_str().into()),
                protocol: "TCP".to_owned(),
                lb_algorithm: algorithm.clone(),
                tags: tags.clone(),
                ..NewPool::default()
            };
            client.create::<Pool>(&new).await?;
            balancer
        }
        ClusterCall::CreateMonitor { balancer, name, pool, monitor } => {
            let new = NewHealthMonitor {
                name: name.clone(),
                pool_id: pool.as_str().into(),
                kind: "TCP".to_owned(),
                delay: monitor.delay,
                timeout: monitor.timeout,
                max_retries: monitor.max_retries,
                max_retries_down: Some(monitor.max_retries_down),
            };
            client.create::<capstan_openstack_client::load_balancer::HealthMonitor>(&new).await?;
            balancer
        }
        ClusterCall::SetMembers { balancer, pool, members } => {
            let members: Vec<NewMember> = members.iter().map(MemberOrder::request).collect();
            client.set_members(&pool.as_str().into(), &members).await?;
            balancer
        }
        _ => return Ok(()),
    };
    access
        .change::<LoadBalancer>(balancer, |held| held.provisioning_status = ProvisioningStatus::PendingUpdate)
        .await;
    access.forget::<Listener>().await;
    access.forget::<Pool>().await;
    Ok(())
}

/// Members as they are ordered, for comparison.
pub(super) fn ordered(member: &Member) -> MemberOrder {
    MemberOrder {
        name: member.name.clone(),
        address: member.address.clone(),
        port: member.protocol_port,
        subnet: member.subnet_id.as_ref().map(ToString::to_string),
    }
}
