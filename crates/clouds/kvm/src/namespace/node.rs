//! One machine: its directory, namespaces and processes.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::boot::{Plan, quoted};
use super::cgroups::{self, CgroupVersion, Hierarchies};
use super::process::{self, Process};
use super::run::{at, make_folder, read_if_exists, remove_folder, write_atomically};
use super::{host, image, network};
use crate::backend::{BackendError, Id, Instance, MachineSpec, Phase, Subnet};

/// How long processes and cgroups may take to end.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long a machine may take until its first process runs.
const START: Duration = Duration::from_secs(20);
/// Bytes read from the end of a console.
const TAIL: u64 = 16 * 1024;

const INNER: &str = include_str!("inner.sh");
const INIT: &str = include_str!("init.sh");

/// The record of a machine, written before anything of it is created.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: Id,
    pub(super) name: String,
    pub(super) network: Id,
    pub(super) address: Ipv4Addr,
    pub(super) cgroups: Vec<PathBuf>,
}

pub(super) struct Node {
    folder: PathBuf,
}

impl Node {
    pub(super) fn new(machines: &Path, id: &Id) -> Self {
        Self { folder: machines.join(id.as_str()) }
    }

    /// The record, if its creation has started.
    pub(super) fn record(&self) -> Result<Option<Record>, BackendError> {
        let path = self.folder.join("machine.json");
        let Some(text) = read_if_exists(&path)? else { return Ok(None) };
        let unreadable = |error: serde_json::Error| BackendError::Failed {
            what: format!("read {}", path.display()),
            why: error.to_string(),
        };
        serde_json::from_str(&text).map(Some).map_err(unreadable)
    }

    pub(super) fn keep(&self, record: &Record) -> Result<(), BackendError> {
        make_folder(&self.folder)?;
        let text = serde_json::to_vec_pretty(record).unwrap_or_default();
        write_atomically(&self.folder.join("machine.json"), &text)
    }

    fn process(&self) -> Result<Option<Process>, BackendError> {
        Process::recorded(&self.folder.join("pid"))
    }

