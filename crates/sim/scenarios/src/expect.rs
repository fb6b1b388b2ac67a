//! Expected state of an idle cluster.

use std::collections::BTreeSet;

use capstan_capi_types::core::{Cluster, Machine, MachinePool, label};
use capstan_controller::KindName;
use capstan_controller::operation::{Intention, Operation};
use capstan_guest::Site;
use capstan_guest::vm::Phase;
use capstan_harness::{Objects, Violation, World};
use capstan_object::{Key, ObjectMeta, Scope};
use capstan_sim_provider::types::SimMachine;
use serde::Deserialize as _;
use serde_json::Value;

use crate::kinds::{has_label, holds, in_guest, is_deleting, name};
use crate::manifests::{NAME, NAMESPACE};
use crate::scenario::{FOREIGN, is_ours};

/// Expected size and version of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub control_plane: usize,
    pub workers: usize,
    pub version: String,
    pub network: bool,
    /// Made of a ClusterClass.
    pub class: bool,
    /// The workers are a MachinePool.
    pub pool: bool,
    /// Name of the class.
    pub of_class: &'static str,
    /// Value of the class's variable.
    pub variable: Option<i32>,
    /// Memory of the machines, if the class sets it.
    pub memory: Option<i32>,
}

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("L1", what)
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), Violation> {
    if found == wanted { Ok(()) } else { Err(wrong(format!("{what}: {found:?} instead of {wanted:?}"))) }
}

/// The expected number of machines, in the management cluster and in the site.
pub(crate) fn machines(shape: &Shape, world: &World<'_>, site: &Site) -> Result<(), Violation> {
    let machines = world.objects()?.list(&KindName::of::<Machine>());
    if let Some(stuck) = machines.iter().find(|machine| is_deleting(machine)) {
        return Err(wrong(format!("{} is still being deleted: {}", name(stuck), stuck["status"])));
    }
    let control_plane = machines.iter().filter(|machine| has_label(machine, label::CONTROL_PLANE)).count();
    let found = (control_plane, machines.len() - control_plane);
    if found != (shape.control_plane, shape.workers) {
        let cluster = world.objects()?.get(&KindName::of::<Cluster>(), &Key::new(NAMESPACE, NAME));
        let conditions = |object: &Value| object["status"]["conditions"].to_string();
        let all: Vec<String> =
            machines.iter().map(|machine| format!("{}: {}", name(machine), conditions(machine))).collect();
        return Err(wrong(format!(
            "{found:?} machines of the control plane and workers instead of {:?}; cluster {}; {}",
            (shape.control_plane, shape.workers),
            conditions(&cluster.unwrap_or_default()),
            all.join("; "),
        )));
    }
    let infrastructure = world.objects()?.list(&KindName::of::<SimMachine>());
    equal("SimMachines", infrastructure.len(), machines.len())?;
    let ours: Vec<_> = site.vms().into_iter().filter(is_ours).collect();
    equal("machines in the site", ours.len(), machines.len())
}

