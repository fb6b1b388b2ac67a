//! Machines that are Linux namespaces on this host: their own processes, mounts, network, host name and control
//! groups over a shared node image, with real containerd, kubelet and kubeadm. Real clusters in seconds, for
//! development and tests; they share the host's kernel and are no boundary against what runs in them.
//!
//! ```text
//!   STATE/networks/ID   network.json (record), members, balancer (process), balancer.log
//!   STATE/machines/ID   machine.json (record), pid, console.log, upper, var, status
//! ```
//!
//! A record is written before anything is made and goes after everything is gone, so whatever happens in between is
//! found again. Machines and balancers outlive this process; another one finds them by their records.

mod boot;
mod cgroups;
mod host;
mod image;
mod network;
mod node;
mod process;
mod run;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, BackendError, Id, Instance, MachineSpec, Network, Subnet};
use cgroups::Hierarchies;
use node::{Node, Record};
use process::Process;
use run::{at, make_folder, read_if_there, remove_folder, write_whole};

/// Port of the API servers, of their balancers too.
const PORT: u16 = 6443;
/// How long a balancer may take to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where things are.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of machines and networks.
    pub state: PathBuf,
    /// Folder of node images.
    pub images: PathBuf,
    /// Program and first arguments of a balancer; it is given `--listen` and `--members` beside.
    pub balancer: Vec<PathBuf>,
}

/// Machines of namespaces.
pub struct Namespaces {
    settings: Settings,
    hierarchies: Hierarchies,
    /// Addresses and subnets are given out by one at a time.
    giving: Mutex<()>,
}

/// What is kept of a network.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct NetworkRecord {
    id: Id,
    subnet: Subnet,
    /// How many addresses were given out: the next is not one that was used a moment ago.
    given: u32,
}

impl Namespaces {
    /// Refuses a host that lacks something. Nothing on it is changed.
    pub fn check(settings: &Settings) -> Result<(), BackendError> {
        equipped(settings).map(drop)
    }

    /// Machines and networks of a folder, unless the host lacks something: that is said before anything is changed.
    pub fn open(settings: Settings) -> Result<Self, BackendError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(at(path));
        let settings = Settings {
            state: absolute(&settings.state)?,
            images: absolute(&settings.images)?,
            balancer: settings.balancer,
        };
        let hierarchies = equipped(&settings)?;
        for folder in ["networks", "machines"] {
            make_folder(&settings.state.join(folder))?;
        }
        Ok(Self { settings, hierarchies, giving: Mutex::new(()) })
    }

    /// Removes every machine and every network that has a record here.
    pub fn remove_everything(&self) -> Result<(), BackendError> {
        for machine in self.ids("machines")? {
            self.destroy(&machine)?;
        }
        for network in self.ids("networks")? {
            self.remove_network(&network)?;
        }
        Ok(())
    }

    fn network_folder(&self, id: &Id) -> PathBuf {
        self.settings.state.join("networks").join(id.as_str())
    }

    fn machines(&self) -> PathBuf {
        self.settings.state.join("machines")
    }

    fn record(&self, id: &Id) -> Result<Option<NetworkRecord>, BackendError> {
        let path = self.network_folder(id).join("network.json");
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        let unreadable = |error: serde_json::Error| BackendError::Failed {
            what: format!("read {}", path.display()),
            why: error.to_string(),
        };
        serde_json::from_str(&text).map(Some).map_err(unreadable)
    }

    fn keep(&self, record: &NetworkRecord) -> Result<(), BackendError> {
        let folder = self.network_folder(&record.id);
        make_folder(&folder)?;
        write_whole(&folder.join("network.json"), &serde_json::to_vec_pretty(record).unwrap_or_default())
    }

    fn ids(&self, kind: &str) -> Result<Vec<Id>, BackendError> {
        let folder = self.settings.state.join(kind);
        let entries = std::fs::read_dir(&folder).map_err(at(&folder))?.flatten();
        Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()?.try_into().ok()).collect())
    }

    /// Gives a new network its addresses.
    fn admit(&self, id: &Id, subnet: Option<Subnet>) -> Result<NetworkRecord, BackendError> {
        let _one = self.giving.lock();
        if let Some(record) = self.record(id)? {
            return Ok(record);
        }
        let mut taken = Vec::new();
        for other in self.ids("networks")? {
            taken.extend(self.record(&other)?.map(|record| record.subnet));
        }
        let subnet = match subnet {
            Some(subnet) => subnet,
            None => network::free_subnet(&taken)?,
        };
        let record = NetworkRecord { id: id.clone(), subnet, given: 0 };
        self.keep(&record)?;
        Ok(record)
    }

    /// Gives a new machine its address and keeps it.
    fn enrol(&self, spec: &MachineSpec) -> Result<(Record, Subnet), BackendError> {
        let _one = self.giving.lock();
        let node = Node::new(&self.machines(), &spec.id);
        let gone = || BackendError::Refused(format!("there is no network {}", spec.network));
        let mut network = self.record(&spec.network)?.ok_or_else(gone)?;
        if let Some(record) = node.record()? {
            return Ok((record, network.subnet));
        }
        let mut taken = BTreeSet::new();
        for other in self.ids("machines")? {
            let record = Node::new(&self.machines(), &other).record()?;
            taken.extend(record.filter(|it| it.network == spec.network).map(|it| it.address));
        }
        let all: Vec<Ipv4Addr> = network.subnet.machines().collect();
        let turn = network.given as usize % all.len().max(1);
        let free = all.iter().cycle().skip(turn).take(all.len()).find(|address| !taken.contains(*address));
        let Some(address) = free.copied() else {
            return Err(BackendError::Refused(format!("no address of {} is free", network.subnet.net())));
        };
        let at = all.iter().position(|it| *it == address).unwrap_or_default();
        network.given = u32::try_from(at + 1).unwrap_or_default();
        self.keep(&network)?;
        let record = Record {
            id: spec.id.clone(),
            name: spec.name.clone(),
            network: spec.network.clone(),
            address,
            cgroups: Vec::new(),
        };
        node.keep(&record)?;
        Ok((record, network.subnet))
    }

    fn start_balancer(&self, record: &NetworkRecord) -> Result<(), BackendError> {
        let folder = self.network_folder(&record.id);
        let Some((program, arguments)) = self.settings.balancer.split_first() else {
            return Err(BackendError::Refused("no program for balancers is known".to_owned()));
        };
        let members = folder.join("members");
        if !members.exists() {
            write_whole(&members, b"")?;
        }
        let mut command = Command::new("setsid");
        let namespace = network::namespace_of(&record.id);
        command.arg("nsenter").arg(format!("--net=/run/netns/{namespace}")).arg(program).args(arguments);
        command.arg("--listen").arg(format!("{}:{PORT}", record.subnet.gateway()));
        command.arg("--members").arg(&members).current_dir("/");
        let child = process::detached(&mut command, &folder.join("balancer.log"))?;
        let process = Process::of(child.id()).ok_or_else(|| BackendError::Failed {
            what: "start a balancer".to_owned(),
            why: format!("it ended at once; see {}", folder.join("balancer.log").display()),
        })?;
        write_whole(&folder.join("balancer"), process.record().as_bytes())?;
        process::forget(child);
        Ok(())
    }

    fn balancer(&self, id: &Id) -> Result<Option<Process>, BackendError> {
        Process::recorded(&self.network_folder(id).join("balancer"))
    }

    fn describe(&self, record: &NetworkRecord) -> Result<Network, BackendError> {
        let members = read_if_there(&self.network_folder(&record.id).join("members"))?.unwrap_or_default();
        let runs = self.balancer(&record.id)?.is_some_and(Process::runs);
        Ok(Network {
            subnet: record.subnet,
            endpoint: (record.subnet.gateway(), PORT),
            members: members.lines().filter_map(|line| line.parse().ok()).collect(),
            whole: runs && network::is_whole(&record.id)?,
        })
    }
}

