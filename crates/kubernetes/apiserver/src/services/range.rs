//! The ranges that cluster IPs come from.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use capstan_store::Store;
use serde_json::Value;

use crate::auth::bucket::SERVICE_CIDRS;
use crate::digest::Digest;
use crate::object::Meta;

/// The ServiceCIDR of the range that the server is configured with.
pub(crate) const DEFAULT_CIDR: &str = "kubernetes";

/// The addresses of Services: an IPv4 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceRange {
    network: Ipv4Addr,
    prefix: u8,
}

impl Default for ServiceRange {
    /// kube-apiserver's default.
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 0, 0, 0), prefix: 24 }
    }
}

impl ServiceRange {
    /// `None` unless the network has 8 to 1,048,576 addresses.
    pub fn new(network: Ipv4Addr, prefix: u8) -> Option<Self> {
        (12..=29).contains(&prefix).then(|| Self::masked(network, prefix))
    }

    fn masked(network: Ipv4Addr, prefix: u8) -> Self {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        Self { network: Ipv4Addr::from(u32::from(network) & mask), prefix }
    }

    pub(super) fn network(self) -> Ipv4Addr {
        self.network
    }

    /// Addresses that can be allocated: all but that of the network and the broadcast address.
    pub(super) fn addresses(self) -> RangeInclusive<u32> {
        let first = u32::from(self.network);
        first + 1..=first + (1 << (32 - self.prefix)) - 2
    }

    /// The address of the `kubernetes` Service.
    pub(crate) fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(*self.addresses().start())
    }

    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        self.addresses().contains(&u32::from(address))
    }

    /// The first addresses are for clients that name one.
    pub(super) fn reserved(self) -> u32 {
        ((1_u32 << (32 - self.prefix)) / 16).clamp(16, 256)
    }
}

impl fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// Why a text is no range of cluster IPs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceRangeError {
    #[error("{0:?} is not an IPv4 network such as 10.0.0.0/24")]
    Syntax(String),
    #[error("{0} has bits beyond its prefix: write {1}")]
    Bits(String, ServiceRange),
    #[error("{0} does not have 8 to 1,048,576 addresses: use a prefix of 12 to 29 bits")]
    Size(String),
}

impl FromStr for ServiceRange {
    type Err = ServiceRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (network, prefix) = parse(text).ok_or_else(|| ServiceRangeError::Syntax(text.to_owned()))?;
        let range = Self::new(network, prefix).ok_or_else(|| ServiceRangeError::Size(text.to_owned()))?;
        if range.network == network {
            Ok(range)
        } else {
            Err(ServiceRangeError::Bits(text.to_owned(), range))
        }
    }
}

fn parse(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (network, prefix) = text.split_once('/')?;
    Some((network.parse().ok()?, prefix.parse().ok().filter(|prefix| *prefix <= 32)?))
}

/// The ranges of ServiceCIDRs that are ready and not being deleted, the default one first. Only of the first IP
/// family, as upstream with one configured range.
pub(super) fn ready(store: &Store<Digest>) -> Vec<ServiceRange> {
    let mut found: Vec<(bool, ServiceRange)> = Vec::new();
    for entry in store.snapshot(SERVICE_CIDRS).range("", None) {
        let Ok(object) = serde_json::from_slice::<Value>(&entry.value) else { continue };
        if object.is_terminating() || !is_ready(&object) {
            continue;
        }
        let texts = object["spec"]["cidrs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // A range of less than 8 or more than 16,777,216 addresses is of no use to allocate from.
        let ranges = texts.filter_map(parse).filter(|(_, prefix)| (8..=29).contains(prefix));
        found.extend(
            ranges.map(|(network, prefix)| {
                (object.name() != DEFAULT_CIDR, ServiceRange::masked(network, prefix))
            }),
        );
    }
    found.sort_by_key(|(other, _)| *other);
    found.into_iter().map(|(_, range)| range).collect()
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_network_of_a_usable_size() {
        let range: ServiceRange = "10.96.0.0/12".parse().expect("a range");
        assert_eq!(
            (range.to_string().as_str(), range.first()),
            ("10.96.0.0/12", Ipv4Addr::new(10, 96, 0, 1))
        );
        for (text, message) in [
            ("10.0.0.0", "\"10.0.0.0\" is not an IPv4 network such as 10.0.0.0/24"),
            ("fd00::/108", "\"fd00::/108\" is not an IPv4 network such as 10.0.0.0/24"),
            ("10.0.0.0/33", "\"10.0.0.0/33\" is not an IPv4 network such as 10.0.0.0/24"),
            ("10.0.0.9/24", "10.0.0.9/24 has bits beyond its prefix: write 10.0.0.0/24"),
            (
                "10.0.0.0/8",
                "10.0.0.0/8 does not have 8 to 1,048,576 addresses: use a prefix of 12 to 29 bits",
            ),
        ] {
            assert_eq!(text.parse::<ServiceRange>().expect_err(text).to_string(), message);
        }
    }
}
