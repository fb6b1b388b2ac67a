//! The interface between the controllers and the host.
//!
//! Everything is looked up by id, so a restarted process finds what exists. Ids come from uids of objects and are
//! never reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// Maximum length of ids and host names.
const LONGEST: usize = 63;

/// Id of a machine or network on this host. Safe in paths and interface names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

impl Id {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl TryFrom<String> for Id {
    type Error = BackendError;

    fn try_from(text: String) -> Result<Self, BackendError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(plain) || text.starts_with('-') {
            return Err(BackendError::Refused(format!(
                "{text:?} is not an id: it must be lower-case letters, digits and '-'"
            )));
        }
        Ok(Self(text))
    }
}

/// Addresses of a network: the first is the gateway's, the last the host's, the others are for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet(Ipv4Net);

impl Subnet {
    pub fn prefix(self) -> u8 {
        self.0.prefix_len()
    }

    pub fn net(self) -> Ipv4Net {
        self.0
    }

    /// The gateway's address, which is also the API endpoint's.
    pub fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.0.network()) + 1)
    }

    /// The host's address in the network.
    pub fn host(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.0.broadcast()) - 1)
    }

    pub fn machines(self) -> impl Iterator<Item = Ipv4Addr> {
        (u32::from(self.gateway()) + 1..u32::from(self.host())).map(Ipv4Addr::from)
    }
}

impl TryFrom<Ipv4Net> for Subnet {
    type Error = BackendError;

    fn try_from(net: Ipv4Net) -> Result<Self, BackendError> {
        if !(16..=28).contains(&net.prefix_len()) || net.trunc() != net {
            let why = format!("{net} is not a network between /16 and /28");
            return Err(BackendError::Refused(why));
        }
        Ok(Self(net))
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.0.to_string()
    }
}

impl TryFrom<String> for Subnet {
    type Error = BackendError;

    fn try_from(text: String) -> Result<Self, BackendError> {
        text.parse()
    }
}

impl FromStr for Subnet {
    type Err = BackendError;

    fn from_str(text: &str) -> Result<Self, BackendError> {
        let net: Ipv4Net =
            text.parse().map_err(|_| BackendError::Refused(format!("{text:?} is not an IPv4 network")))?;
        net.try_into()
    }
}

/// The actual state of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub subnet: Subnet,
    /// Address of the load balancer.
    pub endpoint: (Ipv4Addr, u16),
    /// Members of the load balancer.
    pub members: BTreeSet<Ipv4Addr>,
    /// All of it exists and the load balancer runs.
    pub complete: bool,
}

/// A machine to create.
#[derive(Debug, Clone)]
pub struct MachineSpec {
    pub id: Id,
    pub network: Id,
    /// Host name.
    pub name: String,
    pub provider_id: String,
    pub image: String,
    /// User data of the first boot.
    pub user_data: Vec<u8>,
    /// CPU limit.
    pub cpus: Option<u32>,
    /// Memory limit in MiB.
    pub memory_mib: Option<u64>,
    pub dns_servers: Vec<String>,
    /// Host directories: host path, path in the machine, read-only.
    pub host_volumes: Vec<(PathBuf, PathBuf, bool)>,
    pub node_labels: BTreeMap<String, String>,
    /// Taints of its Node, in the kubelet's format.
    pub node_taints: Vec<String>,
}

/// The actual state of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub id: Id,
    /// Host name.
    pub name: String,
    pub address: Ipv4Addr,
    pub phase: Phase,
    /// Its user data ran to an end once, so its disk holds a node. Read from disk: survives restarts of host and plane.
    pub has_booted: bool,
    /// Console log file.
    pub console: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Executing its user data.
    Booting,
    /// Its user data has finished and the bootstrap sentinel file exists.
    Booted,
    /// Its user data has failed. Contains the last line of its console.
    Failed(String),
    Stopped,
}

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The request is invalid.
    #[error("{0}")]
    Refused(String),
    /// The host does not meet the requirements.
    #[error("this host cannot run machines: {}", .0.join("; "))]
    Needs(Vec<String>),
    /// A program failed.
    #[error("{what}: {why}")]
    Failed { what: String, why: String },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
}

/// Creates and removes machines and networks on this host. Calls block and are idempotent.
pub trait Backend: Send + Sync + 'static {
    /// A network, if any part of it exists.
    fn network(&self, id: &Id) -> Result<Option<Network>, BackendError>;

    /// Creates a network with its load balancer, or the missing parts.
    fn ensure_network(&self, id: &Id, subnet: Option<Subnet>) -> Result<Network, BackendError>;

    /// Sets the members of a network's load balancer.
    fn balance(&self, id: &Id, members: &BTreeSet<Ipv4Addr>) -> Result<(), BackendError>;

    /// Removes a network and everything of it.
    fn remove_network(&self, id: &Id) -> Result<(), BackendError>;

    /// A machine, if any part of it exists.
    fn machine(&self, id: &Id) -> Result<Option<Instance>, BackendError>;

    /// Creates a machine once: what exists is left unchanged.
    fn create(&self, spec: &MachineSpec) -> Result<(), BackendError>;

    /// Removes a machine and all of its resources.
    fn destroy(&self, id: &Id) -> Result<(), BackendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_escape_its_directory() {
        for (text, good) in
            [("6f1c-2", true), ("", false), ("..", false), ("a/b", false), ("-n", false), ("A", false)]
        {
            assert_eq!(Id::try_from(text.to_owned()).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_network_keeps_its_first_and_last_address_for_the_gateway_and_the_host() {
        let subnet: Subnet = "10.89.3.0/29".parse::<Ipv4Net>().map(Subnet).expect("a network");
        assert_eq!(subnet.gateway(), Ipv4Addr::new(10, 89, 3, 1));
        assert_eq!(subnet.host(), Ipv4Addr::new(10, 89, 3, 6));
        assert_eq!(subnet.machines().count(), 4);
        for bad in ["10.89.3.1/24", "10.0.0.0/8", "x", "10.0.0.0/30"] {
            assert!(bad.parse::<Subnet>().is_err(), "{bad}");
        }
    }
}
