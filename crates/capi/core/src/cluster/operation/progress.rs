//! The state of a cluster that operations depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_capi_types::core::cluster::condition as own;
use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::{ClusterReplicas, Machine, MachinePool, condition, label};
use capstan_controller::operation::Intention;
use capstan_controller::{Decision, Look, Wait};
use capstan_object::{Condition, ConditionStatus, Conditions};
use jiff::Timestamp;

use super::super::ClusterController;
use crate::cluster::observed::has_topology;
use crate::contract::{ControlPlane, Lookup};
use crate::machines;

/// Keys of an operation's target: replicas and versions.
const CONTROL_PLANE: &str = "controlPlane";
const WORKERS: &str = "workers";
const VERSION: &str = "version";
const WORKERS_VERSION: &str = "workersVersion";

/// The state of a cluster that operations depend on.
pub(super) struct ClusterProgress<'a> {
    pub now: Timestamp,
    pub generation: i64,
    pub deleting: bool,
    /// The infrastructure and control plane objects exist.
    pub found: bool,
    /// The cluster was complete before this reconcile.
    pub was_initialized: bool,
    pub provisioned: bool,
    pub has_endpoint: bool,
    pub initialized: bool,
    pub control_plane: Role,
    pub workers: Role,
    /// A node is ready, so a CNI is running.
    pub has_network: bool,
    /// Nothing is left to do.
    pub settled: bool,
    pub remediating: bool,
    pub rolling_out: bool,
    pub infrastructure_is_gone: bool,
    pub control_plane_is_gone: bool,
    pub target: BTreeMap<String, String>,
    pub conditions: &'a [Condition],
    pub waits: &'a [Wait],
}

/// Machines of the control plane, or of the workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Role {
    pub wanted: u32,
    /// Including machines that are being deleted.
    pub present: u32,
    /// Up-to-date machines with a ready node.
    pub good: u32,
    /// Machines that are being deleted.
    pub going: u32,
}

impl Role {
    fn of(
        wanted: Option<&ClusterReplicas>,
        machines: &[Arc<Machine>],
        version: impl Fn(&Machine) -> Option<String>,
    ) -> Self {
        let good = |machine: &&Arc<Machine>| {
            !machine.metadata.is_deleting()
                && !machine.status.node_ref.name.is_empty()
                && version(machine).is_none_or(|version| version == machine.spec.version)
                && !machines::condition_is(machine, machine_condition::UP_TO_DATE, ConditionStatus::False)
                && !machines::is_to_be_remediated(machine)
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            wanted: wanted
                .and_then(|replicas| replicas.desired_replicas)
                .map_or(0, |wanted| u32::try_from(wanted).unwrap_or(0)),
            present: count(machines.len()),
            good: count(machines.iter().filter(good).count()),
            going: count(machines.iter().filter(|machine| machine.metadata.is_deleting()).count()),
        }
    }

    /// Adds a pool whose provider keeps no Machines: its counts are all that is known.
    fn add_pool(&mut self, pool: &MachinePool) {
        let count = |number: Option<i32>| number.map_or(0, |number| u32::try_from(number).unwrap_or(0));
        self.present += count(pool.status.replicas);
        self.good += count(pool.status.ready_replicas);
    }

    pub fn is_complete(self) -> bool {
        self.present == self.wanted && self.good == self.wanted
    }

    /// Completed machines out of `wanted`; each surplus machine counts as one not done.
    pub fn done(self) -> u32 {
        self.good.min(self.wanted.saturating_sub(self.present.saturating_sub(self.wanted)))
    }
}

