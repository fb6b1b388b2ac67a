//! Clusters that run elsewhere and go on here, from what is recorded of them: to try on a copy what is to happen to
//! the original.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::Value;

use super::Site;
use crate::cluster::{Founding, GuestCluster, Joining, Size};
use crate::request::{Files, InitRequest, KubeadmError, NodeRequest};
use crate::vm::VmSpec;

/// A cluster as it is recorded.
#[derive(Debug, Clone)]
pub struct Revival {
    /// `/etc/kubernetes/pki` of a machine of its control plane: at least the authorities with their keys.
    pub pki: Files,
    /// Its `ClusterConfiguration`.
    pub configuration: Value,
    /// Its machines; the first of the control plane among them has founded it.
    pub machines: Vec<Revived>,
    /// It has a network: nodes that join become ready.
    pub network: bool,
}

/// A machine of it.
#[derive(Debug, Clone)]
pub struct Revived {
    /// The machine; its user data is not executed again.
    pub vm: VmSpec,
    /// Name of its Node.
    pub node: String,
    /// It is of the control plane.
    pub control_plane: bool,
    /// Its kubelet reports.
    pub ready: bool,
}

impl Site {
    /// Brings a cluster to the state that is recorded of it: machines that run, Nodes, members of etcd.
    pub async fn revive(&self, revival: Revival) -> Result<Arc<GuestCluster>, KubeadmError> {
        let Revival { pki, configuration, machines, network } = revival;
        let mut placed = Vec::with_capacity(machines.len());
        for machine in machines {
            placed.push((self.place(&machine.vm)?, machine));
        }
        // Who founded it comes first; the order of the others is theirs.
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
        let founding = Founding {
            env: site.env.clone(),
            options: site.options.clone(),
            policy: site.policy.clone(),
            size: size(&first.vm),
            request,
        };
        let cluster = GuestCluster::found(founding).await?;
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
        // A kubelet that is silent has registered long ago.
        for vm in silent {
            if let Some(held) = self.vm(&vm).and_then(|vm| vm.node) {
                cluster.registered(&held).await?;
            }
            cluster.resume(&vm, false);
        }
        if network {
            cluster.stand_in_for_network().await?;
        } else if self.inner.options.assume_network {
            cluster.assume_network().await?;
        }
        Ok(cluster)
    }

    fn settle(&self, cluster: &Arc<GuestCluster>, machine: Revived, address: Ipv4Addr, network: bool) {
        let id = machine.vm.id.clone();
        self.inner.take_in(machine.vm, address, cluster, &machine.node);
        if network {
            cluster.resume(&id, true);
        }
    }

    /// The address of a machine: its own, or another if that is taken or not known.
    fn place(&self, vm: &VmSpec) -> Result<Ipv4Addr, KubeadmError> {
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

fn node(machine: &Revived, address: Ipv4Addr) -> NodeRequest {
    let version = machine.vm.image.kubernetes.as_deref().unwrap_or_default();
    NodeRequest {
        vm: machine.vm.id.clone(),
        name: machine.node.clone(),
        address,
        kubelet_version: format!("v{}", version.trim_start_matches('v')),
        provider_id: machine.vm.provider_id.clone(),
        labels: std::collections::BTreeMap::new(),
        taints: None,
    }
}
