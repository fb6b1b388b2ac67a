//! What a controller asks of whatever makes machines on this host: the seam between kinds of machines.
//!
//! Everything is found again by its id, so a process that starts anew asks and is answered; ids come from the
//! uids of objects and are never used twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// Longest id and longest host name.
const LONGEST: usize = 63;

/// Names a machine or a network on this host. Safe in paths and names of interfaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

impl Id {
    /// The id as text.
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
                "{text:?} is no id: it must be lower-case letters, digits and '-'"
            )));
        }
        Ok(Self(text))
    }
}

/// Addresses of a network: the first is the gateway's, the last this host's, those between are machines'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet(Ipv4Net);

impl Subnet {
    /// Length of the prefix.
    pub fn prefix(self) -> u8 {
        self.0.prefix_len()
    }

    /// The network in CIDR notation.
    pub fn net(self) -> Ipv4Net {
        self.0
    }

    /// The gateway's address, where the API is reached too.
    pub fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.0.network()) + 1)
    }

    /// This host's address in the network.
    pub fn host(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.0.broadcast()) - 1)
    }

    /// Addresses for machines.
    pub fn machines(self) -> impl Iterator<Item = Ipv4Addr> {
        (u32::from(self.gateway()) + 1..u32::from(self.host())).map(Ipv4Addr::from)
    }
}

impl TryFrom<Ipv4Net> for Subnet {
    type Error = BackendError;

    fn try_from(net: Ipv4Net) -> Result<Self, BackendError> {
        if !(16..=28).contains(&net.prefix_len()) || net.trunc() != net {
            let why = format!("{net} is no network between /16 and /28");
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
            text.parse().map_err(|_| BackendError::Refused(format!("{text:?} is no IPv4 network")))?;
        net.try_into()
    }
}

/// A network as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Its addresses.
    pub subnet: Subnet,
    /// Where the balancer is reached.
    pub endpoint: (Ipv4Addr, u16),
    /// Where it leads.
    pub members: BTreeSet<Ipv4Addr>,
    /// Everything of it is there and the balancer runs.
    pub whole: bool,
}

/// A machine to be.
#[derive(Debug, Clone)]
pub struct MachineSpec {
    /// Its id.
    pub id: Id,
    /// The network it is in.
    pub network: Id,
    /// Its host name.
    pub name: String,
    /// Identity of its Node.
    pub provider_id: String,
    /// Name of its image.
    pub image: String,
    /// What it executes at its first boot.
    pub user_data: Vec<u8>,
    /// Cores it may use.
    pub cpus: Option<u32>,
    /// Memory it may use, in MiB.
    pub memory_mib: Option<u64>,
    /// Name servers it asks.
    pub dns_servers: Vec<String>,
    /// Directories of the host: host path, path in the machine, read only.
    pub host_volumes: Vec<(PathBuf, PathBuf, bool)>,
    /// Labels of its Node.
    pub node_labels: BTreeMap<String, String>,
    /// Taints of its Node, as the kubelet takes them.
    pub node_taints: Vec<String>,
}

/// A machine as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its id.
    pub id: Id,
    /// Its host name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// What it does.
    pub phase: Phase,
    /// Where its console is written to.
    pub console: PathBuf,
}

/// What a machine does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It executes its user data.
    Booting,
    /// It has executed its user data, and the sign that bootstrap succeeded is there.
    Booted,
    /// It has executed its user data in vain: the last line of its console.
    Failed(String),
    /// It does not run.
    Stopped,
}

/// Why something cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// What was asked for makes no sense here.
    #[error("{0}")]
    Refused(String),
    /// This host lacks something.
    #[error("this host cannot run machines: {}", .0.join("; "))]
    Needs(Vec<String>),
    /// A program failed.
    #[error("{what}: {why}")]
    Failed {
        /// What was done.
        what: String,
        /// What it said.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Makes and unmakes machines and networks on this host. Calls block; each can be repeated.
pub trait Backend: Send + Sync + 'static {
    /// A network, if anything of it is there.
    fn network(&self, id: &Id) -> Result<Option<Network>, BackendError>;

    /// Makes a network with its balancer, or what is missing of them.
    fn ensure_network(&self, id: &Id, subnet: Option<Subnet>) -> Result<Network, BackendError>;

    /// Says where the balancer of a network leads.
    fn balance(&self, id: &Id, members: &BTreeSet<Ipv4Addr>) -> Result<(), BackendError>;

    /// Removes a network and everything of it.
    fn remove_network(&self, id: &Id) -> Result<(), BackendError>;

    /// A machine, if anything of it is there.
    fn machine(&self, id: &Id) -> Result<Option<Instance>, BackendError>;

    /// Makes a machine, once: what is there already is left as it is.
    fn create(&self, spec: &MachineSpec) -> Result<(), BackendError>;

    /// Removes a machine and everything of it.
    fn destroy(&self, id: &Id) -> Result<(), BackendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_folder() {
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