impl<'a> ClusterProgress<'a> {
    /// From the observed state and the decision so far.
    pub fn of(look: &'a Look<ClusterController>, decision: &'a Decision<ClusterController>) -> Self {
        let (cluster, seen, status) = (&decision.object, &look.seen, &decision.object.status);
        let is = |kind| status.conditions.is_condition_true(kind);
        let usable = |found: &Lookup| matches!(found, Lookup::NotReferenced | Lookup::Object(_));
        let gone = |found: &Lookup| matches!(found, Lookup::NotReferenced | Lookup::Missing);
        let version =
            seen.control_plane.object().and_then(|object| ControlPlane(object).version().ok().flatten());
        let of_deployments: BTreeMap<&str, &str> = seen
            .deployments
            .iter()
            .map(|deployment| {
                (deployment.metadata.name.as_str(), deployment.spec.template.spec.version.as_str())
            })
            .collect();
        let of_pools: BTreeMap<String, &str> = seen
            .pools
            .iter()
            .map(|pool| (label::value(&pool.metadata.name), pool.spec.template.spec.version.as_str()))
            .filter(|(_, version)| !version.is_empty())
            .collect();
        let of_worker = |machine: &Machine| {
            let labels = &machine.metadata.labels;
            let of_deployment =
                labels.get(label::DEPLOYMENT_NAME).and_then(|name| of_deployments.get(name.as_str()));
            let of_pool = || labels.get(label::POOL_NAME).and_then(|name| of_pools.get(name));
            of_deployment.or_else(of_pool).map(|version| (*version).to_owned())
        };
        let control_plane =
            Role::of(status.control_plane.as_ref(), &seen.control_plane_machines, |_| version.clone());
        let mut workers = Role::of(status.workers.as_ref(), &seen.worker_machines, of_worker);
        for pool in &seen.pools {
            let name = label::value(&pool.metadata.name);
            let is_of = |machine: &Arc<Machine>| machine.metadata.labels.get(label::POOL_NAME) == Some(&name);
            if !seen.worker_machines.iter().any(is_of) {
                workers.add_pool(pool);
            }
        }
        let workers_versions: BTreeSet<&str> = of_deployments
            .values()
            .chain(of_pools.values())
            .copied()
            .filter(|version| !version.is_empty())
            .collect();
        let mut target = BTreeMap::new();
        for (name, role) in [(CONTROL_PLANE, control_plane), (WORKERS, workers)] {
            target.insert(name.to_owned(), role.wanted.to_string());
        }
        if let Some(version) = &version {
            target.insert(VERSION.to_owned(), version.clone());
        }
        if !workers_versions.is_empty() {
            let all: Vec<&str> = workers_versions.into_iter().collect();
            target.insert(WORKERS_VERSION.to_owned(), all.join(","));
        }
        let has_refs = !has_topology(cluster)
            || !(cluster.spec.control_plane_ref.kind.is_empty()
                || cluster.spec.infrastructure_ref.kind.is_empty());
        let busy = [condition::ROLLING_OUT, condition::SCALING_UP, condition::SCALING_DOWN];
        Self {
            now: look.now,
            generation: look.object.metadata.generation,
            deleting: look.object.metadata.is_deleting(),
            found: has_refs && usable(&seen.infrastructure) && usable(&seen.control_plane),
            was_initialized: look.object.status.initialization.control_plane_initialized == Some(true),
            provisioned: status.initialization.infrastructure_provisioned == Some(true),
            has_endpoint: cluster.spec.control_plane_endpoint.is_valid(),
            initialized: status.initialization.control_plane_initialized == Some(true),
            control_plane,
            workers,
            has_network: seen
                .machines()
                .any(|machine| machine.status.conditions.is_condition_true(machine_condition::NODE_READY)),
            settled: is(condition::AVAILABLE)
                && !busy.into_iter().any(is)
                && !is(condition::REMEDIATING)
                && control_plane.is_complete()
                && workers.is_complete(),
            remediating: is(condition::REMEDIATING),
            rolling_out: is(condition::ROLLING_OUT),
            infrastructure_is_gone: gone(&seen.infrastructure),
            control_plane_is_gone: gone(&seen.control_plane),
            target,
            conditions: &status.conditions,
            waits: &decision.waits,
        }
    }

    pub fn another_version(&self, before: &BTreeMap<String, String>) -> bool {
        [VERSION, WORKERS_VERSION].into_iter().any(|name| {
            let (old, new) = (before.get(name), self.target.get(name));
            // Adding the first or removing the last workers is no upgrade.
            old.is_some() && new.is_some() && old != new
        })
    }

    /// The intention of work in progress that no change of the spec explains. For a cluster whose previous operation is
    /// `unknown`, the previous target is not known either.
    pub fn unexplained_work(&self, unknown: bool) -> Option<Intention> {
        if !self.found || (self.control_plane.is_complete() && self.workers.is_complete()) {
            return None;
        }
        let roles = [self.control_plane, self.workers];
        let lost = roles.iter().any(|role| role.present != role.wanted || role.going > 0);
        match (self.remediating, self.rolling_out, lost) {
            (true, _, _) => Some(Intention::Heal),
            (_, true, _) => Some(Intention::Change),
            (_, _, true) if unknown => Some(Intention::Scale),
            (_, _, true) => Some(Intention::Heal),
            _ => None,
        }
    }

    /// Why a step is not done: reason and message of the first related condition, preferring messages with an error code.
    pub fn blocked_reason(&self, step: &str) -> Option<(&'a str, &'a str)> {
        let kinds: &[&str] = match step {
            _ if self.deleting => &[condition::DELETING],
            "Validate" => {
                return self.waits.first().map(|wait| (wait.reason.as_str(), wait.what.as_str()));
            }
            "Network" | "Endpoint" => &[condition::INFRASTRUCTURE_READY],
            "ControlPlaneInit" | "ControlPlane" => {
                &[own::CONTROL_PLANE_AVAILABLE, own::CONTROL_PLANE_MACHINES_READY]
            }
            "CNI" => &[own::CONTROL_PLANE_MACHINES_READY],
            "Workers" => &[own::WORKERS_AVAILABLE, own::WORKER_MACHINES_READY],
            _ => &[condition::AVAILABLE],
        };
        let open: Vec<&Condition> = kinds
            .iter()
            .filter_map(|kind| self.conditions.iter().find(|condition| condition.kind == **kind))
            .filter(|condition| condition.is_true() == self.deleting)
            .collect();
        let coded = open.iter().find(|condition| capstan_controller::code_in(&condition.message).is_some());
        coded.or(open.first()).map(|condition| (condition.reason.as_str(), condition.message.as_str()))
    }
}
