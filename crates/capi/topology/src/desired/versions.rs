//! Which part of a cluster may have which version now: the control plane first, then workers, one minor after the other.

use std::collections::BTreeSet;

use capstan_capi_core::contract::{ControlPlane, External};
use capstan_capi_types::core::topology::Topology;
use capstan_capi_types::core::{Cluster, TemplateMeta, annotation};
use capstan_capi_types::version;

use super::hooks::{self, Calls};
use super::plan::{PlanQuestion, UpgradePlan, plans};
use crate::ask::{Answers, Ask, Stop};
use crate::blueprint::Blueprint;
use crate::current::{Current, is_provisioning, is_upgrading};

/// How far an upgrade is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upgrade {
    /// Versions that the control plane still passes through.
    pub control_plane_plan: Vec<String>,
    /// Versions that workers still pass through.
    pub workers_plan: Vec<String>,
    /// The control plane has another version than the topology, and does not get it now.
    pub control_plane_pending: bool,
    /// The control plane waits until workers have its version.
    pub waits_for_workers: bool,
    pub control_plane_provisioning: bool,
    pub control_plane_upgrading: bool,
    /// The control plane gets the next version now.
    pub control_plane_starting: bool,
    pub deployments: WorkersUpgrade,
    pub pools: WorkersUpgrade,
    /// The oldest version of workers; empty without workers.
    pub oldest_workers: String,
    /// A hook keeps workers from following the control plane.
    pub workers_held: bool,
    concurrency: usize,
}

/// How far the upgrade of one kind of workers is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkersUpgrade {
    /// Names of those whose machines have different versions, or that get the next version now.
    pub upgrading: BTreeSet<String>,
    /// Those that do not get the next version now.
    pub pending: BTreeSet<String>,
    /// Those that an annotation holds back.
    pub deferred: BTreeSet<String>,
    /// Topologies whose object is not created while the control plane changes.
    pub pending_create: BTreeSet<String>,
}

