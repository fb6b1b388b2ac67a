//! `KVMMachineTemplate`: reports what its machines will offer, so that an autoscaler can scale from zero.
//!
//! Owns: the status of KVMMachineTemplates. Reads: the size of this host, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};

use crate::types::{KVMMachineSpec, KVMMachineTemplate, KVMMachineTemplateStatus, KVMNodeInfo};

/// What a machine without limits gets.
#[derive(Debug, Clone, Copy)]
pub struct HostSize {
    cpus: u64,
    memory_mib: u64,
}

impl HostSize {
    /// The size of this host. Zero stands for what cannot be read.
    pub fn read() -> Self {
        let cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u64);
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self { cpus, memory_mib: total_mib(&memory) }
    }
}

/// The total in the text of `/proc/meminfo`, which counts in KiB.
fn total_mib(text: &str) -> u64 {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// The controller of templates.
#[derive(Debug, Clone, Copy)]
pub struct KVMMachineTemplates {
    host: HostSize,
}

impl KVMMachineTemplates {
    pub fn new(host: HostSize) -> Self {
        Self { host }
    }
}

impl Controller for KVMMachineTemplates {
    const NAME: &'static str = "kvmmachinetemplate";
    type Kind = KVMMachineTemplate;
    type Seen = ();
    type Call = NoCall;

    fn watches(&self, _: &mut Watches<KVMMachineTemplate>) {}

    fn conditions(&self) -> &[&'static str] {
        &[]
    }

    async fn observe(&self, _: &Arc<KVMMachineTemplate>, _: &View) -> Result<(), ObserveError> {
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        decision.object.status = offered(&look.object.spec.template.spec, self.host);
        decision
    }
}

/// The limits of a machine, and the size of the host where it has none.
fn offered(spec: &KVMMachineSpec, host: HostSize) -> KVMMachineTemplateStatus {
    let cpus = spec.cpus.and_then(|cpus| u64::try_from(cpus).ok()).unwrap_or(host.cpus);
    let memory = spec.memory_mib.and_then(|memory| u64::try_from(memory).ok()).unwrap_or(host.memory_mib);
    let known =
        [("cpu", cpus, ""), ("memory", memory, "Mi")].into_iter().filter(|(_, amount, _)| *amount > 0);
    let capacity: BTreeMap<_, _> =
        known.map(|(name, amount, unit)| (name.to_owned(), format!("{amount}{unit}"))).collect();
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    KVMMachineTemplateStatus {
        capacity,
        node_info: KVMNodeInfo {
            architecture: architecture.to_owned(),
            operating_system: "linux".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_reports_its_limits_or_the_size_of_the_host() {
        let host = HostSize { cpus: 16, memory_mib: 32_000 };
        for (cpus, memory, expected) in
            [(None, None, ["16", "32000Mi"]), (Some(2), Some(2048), ["2", "2048Mi"])]
        {
            let spec = KVMMachineSpec { cpus, memory_mib: memory, ..KVMMachineSpec::default() };
            let capacity = offered(&spec, host).capacity;
            assert_eq!([capacity["cpu"].as_str(), capacity["memory"].as_str()], expected);
        }
        let unknown = HostSize { cpus: 0, memory_mib: 0 };
        assert!(offered(&KVMMachineSpec::default(), unknown).capacity.is_empty());
    }

    #[test]
    fn the_memory_of_a_host_is_read_from_its_kernel() {
        assert_eq!(total_mib("MemTotal:       16303428 kB\nMemFree:  1 kB\n"), 15_921);
        assert_eq!(total_mib("no such thing"), 0);
    }
}
