//! Restores recorded clusters, to try a change on a copy of the original.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::Value;

use super::Site;
use crate::cluster::{GuestCluster, InitCluster, Joining, Size};
use crate::request::{Files, InitRequest, KubeadmError, NodeRequest};
use crate::vm::VmSpec;

#[derive(Debug, Clone)]
pub struct RecordedCluster {
    /// `/etc/kubernetes/pki` of a control plane machine: at least the CAs with their keys.
    pub pki: Files,
    pub configuration: Value,
    /// Its machines; the first control plane machine has initialized it.
    pub machines: Vec<RecordedMachine>,
    /// It has a CNI: joining nodes become ready.
    pub network: bool,
}

#[derive(Debug, Clone)]
pub struct RecordedMachine {
    /// Its user data is not executed again.
    pub vm: VmSpec,
    pub node: String,
    pub control_plane: bool,
    pub ready: bool,
}

impl Site {
    /// Restores a cluster: running machines, Nodes, members of etcd.
    pub async fn restore(&self, recorded: RecordedCluster) -> Result<Arc<GuestCluster>, KubeadmError> {
        let RecordedCluster { pki, configuration, machines, network } = recorded;
        let mut placed = Vec::with_capacity(machines.len());
        for machine in machines {
            placed.push((self.assign_address(&machine.vm)?, machine));
        }
        // The machine that initialized it first; the order of the others is arbitrary.
        placed.sort_by_key(|(_, machine)| !machine.control_plane);
        let mut all = placed.into_iter();
        let (address, first) = all.next().filter(|(_, first)| first.control_plane).ok_or_else(|| {
            KubeadmError { phase: "preflight", why: "no machine of the control plane is recorded".to_owned() }
        })?;
        let request = InitRequest {
            node: node(&first, address),
            pki: pki.clone(),
            cluster_configuration: configuration.clone(),
            bootstrap_tokens: Vec::new(),
            skipped_phases: Vec::new(),
        };
        let site = &self.inner;
        let init = InitCluster {
            env: site.env.clone(),
            options: site.options.clone(),
            policy: site.policy.clone(),
            size: size(&first.vm),
            request,
        };
        let cluster = GuestCluster::init(init).await?;
        self.settle(&cluster, first, address, network);
        let configuration = Arc::new(configuration);
        let mut silent = Vec::new();
        for (address, machine) in all {
            cluster.admit(Joining {
                node: Arc::new(node(&machine, address)),
                size: size(&machine.vm),
                control_plane: machine.control_plane.then(|| pki.clone()),
                configuration: configuration.clone(),
            })?;
            if !machine.ready {
                silent.push(machine.vm.id.clone());
            }
            self.settle(&cluster, machine, address, network);
        }
        // A silent kubelet has registered long ago.
        for vm in silent {
            if let Some(held) = self.vm(&vm).and_then(|vm| vm.node) {
                cluster.registered(&held).await?;
            }
            cluster.resume(&vm, false);
        }
        if network {
            cluster.install_recorded_cni().await?;
        } else if self.inner.options.assume_addons {
            cluster.install_assumed_cni().await?;
        }
        Ok(cluster)
    }

    fn settle(
        &self,
        cluster: &Arc<GuestCluster>,
        machine: RecordedMachine,
        address: Ipv4Addr,
        network: bool,
    ) {
        let id = machine.vm.id.clone();
        self.inner.adopt(machine.vm, address, cluster, &machine.node);
        if network {
            cluster.resume(&id, true);
        }
    }

    /// The address of a machine: its own, or a new one if that is taken or unknown.
    fn assign_address(&self, vm: &VmSpec) -> Result<Ipv4Addr, KubeadmError> {
        let refused = |why: String| KubeadmError { phase: "preflight", why };
        if !self.inner.is_new(&vm.id) {
            return Err(refused(format!("machine {} is recorded twice", vm.id)));
        }
        let mut network = self.inner.network.lock();
        let own = vm.address.and_then(|address| network.assign(Some(address)));
        own.or_else(|| network.assign(None)).ok_or_else(|| refused("no address is left".to_owned()))
    }
}

fn size(vm: &VmSpec) -> Size {
    Size { cpus: vm.cpus, memory_mib: vm.memory_mib }
}

fn node(machine: &RecordedMachine, address: Ipv4Addr) -> NodeRequest {
    let version = machine.vm.image.kubernetes.as_deref().unwrap_or_default();
    NodeRequest {
        vm: machine.vm.id.clone(),
        name: machine.node.clone(),
        address,
        kubelet_version: format!("v{}", version.trim_start_matches('v')),
        provider_id: machine.vm.provider_id.clone(),
        external: None,
        labels: std::collections::BTreeMap::new(),
        taints: None,
    }
}