/// The host's control groups, if it has them and all else.
fn equipped(settings: &Settings) -> Result<Hierarchies, BackendError> {
    let hierarchies = Hierarchies::of_host()?;
    match host::needs(settings, &hierarchies) {
        needs if needs.is_empty() => Ok(hierarchies),
        needs => Err(BackendError::Needs(needs)),
    }
}

impl Backend for Namespaces {
    fn network(&self, id: &Id) -> Result<Option<Network>, BackendError> {
        match self.record(id)? {
            Some(record) => self.describe(&record).map(Some),
            None => Ok(None),
        }
    }

    fn ensure_network(&self, id: &Id, subnet: Option<Subnet>) -> Result<Network, BackendError> {
        let record = self.admit(id, subnet)?;
        if !network::is_whole(id)? {
            if let Some(process) = self.balancer(id)? {
                process.kill(PATIENCE)?;
            }
            network::make(id, record.subnet)?;
        }
        if !self.balancer(id)?.is_some_and(Process::runs) {
            self.start_balancer(&record)?;
        }
        self.describe(&record)
    }

    fn balance(&self, id: &Id, members: &BTreeSet<Ipv4Addr>) -> Result<(), BackendError> {
        let lines: String = members.iter().map(|member| format!("{member}\n")).collect();
        write_whole(&self.network_folder(id).join("members"), lines.as_bytes())
    }

    fn remove_network(&self, id: &Id) -> Result<(), BackendError> {
        if self.record(id)?.is_none() {
            return remove_folder(&self.network_folder(id));
        }
        if let Some(process) = self.balancer(id)? {
            process.kill(PATIENCE)?;
        }
        network::remove(id)?;
        remove_folder(&self.network_folder(id))
    }

    fn machine(&self, id: &Id) -> Result<Option<Instance>, BackendError> {
        Node::new(&self.machines(), id).look()
    }

    fn create(&self, spec: &MachineSpec) -> Result<(), BackendError> {
        let (record, subnet) = self.enrol(spec)?;
        let node = Node::new(&self.machines(), &spec.id);
        let started = node.start(spec, &record, subnet, &self.settings.images, &self.hierarchies);
        if started.is_err() {
            // Nothing of it ran user data to an end: a machine that was never there can be tried again.
            node.remove()?;
        }
        started
    }

    fn destroy(&self, id: &Id) -> Result<(), BackendError> {
        Node::new(&self.machines(), id).remove()
    }
}
