//! Machines as Linux namespaces on this host: their own processes, mounts, network, host name and cgroups over a
//! shared node image, with real containerd, kubelet and kubeadm. Real clusters in seconds, for development and tests;
//! they share the host's kernel and are not a security boundary.
//!
//! ```text
//!   STATE/networks/ID   network.json (record), members, balancer (process), balancer.log
//!   STATE/machines/ID   machine.json (record), pid, console.log, upper, var, status
//! ```
//!
//! A record is written before anything is created and removed after everything is gone, so that an interruption
//! leaves nothing untracked. Machines and load balancers outlive this process; the next one finds them by their
//! records.

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
use run::{at, make_folder, read_if_exists, remove_folder, write_atomically};

/// Port of the API servers and their load balancers.
const PORT: u16 = 6443;
/// How long a load balancer may take to end.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of machines and networks.
    pub state: PathBuf,
    /// Directory of node images.
    pub images: PathBuf,
    /// Program and first arguments of a load balancer; `--listen` and `--members` are appended.
    pub balancer: Vec<PathBuf>,
}

/// The namespace backend.
pub struct Namespaces {
    settings: Settings,
    hierarchies: Hierarchies,
    /// Serializes the allocation of addresses and subnets.
    allocation: Mutex<()>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct NetworkRecord {
    id: Id,
    subnet: Subnet,
    /// Number of allocated addresses: a released one is not reused at once.
    given: u32,
}

impl Namespaces {
    /// Checks the requirements of the host without changing anything.
    pub fn check(settings: &Settings) -> Result<(), BackendError> {
        host_cgroups(settings).map(drop)
    }

    /// Opens the machines and networks of a directory. Fails if the host does not meet the requirements, before
    /// anything is changed.
    pub fn open(settings: Settings) -> Result<Self, BackendError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(at(path));
        let settings = Settings {
            state: absolute(&settings.state)?,
            images: absolute(&settings.images)?,
            balancer: settings.balancer,
        };
        let hierarchies = host_cgroups(&settings)?;
        for folder in ["networks", "machines"] {
            make_folder(&settings.state.join(folder))?;
        }
        Ok(Self { settings, hierarchies, allocation: Mutex::new(()) })
    }

    /// Removes every machine and network that has a record here.
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
        let Some(text) = read_if_exists(&path)? else { return Ok(None) };
        let unreadable = |error: serde_json::Error| BackendError::Failed {
            what: format!("read {}", path.display()),
            why: error.to_string(),
        };
        serde_json::from_str(&text).map(Some).map_err(unreadable)
    }

    fn keep(&self, record: &NetworkRecord) -> Result<(), BackendError> {
        let folder = self.network_folder(&record.id);
        make_folder(&folder)?;
        write_atomically(&folder.join("network.json"), &serde_json::to_vec_pretty(record).unwrap_or_default())
    }

    fn ids(&self, kind: &str) -> Result<Vec<Id>, BackendError> {
        let folder = self.settings.state.join(kind);
        let entries = std::fs::read_dir(&folder).map_err(at(&folder))?.flatten();
        Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()?.try_into().ok()).collect())
    }

    /// Allocates the subnet of a new network.
    fn allocate_subnet(&self, id: &Id, subnet: Option<Subnet>) -> Result<NetworkRecord, BackendError> {
        let _one = self.allocation.lock();
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

    /// Allocates and records the address of a new machine.
    fn allocate_address(&self, spec: &MachineSpec) -> Result<(Record, Subnet), BackendError> {
        let _one = self.allocation.lock();
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
            return Err(BackendError::Refused("no program for load balancers is configured".to_owned()));
        };
        let members = folder.join("members");
        if !members.exists() {
            write_atomically(&members, b"")?;
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
        write_atomically(&folder.join("balancer"), process.record().as_bytes())?;
        process::forget(child);
        Ok(())
    }

    fn balancer(&self, id: &Id) -> Result<Option<Process>, BackendError> {
        Process::recorded(&self.network_folder(id).join("balancer"))
    }

    fn describe(&self, record: &NetworkRecord) -> Result<Network, BackendError> {
        let members = read_if_exists(&self.network_folder(&record.id).join("members"))?.unwrap_or_default();
        let runs = self.balancer(&record.id)?.is_some_and(Process::runs);
        Ok(Network {
            subnet: record.subnet,
            endpoint: (record.subnet.gateway(), PORT),
            members: members.lines().filter_map(|line| line.parse().ok()).collect(),
            complete: runs && network::is_complete(&record.id)?,
        })
    }
}

/// The host's cgroups, if it meets all requirements.
fn host_cgroups(settings: &Settings) -> Result<Hierarchies, BackendError> {
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
        let record = self.allocate_subnet(id, subnet)?;
        if !network::is_complete(id)? {
            if let Some(process) = self.balancer(id)? {
                process.kill(TIMEOUT)?;
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
        write_atomically(&self.network_folder(id).join("members"), lines.as_bytes())
    }

    fn remove_network(&self, id: &Id) -> Result<(), BackendError> {
        if self.record(id)?.is_none() {
            return remove_folder(&self.network_folder(id));
        }
        if let Some(process) = self.balancer(id)? {
            process.kill(TIMEOUT)?;
        }
        network::remove(id)?;
        remove_folder(&self.network_folder(id))
    }

    fn machine(&self, id: &Id) -> Result<Option<Instance>, BackendError> {
        Node::new(&self.machines(), id).look()
    }

    fn create(&self, spec: &MachineSpec) -> Result<(), BackendError> {
        let node = Node::new(&self.machines(), &spec.id);
        // Whoever asks: a disk that holds a node is never replaced.
        if node.look()?.is_some_and(|instance| instance.has_booted) {
            let message = format!("machine {} has booted before; its disk is kept", spec.id);
            return Err(BackendError::Refused(message));
        }
        let (record, subnet) = self.allocate_address(spec)?;
        let started = node.start(spec, &record, subnet, &self.settings.images, &self.hierarchies);
        if started.is_err() {
            // Its user data has not finished: a machine that never ran may be tried again.
            node.remove()?;
        }
        started
    }

    fn destroy(&self, id: &Id) -> Result<(), BackendError> {
        Node::new(&self.machines(), id).remove()
    }
}