/// The cluster has its expected state: in the management cluster, in the site and inside.
pub(crate) fn healthy(shape: &Shape, world: &World<'_>, site: &Site) -> Result<(), Violation> {
    machines(shape, world, site)?;
    let objects = world.objects()?;
    for machine in objects.list(&KindName::of::<Machine>()) {
        equal(name(&machine), machine["spec"]["version"].as_str(), Some(shape.version.as_str()))?;
        if shape.network && !holds(&machine, "Available") {
            return Err(wrong(format!(
                "{} is not available: {}",
                name(&machine),
                machine["status"]["conditions"]
            )));
        }
    }
    let cluster = objects.get(&KindName::of::<Cluster>(), &Key::new(NAMESPACE, NAME)).unwrap_or_default();
    if shape.network && !holds(&cluster, "Available") {
        return Err(wrong(format!("the cluster is not available: {}", cluster["status"]["conditions"])));
    }
    if let Some(memory) = shape.memory {
        for machine in objects.list(&KindName::of::<SimMachine>()) {
            equal(name(&machine), machine["spec"]["memoryMiB"].as_i64(), Some(memory.into()))?;
        }
    }
    if shape.class && !holds(&cluster, "TopologyReconciled") {
        return Err(wrong(format!("the topology is not reconciled: {}", cluster["status"]["conditions"])));
    }
    if shape.pool {
        pools(shape, &objects)?;
    }
    let ours: Vec<_> = site.vms().into_iter().filter(is_ours).collect();
    if let Some(vm) = ours.iter().find(|vm| vm.phase != Phase::Booted) {
        return Err(wrong(format!("machine {} is {:?}", vm.id, vm.phase)));
    }
    let guest = ours
        .iter()
        .find_map(|vm| site.cluster_of(&vm.id))
        .ok_or_else(|| wrong("no cluster was initialized"))?;
    let nodes = Objects::of(guest.server()).list(&in_guest("Node", "nodes", Scope::Cluster));
    let expected: BTreeSet<Option<String>> = ours.iter().map(|vm| vm.node.clone()).collect();
    let found: BTreeSet<Option<String>> = nodes.iter().map(|node| Some(name(node).to_owned())).collect();
    equal("nodes", found, expected)?;
    for node in &nodes {
        let version = node["status"]["nodeInfo"]["kubeletVersion"].as_str();
        equal(name(node), version, Some(shape.version.as_str()))?;
        if shape.network && !holds(node, "Ready") {
            return Err(wrong(format!("node {} is not ready", name(node))));
        }
    }
    let voters = guest.etcd_members().iter().filter(|member| !member.learner).count();
    equal("voting members of etcd", voters, shape.control_plane)?;
    let balancer = site.balancer(&format!("{NAMESPACE}/{NAME}")).ok_or_else(|| wrong("no load balancer"))?;
    equal("members of the load balancer", balancer.members.len(), shape.control_plane)
}

/// Every MachinePool counts its machines, refers to their nodes and runs.
fn pools(shape: &Shape, objects: &Objects) -> Result<(), Violation> {
    let pools = objects.list(&KindName::of::<MachinePool>());
    equal("MachinePools", pools.len(), 1)?;
    for pool in pools {
        let status = &pool["status"];
        let workers = u64::try_from(shape.workers).ok();
        equal("replicas of the pool", status["replicas"].as_u64(), workers)?;
        let count = |list: &Value| list.as_array().map_or(0, Vec::len);
        equal("providerIDs of the pool", count(&pool["spec"]["providerIDList"]), shape.workers)?;
        equal("nodes of the pool", count(&status["nodeRefs"]), shape.workers)?;
        if shape.network {
            equal("phase of the pool", status["phase"].as_str(), Some("Running"))?;
            equal("ready replicas of the pool", status["readyReplicas"].as_u64(), workers)?;
            if !holds(&pool, "ReplicasReady") {
                return Err(wrong(format!("the pool is not ready: {}", status["conditions"])));
            }
        }
    }
    Ok(())
}

/// Nothing of the cluster is left.
pub(crate) fn nothing(world: &World<'_>, site: &Site) -> Result<(), Violation> {
    let left = |what: String| Violation::new("L3", format!("{what} is left"));
    let objects = world.objects()?;
    let mut kinds = crate::kinds::core();
    kinds.push(KindName::namespaced("", "v1", "Secret", "secrets"));
    for kind in kinds {
        for object in objects.list(&kind) {
            // Objects owned by the cluster are deleted with it; others, such as service accounts of the namespace,
            // are not ours.
            let ours = kind.group.ends_with("cluster.x-k8s.io") || has_label(&object, label::CLUSTER_NAME);
            if ours {
                return Err(left(format!("{kind} {}: {object}", name(&object))));
            }
        }
    }
    if let Some(vm) = site.vms().iter().find(|vm| is_ours(vm)) {
        return Err(left(format!("machine {}", vm.id)));
    }
    if site.balancer(&format!("{NAMESPACE}/{NAME}")).is_some() {
        return Err(left("the load balancer".to_owned()));
    }
    match site.vm(FOREIGN) {
        Some(_) => Ok(()),
        None => Err(Violation::new("S3", "the foreign machine is gone")),
    }
}

/// The last operation on the cluster has this intention.
pub(crate) fn operation(intention: Intention, world: &World<'_>) -> Result<(), Violation> {
    let cluster = world.objects()?.get(&KindName::of::<Cluster>(), &Key::new(NAMESPACE, NAME));
    let metadata = cluster.map(|cluster| cluster["metadata"].clone()).unwrap_or_default();
    let meta = ObjectMeta::deserialize(&metadata).map_err(|error| wrong(error.to_string()))?;
    equal("the operation", Operation::of(&meta).map(|last| last.intention), Some(intention))
}
