//! Orders of load balancers, members and monitors: complete when they are decided.

use capstan_openstack_client::load_balancer::{
    HealthMonitor, ListenerTree, Member, MonitorTree, NewLoadBalancer, NewMember, PoolTree,
};
use capstan_openstack_types::names;
use capstan_openstack_types::v1beta2::APIServerLoadBalancer;
use serde::{Deserialize, Serialize};

/// The provider of Octavia that balances in OVN itself: no amphora, one algorithm, no filter of addresses, and only newer
/// releases check members.
pub(super) const OVN: &str = "ovn";

/// Seconds between checks, until one has failed, and how many count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Monitor {
    pub delay: u32,
    pub timeout: u32,
    pub max_retries: u32,
    pub max_retries_down: u32,
}

impl Monitor {
    /// The monitor of pools of a provider, if they have one. OVN's have one only if the manifest asks for it.
    pub(super) fn wanted(settings: &APIServerLoadBalancer, provider: &str) -> Option<Self> {
        (provider != OVN || settings.monitor.is_some()).then(|| Self::of(settings))
    }

    /// A monitor that exists.
    pub(super) fn held(monitor: &HealthMonitor) -> Self {
        Self {
            delay: monitor.delay,
            timeout: monitor.timeout,
            max_retries: monitor.max_retries,
            max_retries_down: monitor.max_retries_down,
        }
    }

    fn of(settings: &APIServerLoadBalancer) -> Self {
        let given = settings.monitor.clone().unwrap_or_default();
        let or = |value: i32, default: u32| {
            u32::try_from(value).ok().filter(|value| *value > 0).unwrap_or(default)
        };
        Self {
            delay: or(given.delay, 10),
            timeout: or(given.timeout, 5),
            max_retries: or(given.max_retries, 5),
            max_retries_down: or(given.max_retries_down, 3),
        }
    }
}

/// A member of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberOrder {
    pub name: String,
    pub address: String,
    pub port: u16,
    pub subnet: Option<String>,
    /// What operators set, where that is not Octavia's default: members are replaced as a whole, and Octavia resets what a
    /// request leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u16>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub backup: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<u16>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl MemberOrder {
    /// A member that exists.
    pub(super) fn of(member: &Member) -> Self {
        Self {
            name: member.name.clone(),
            address: member.address.clone(),
            port: member.protocol_port,
            subnet: member.subnet_id.as_ref().map(ToString::to_string),
            weight: member.weight.filter(|weight| *weight != 1),
            backup: member.backup == Some(true),
            disabled: member.admin_state_up == Some(false),
            monitor_address: member.monitor_address.clone(),
            monitor_port: member.monitor_port,
            tags: member.tags.clone(),
        }
    }

    /// The same server at the same port, whatever operators set.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let server = |it: &Self| (it.name.clone(), it.address.clone(), it.port, it.subnet.clone());
        server(self) == server(other)
    }

    pub(super) fn request(&self) -> NewMember {
        NewMember {
            name: self.name.clone(),
            address: self.address.clone(),
            protocol_port: self.port,
            subnet_id: self.subnet.as_deref().map(Into::into),
            weight: self.weight,
            backup: self.backup.then_some(true),
            admin_state_up: self.disabled.then_some(false),
            monitor_address: self.monitor_address.clone(),
            monitor_port: self.monitor_port,
            tags: self.tags.clone(),
        }
    }
}

/// A load balancer with its listeners, pools and monitors, made by one request. Without ports it is made alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerOrder {
    pub description: String,
    pub subnet: Option<String>,
    pub network: Option<String>,
    pub address: Option<String>,
    pub provider: Option<String>,
    pub flavor: Option<String>,
    pub zone: Option<String>,
    pub tags: Vec<String>,
    pub ports: Vec<u16>,
    pub algorithm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Monitor>,
    pub allowed: Vec<String>,
}

impl BalancerOrder {
    pub(super) fn request(&self, name: &str) -> NewLoadBalancer {
        let listener = |port: &u16| {
            let part = names::load_balancer_part(name, *port);
            let monitor = self.monitor.as_ref().map(|monitor| MonitorTree {
                name: part.clone(),
                kind: "TCP".to_owned(),
                delay: monitor.delay,
                timeout: monitor.timeout,
                max_retries: monitor.max_retries,
                max_retries_down: Some(monitor.max_retries_down),
            });
            let pool = PoolTree {
                name: part.clone(),
                protocol: "TCP".to_owned(),
                lb_algorithm: self.algorithm.clone(),
                health_monitor: monitor,
                tags: self.tags.clone(),
            };
            ListenerTree {
                name: part,
                protocol: "TCP".to_owned(),
                protocol_port: *port,
                allowed_cidrs: self.allowed.clone(),
                default_pool: Some(pool),
                tags: self.tags.clone(),
            }
        };
        NewLoadBalancer {
            name: name.to_owned(),
            description: Some(self.description.clone()),
            vip_subnet_id: self.subnet.as_deref().map(Into::into),
            vip_network_id: self.network.as_deref().map(Into::into),
            vip_address: self.address.clone(),
            provider: self.provider.clone(),
            flavor_id: self.flavor.as_deref().map(Into::into),
            availability_zone: self.zone.clone(),
            tags: self.tags.clone(),
            listeners: self.ports.iter().map(listener).collect(),
        }
    }
}

/// OVN's provider balances by addresses only.
pub(super) fn algorithm(provider: &str) -> String {
    if provider == OVN { "SOURCE_IP_PORT" } else { "ROUND_ROBIN" }.to_owned()
}
