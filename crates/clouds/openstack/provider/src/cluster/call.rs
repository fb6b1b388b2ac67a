//! Calls for an OpenStackCluster. Each is one request that was complete when it was decided.

use capstan_controller::Call;
use serde::{Deserialize, Serialize};

use super::balancer_order::{BalancerOrder, MemberOrder, Monitor};
use super::image::WantedImage;
use super::rules::Rule;

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
    SetMonitor {
        balancer: String,
        id: String,
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
    DeleteSnapshot {
        id: String,
    },
    DeleteVolume {
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
            Self::SetMonitor { id, .. } => format!("monitor/{id}"),
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
            | Self::DeleteSnapshot { id }
            | Self::DeleteVolume { id }
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
                | Self::SetMonitor { .. }
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
            Self::SetMonitor { id, .. } => format!("set-monitor {id}"),
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
            Self::DeleteSnapshot { id } => format!("delete-snapshot {id}"),
            Self::DeleteVolume { id } => format!("delete-volume {id}"),
        }
    }
}
