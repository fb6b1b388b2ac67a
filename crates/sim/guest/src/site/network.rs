//! Addresses: load balancers in 127.0.0.0/8, machines in 172.16.0.0/12.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) const API_PORT: u16 = 6443;

/// The network of machine addresses: first address and size.
const MACHINES: (u32, u32) = (u32::from_be_bytes([172, 16, 0, 0]), 1 << 20);

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balancer {
    pub endpoint: SocketAddrV4,
    pub members: BTreeSet<Ipv4Addr>,
}

/// Load balancers and their members.
pub(super) struct Network {
    port: u16,
    names: BTreeMap<String, SocketAddrV4>,
    balancers: BTreeMap<SocketAddrV4, BTreeSet<Ipv4Addr>>,
    /// Host names with an address.
    hosts: BTreeMap<String, Ipv4Addr>,
    /// Addresses of machines; never reused.
    machines: BTreeSet<Ipv4Addr>,
    next: u32,
}

impl Network {
    pub(super) fn new(port: u16) -> Self {
        Self {
            port,
            names: BTreeMap::new(),
            balancers: BTreeMap::new(),
            hosts: BTreeMap::new(),
            machines: BTreeSet::new(),
            // Skips what looks like a network or a gateway.
            next: 2,
        }
    }

    pub(super) fn endpoint(&mut self, name: &str) -> SocketAddrV4 {
        if let Some(endpoint) = self.names.get(name) {
            return *endpoint;
        }
        let hash = Sha256::digest(name);
        let mut at = u32::from_be_bytes([0, hash[0], hash[1], hash[2]]);
        let endpoint = loop {
            let [_, b, c, d] = at.to_be_bytes();
            let endpoint = SocketAddrV4::new(Ipv4Addr::new(127, b, c, d), self.port);
            // 127.0.x.y is reserved for the host's own services and resolvers.
            if b != 0 && d != 0 && d != 255 && !self.balancers.contains_key(&endpoint) {
                break endpoint;
            }
            at = at.wrapping_add(1) & 0x00ff_ffff;
        };
        self.names.insert(name.to_owned(), endpoint);
        self.balancers.insert(endpoint, BTreeSet::new());
        endpoint
    }

    /// Assigns an existing address to a load balancer, unless another one has it.
    pub(super) fn keep(&mut self, name: &str, endpoint: SocketAddrV4) {
        if !self.balancers.contains_key(&endpoint) {
            self.names.insert(name.to_owned(), endpoint);
            self.balancers.insert(endpoint, BTreeSet::new());
        }
    }

    pub(super) fn name(&mut self, host: &str, address: Ipv4Addr) {
        self.hosts.insert(host.to_owned(), address);
    }

    /// The address of a host name or address.
    pub(super) fn resolve(&self, host: &str) -> Option<Ipv4Addr> {
        host.parse().ok().or_else(|| self.hosts.get(host).copied())
    }

    pub(super) fn balancer(&self, name: &str) -> Option<Balancer> {
        let endpoint = *self.names.get(name)?;
        let members = self.balancers.get(&endpoint).cloned().unwrap_or_default();
        Some(Balancer { endpoint, members })
    }

    pub(super) fn balance(&mut self, endpoint: SocketAddrV4, members: BTreeSet<Ipv4Addr>) {
        if let Some(held) = self.balancers.get_mut(&endpoint) {
            *held = members;
        }
    }

    pub(super) fn release(&mut self, endpoint: SocketAddrV4) {
        self.balancers.remove(&endpoint);
        self.names.retain(|_, held| *held != endpoint);
    }

    /// Machines behind an address: those of a load balancer, or the machine itself. `None` for an unknown address.
    pub(super) fn behind(&self, address: Ipv4Addr, port: u16) -> Option<Vec<Ipv4Addr>> {
        if let Some(members) = self.balancers.get(&SocketAddrV4::new(address, port)) {
            return Some(members.iter().copied().collect());
        }
        (port == API_PORT && self.machines.contains(&address)).then(|| vec![address])
    }

    /// An address for a machine: the requested one, or one never used before. `None` if it is taken.
    pub(super) fn assign(&mut self, wanted: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        if let Some(address) = wanted {
            return self.machines.insert(address).then_some(address);
        }
        while self.next < MACHINES.1 {
            let address = Ipv4Addr::from(MACHINES.0 + self.next);
            self.next += 1;
            if !matches!(address.octets()[3], 0 | 255) && self.machines.insert(address) {
                return Some(address);
            }
        }
        None
    }

    /// Releases the address of a destroyed machine that requested it: its cloud may reuse it.
    pub(super) fn unassign(&mut self, address: Ipv4Addr) {
        self.machines.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_has_the_same_address_in_every_site() {
        let (mut one, mut other) = (Network::new(6443), Network::new(6443));
        other.endpoint("another");
        let endpoint = one.endpoint("default/c1");
        assert_eq!(endpoint, one.endpoint("default/c1"));
        assert_eq!(endpoint, other.endpoint("default/c1"));
        assert_ne!(endpoint, one.endpoint("default/c2"));
        assert!(endpoint.ip().is_loopback() && endpoint.ip().octets()[1] != 0);
    }

    #[test]
    fn a_released_address_is_unknown_and_can_be_reused() {
        let mut network = Network::new(6443);
        let endpoint = network.endpoint("a");
        network.balance(endpoint, BTreeSet::from([Ipv4Addr::new(172, 16, 0, 2)]));
        assert_eq!(network.behind(*endpoint.ip(), 6443).map(|all| all.len()), Some(1));
        assert_eq!(network.balancer("a").map(|held| held.members.len()), Some(1));
        network.release(endpoint);
        assert_eq!(network.balancer("a"), None);
        assert_eq!(network.behind(*endpoint.ip(), 6443), None);
        assert_eq!(network.endpoint("a"), endpoint);
        assert_eq!(network.behind(*endpoint.ip(), 6443), Some(Vec::new()));
    }

    #[test]
    fn existing_addresses_and_names_are_kept() {
        let mut network = Network::new(6443);
        let endpoint = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 7), 16443);
        network.keep("a", endpoint);
        network.keep("b", endpoint);
        assert_eq!(network.endpoint("a"), endpoint);
        assert_ne!(network.endpoint("b"), endpoint, "one address is one load balancer's");
        network.name("api.example.org", *endpoint.ip());
        assert_eq!(network.resolve("api.example.org"), Some(*endpoint.ip()));
        assert_eq!(network.resolve("10.0.0.1"), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(network.resolve("elsewhere.example.org"), None);
    }

    #[test]
    fn no_two_machines_get_the_same_address() {
        let mut network = Network::new(6443);
        let asked = Ipv4Addr::new(172, 16, 0, 3);
        assert_eq!(network.assign(Some(asked)), Some(asked));
        assert_eq!(network.assign(Some(asked)), None);
        let chosen: BTreeSet<_> = (0..600).filter_map(|_| network.assign(None)).collect();
        assert_eq!(chosen.len(), 600);
        assert!(!chosen.contains(&asked));
    }
}