impl WorkersUpgrade {
    fn is_done(&self) -> bool {
        let sets = [&self.upgrading, &self.pending, &self.deferred, &self.pending_create];
        sets.into_iter().all(BTreeSet::is_empty)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkersKind {
    Deployments,
    Pools,
}

impl Upgrade {
    /// The plan, and who is upgrading already.
    pub(super) fn plan(blueprint: &Blueprint, current: &Current, answers: &Answers) -> Result<Self, Stop> {
        let annotations = &current.cluster.metadata.annotations;
        let concurrency = annotations.get(annotation::TOPOLOGY_UPGRADE_CONCURRENCY);
        let concurrency = concurrency.and_then(|text| text.parse().ok()).unwrap_or(1);
        let mut upgrade = Self { concurrency: usize::max(concurrency, 1), ..Self::default() };
        let running = current.deployments.values().filter(|running| running.upgrading);
        upgrade.deployments.upgrading = running.map(|running| running.object.metadata.name.clone()).collect();
        let running = current.pools.values().filter(|running| running.upgrading);
        upgrade.pools.upgrading = running.map(|running| running.object.metadata.name.clone()).collect();
        let Some(control_plane) = current.control_plane.as_ref().filter(|_| current.referenced) else {
            return Ok(upgrade);
        };
        let found = ControlPlane(control_plane).version().map_err(|error| error.to_string())?;
        let found = found.unwrap_or_default();
        let pools = current.pools.values().map(|running| &running.object.spec.template.spec.version);
        let workers = current.deployments.values().map(|running| &running.object.spec.template.spec.version);
        let workers = workers.chain(pools);
        let workers: Vec<&str> = workers.map(String::as_str).filter(|text| !text.is_empty()).collect();
        let oldest = workers.iter().min_by_key(|text| version::tolerant(text));
        upgrade.oldest_workers = oldest.map(|text| (*text).to_owned()).unwrap_or_default();
        let wanted = blueprint.topology.version.as_str();
        let spec = &blueprint.class.spec;
        let extension = &spec.upgrade.external.generate_upgrade_plan_extension;
        let plan = match (extension.is_empty(), PlanQuestion::about(wanted, &found, &workers)?) {
            (_, None) => UpgradePlan::default(),
            (true, Some(_)) => plans(wanted, &found, &workers, &spec.kubernetes_versions)?,
            (false, Some(question)) => match &answers.upgrade_plan {
                Some(plan) => plan.clone(),
                None => return Err(ask(extension, question, &current.cluster)),
            },
        };
        upgrade.control_plane_plan = plan.control_plane;
        upgrade.workers_plan = plan.workers;
        Ok(upgrade)
    }

    /// Nothing is left to upgrade or to create.
    pub fn is_done(&self) -> bool {
        !(self.control_plane_pending
            || self.control_plane_starting
            || self.control_plane_upgrading
            || !self.deployments.is_done()
            || !self.pools.is_done())
    }

    /// The whole cluster has the version of the topology.
    pub(super) fn is_settled(&self) -> bool {
        self.control_plane_is_stable() && self.deployments.is_done() && self.pools.is_done()
    }

    fn control_plane_is_stable(&self) -> bool {
        !(self.control_plane_provisioning
            || self.control_plane_upgrading
            || self.control_plane_starting
            || self.control_plane_pending)
    }

    /// Workers may be upgraded to the version of the control plane.
    fn workers_may_follow(&self) -> bool {
        !(self.control_plane_provisioning || self.control_plane_upgrading || self.control_plane_starting)
            && (!self.control_plane_pending || self.waits_for_workers)
    }

    /// The version that the control plane gets now.
    pub(super) fn control_plane_version(
        &mut self,
        running: &External,
        found: &str,
        wanted: &str,
        calls: &mut Calls<'_>,
    ) -> Result<String, Stop> {
        self.control_plane_pending = found != wanted;
        if is_provisioning(running) {
            self.control_plane_provisioning = true;
            return Ok(found.to_owned());
        }
        if is_upgrading(running) {
            self.control_plane_upgrading = true;
            return Ok(found.to_owned());
        }
        if !calls.after_control_plane(self, found)? {
            self.workers_held = true;
            return Ok(found.to_owned());
        }
        // Before the next version, workers must have the one of the control plane if the plan says so.
        if self.workers_plan.first().is_some_and(|next| next == found) {
            self.waits_for_workers = true;
            return Ok(found.to_owned());
        }
        let workers_change = !self.deployments.upgrading.is_empty() || !self.pools.upgrading.is_empty();
        if workers_change || !calls.after_workers(self, found)? || !self.control_plane_pending {
            return Ok(found.to_owned());
        }
        let next = self.control_plane_plan.first().cloned().ok_or_else(|| {
            format!("there is no upgrade plan from {found} to {wanted}: check the kubernetesVersions of the ClusterClass")
        })?;
        if !calls.before_step(self, found, &next, wanted)? {
            return Ok(found.to_owned());
        }
        self.control_plane_starting = true;
        self.control_plane_pending = false;
        Ok(next)
    }

    fn workers(&mut self, kind: WorkersKind) -> &mut WorkersUpgrade {
        match kind {
            WorkersKind::Deployments => &mut self.deployments,
            WorkersKind::Pools => &mut self.pools,
        }
    }

    /// The version that a group of workers gets now. `topology` is its name there; `running` are name and version of the
    /// object that exists.
    pub(super) fn workers_version(
        &mut self,
        all: &Topology,
        kind: WorkersKind,
        topology: &str,
        running: Option<(&str, &str)>,
    ) -> Result<String, String> {
        let wanted = all.version.as_str();
        let stable = self.control_plane_is_stable() && !self.workers_held;
        let may_follow = self.workers_may_follow() && !self.workers_held;
        let concurrency = self.concurrency;
        let group = self.workers(kind);
        let Some((name, found)) = running else {
            if !stable {
                group.pending_create.insert(topology.to_owned());
            }
            return Ok(wanted.to_owned());
        };
        if found == wanted {
            return Ok(found.to_owned());
        }
        if is_deferred(all, kind, topology) {
            group.deferred.insert(name.to_owned());
            group.pending.insert(name.to_owned());
            return Ok(found.to_owned());
        }
        if group.upgrading.len() >= concurrency || !may_follow {
            group.pending.insert(name.to_owned());
            return Ok(found.to_owned());
        }
        let next = self
            .workers_plan
            .first()
            .cloned()
            .ok_or_else(|| format!("there is no upgrade plan of workers from {found} to {wanted}"))?;
        // It has the first version of the plan already and waits for the control plane.
        let group = self.workers(kind);
        if next == found {
            group.pending.insert(name.to_owned());
            return Ok(next);
        }
        group.upgrading.insert(name.to_owned());
        Ok(next)
    }
}

fn ask(handler: &str, question: PlanQuestion, cluster: &Cluster) -> Stop {
    let mut request = question.request();
    request["cluster"] = hooks::sent(cluster);
    Stop::Ask(Box::new(Ask::UpgradePlan { handler: handler.to_owned(), question, request }))
}

/// An annotation on it, or on one before it, holds a group of workers back.
fn is_deferred(all: &Topology, kind: WorkersKind, topology: &str) -> bool {
    let workers = &all.workers;
    let groups: Vec<(&str, &TemplateMeta)> = match kind {
        WorkersKind::Deployments => {
            workers.machine_deployments.iter().map(|of| (of.name.as_str(), &of.metadata)).collect()
        }
        WorkersKind::Pools => {
            workers.machine_pools.iter().map(|of| (of.name.as_str(), &of.metadata)).collect()
        }
    };
    for (name, metadata) in groups {
        if metadata.annotations.contains_key(annotation::TOPOLOGY_HOLD_UPGRADE_SEQUENCE) {
            return true;
        }
        if name == topology {
            return metadata.annotations.contains_key(annotation::TOPOLOGY_DEFER_UPGRADE);
        }
    }
    false
}