    fn console(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    /// How the user data ended, if it did.
    fn boot_result(&self) -> Result<Option<String>, BackendError> {
        let text = read_if_exists(&self.folder.join("status/boot"))?;
        Ok(text.map(|text| text.trim().to_owned()))
    }

    /// The actual state of the machine.
    pub(super) fn look(&self) -> Result<Option<Instance>, BackendError> {
        let Some(record) = self.record()? else { return Ok(None) };
        let runs = self.process()?.is_some_and(Process::runs);
        let ended = self.boot_result()?;
        let phase = match ended.as_deref() {
            _ if !runs => Phase::Stopped,
            Some("booted") => Phase::Booted,
            Some(_) => Phase::Failed(last_line(&self.console())),
            None => Phase::Booting,
        };
        Ok(Some(Instance {
            id: record.id,
            name: record.name,
            address: record.address,
            phase,
            has_booted: ended.is_some(),
            console: self.console(),
        }))
    }

    /// Creates a machine and starts it.
    pub(super) fn start(
        &self,
        spec: &MachineSpec,
        record: &Record,
        subnet: Subnet,
        images: &Path,
        hierarchies: &Hierarchies,
    ) -> Result<(), BackendError> {
        let image = image::find(images, &spec.image)?;
        for (from, _, _) in &spec.host_volumes {
            if !from.exists() {
                return Err(BackendError::Refused(format!("hostVolumes: {} is not there", from.display())));
            }
        }
        self.clear()?;
        self.put_files(spec, record.address, subnet)?;
        image::copy_containerd(&image, &self.folder.join("var/containerd"))?;

        let name = super::run::short(spec.id.as_str());
        let cgroups = hierarchies.make(&name, spec.cpus, spec.memory_mib)?;
        self.keep(&Record { cgroups: cgroups.clone(), ..record.clone() })?;
        network::attach(&spec.id, &spec.network, subnet, record.address)?;
        self.launch(spec, record, &image, &cgroups, hierarchies)
    }

    /// Removes the remains of an interrupted attempt: a first boot must not find them.
    fn clear(&self) -> Result<(), BackendError> {
        for folder in ["boot", "status", "var", "upper", "work"] {
            remove_folder(&self.folder.join(folder))?;
        }
        let pid = self.folder.join("pid");
        match std::fs::remove_file(&pid) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(&pid)(error)),
            _ => Ok(()),
        }
    }

    fn put_files(&self, spec: &MachineSpec, address: Ipv4Addr, subnet: Subnet) -> Result<(), BackendError> {
        let put = |name: &str, text: &str| {
            let path = self.folder.join(name);
            std::fs::write(&path, text).map_err(at(&path))
        };
        for folder in ["boot", "status", "var"] {
            make_folder(&self.folder.join(folder))?;
        }
        Plan::of(spec, &address.to_string()).write(&self.folder.join("boot"))?;
        put("boot/init.sh", INIT)?;
        put("inner.sh", INNER)?;
        put("status/kubelet-arguments", &kubelet_arguments(spec, address))?;
        put("machine-id", &format!("{}\n", machine_id(&spec.id)))?;
        if let Some(cpuinfo) = host::cpuinfo_for_kubelet()? {
            put("cpuinfo", &cpuinfo)?;
        }
        let gateway = [subnet.gateway().to_string()];
        let servers = if spec.dns_servers.is_empty() { gateway.as_slice() } else { &spec.dns_servers };
        let lines: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
        put("resolv.conf", &lines)
    }

    fn launch(
        &self,
        spec: &MachineSpec,
        record: &Record,
        image: &Path,
        cgroups: &[PathBuf],
        hierarchies: &Hierarchies,
    ) -> Result<(), BackendError> {
        let controllers: Vec<&str> = hierarchies.all.iter().map(|h| h.controllers.as_str()).collect();
        let volumes: Vec<String> = spec
            .host_volumes
            .iter()
            .map(|(from, to, read_only)| {
                let mode = if *read_only { "ro" } else { "rw" };
                format!("{mode}\t{}\t{}", from.display(), to.display())
            })
            .collect();
        let enter =
            |group: &Path| format!("echo 0 > {}\n", quoted(&group.join("cgroup.procs").to_string_lossy()));
        // Enter the cgroups first: they become the root of the cgroup namespace. On v2 its root must have no
        // processes, not even those outside that wait for the machine.
        let mut script: String = cgroups.iter().map(|group| enter(group)).collect();
        let mut inside: String = cgroups
            .iter()
            .filter_map(|group| hierarchies.first_group(group))
            .map(|group| enter(&group))
            .collect();
        inside.push_str(&format!(
            "exec setsid nsenter --net=/run/netns/{} unshare --mount --propagation private --pid --fork \
             --kill-child=KILL --uts --ipc sh {}\n",
            network::namespace_of_machine(&spec.id),
            quoted(&self.folder.join("inner.sh").to_string_lossy()),
        ));
        script.push_str(&format!("exec unshare --cgroup sh -e -c {}\n", quoted(&inside)));
        let mut command = Command::new("sh");
        command.args(["-e", "-c", &script]).current_dir("/").env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("DIR", &self.folder).env("IMAGE", image).env("NAME", &spec.name);
        command.env("ADDRESS", record.address.to_string()).env("HIERARCHIES", controllers.join(" "));
        command.env("VOLUMES", volumes.join("\n"));
        let arrangement = if hierarchies.arrangement == CgroupVersion::V2 { "v2" } else { "v1" };
        command.env("ARRANGEMENT", arrangement);
        let mut child = process::detached(&mut command, &self.console())?;
        let until = Instant::now() + START;
        while self.process()?.is_none() {
            let ended = child.try_wait().map_err(at(&self.folder))?;
            if ended.is_some() || Instant::now() > until {
                let why = format!("it did not start; its console ends with: {}", last_line(&self.console()));
                let _ = child.kill();
                let _ = child.wait();
                return Err(BackendError::Failed { what: format!("start machine {}", spec.name), why });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        process::forget(child);
        Ok(())
    }

    /// Ends all processes of a machine and removes its resources.
    pub(super) fn remove(&self) -> Result<(), BackendError> {
        let Some(record) = self.record()? else {
            return remove_folder(&self.folder);
        };
        if let Some(process) = self.process()? {
            process.kill(TIMEOUT)?;
        }
        // A process that was just entering, or one that was sent in from outside.
        self.end_stragglers(&record.cgroups)?;
        network::detach(&record.id)?;
        cgroups::remove(&record.cgroups, TIMEOUT)?;
        // The record is removed last: a directory without one is never looked up again.
        for entry in std::fs::read_dir(&self.folder).map_err(at(&self.folder))?.flatten() {
            let path = entry.path();
            if entry.file_name() == "machine.json" {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove_folder(&path)?;
            } else {
                std::fs::remove_file(&path).map_err(at(&path))?;
            }
        }
        remove_folder(&self.folder)
    }

    fn end_stragglers(&self, groups: &[PathBuf]) -> Result<(), BackendError> {
        let until = Instant::now() + TIMEOUT;
        loop {
            let left: Vec<Process> = groups.iter().flat_map(|group| members(group)).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                let why = format!("{} processes do not end", left.len());
                return Err(BackendError::Failed { what: format!("empty {}", self.folder.display()), why });
            }
            for process in left {
                process.kill(TIMEOUT)?;
            }
        }
    }
}

/// Processes in a cgroup and its children.
fn members(group: &Path) -> Vec<Process> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<Process> =
        text.lines().filter_map(|line| Process::of(line.parse().ok()?)).filter(|it| it.runs()).collect();
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(members(&entry.path()));
        }
    }
    found
}

/// Kubelet arguments in addition to kubeadm's, which take precedence.
fn kubelet_arguments(spec: &MachineSpec, address: Ipv4Addr) -> String {
    let mut out = format!("--provider-id={} --node-ip={address}", spec.provider_id);
    if !spec.node_labels.is_empty() {
        let labels: Vec<String> =
            spec.node_labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        out.push_str(&format!(" --node-labels={}", labels.join(",")));
    }
    if !spec.node_taints.is_empty() {
        out.push_str(&format!(" --register-with-taints={}", spec.node_taints.join(",")));
    }
    out.push('\n');
    out
}

/// 32 hexadecimal digits, unique to the machine.
fn machine_id(id: &Id) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(id.as_str().as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The last non-empty line of a console.
fn last_line(console: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<String> {
        let mut file = std::fs::File::open(console)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let non_empty = |line: &&str| !line.trim().is_empty();
    text.lines().rev().find(non_empty).unwrap_or("(nothing)").to_owned()
}
