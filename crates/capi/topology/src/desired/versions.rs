//! Which part of a cluster may have which version now: the control plane first, then workers, one minor after the other.

use std::collections::BTreeSet;

use capstan_capi_core::contract::{ControlPlane, External};
use capstan_capi_types::core::topology::Topology;
use capstan_capi_types::core::{TemplateMeta, annotation};
use capstan_capi_types::version;
use semver::Version;

use crate::blueprint::Blueprint;
use crate::current::{Current, is_provisioning, is_upgrading};

/// Minors that workers may be behind the control plane.
const MOST_SKEW: u64 = 3;

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
    /// The MachineDeployments.
    pub deployments: WorkersUpgrade,
    /// The MachinePools.
    pub pools: WorkersUpgrade,
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

/// A kind of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkersKind {
    Deployments,
    Pools,
}

impl Upgrade {
    /// The plan, and who is upgrading already.
    pub(super) fn plan(blueprint: &Blueprint, current: &Current) -> Result<Self, String> {
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
        let (control_plane, workers) =
            plans(&blueprint.topology.version, &found, &workers, &blueprint.class.spec.kubernetes_versions)?;
        upgrade.control_plane_plan = control_plane;
        upgrade.workers_plan = workers;
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
    ) -> Result<String, String> {
        self.control_plane_pending = found != wanted;
        if is_provisioning(running) {
            self.control_plane_provisioning = true;
            return Ok(found.to_owned());
        }
        if is_upgrading(running) {
            self.control_plane_upgrading = true;
            return Ok(found.to_owned());
        }
        // Before the next version, workers must have the one of the control plane if the plan says so.
        if self.workers_plan.first().is_some_and(|next| next == found) {
            self.waits_for_workers = true;
            return Ok(found.to_owned());
        }
        let workers_change = !self.deployments.upgrading.is_empty() || !self.pools.upgrading.is_empty();
        if workers_change || !self.control_plane_pending {
            return Ok(found.to_owned());
        }
        let next = self.control_plane_plan.first().cloned().ok_or_else(|| {
            format!("there is no upgrade plan from {found} to {wanted}: check the kubernetesVersions of the ClusterClass")
        })?;
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
        let stable = self.control_plane_is_stable();
        let may_follow = self.workers_may_follow();
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

fn parsed(what: &str, text: &str) -> Result<Version, String> {
    version::tolerant(text).ok_or_else(|| format!("{what} version {text:?} is no version"))
}

/// Versions that the control plane and the workers pass through on their way to the wanted one.
pub fn plans(
    wanted: &str,
    control_plane: &str,
    workers: &[&str],
    of_class: &[String],
) -> Result<(Vec<String>, Vec<String>), String> {
    let target = parsed("Cluster", wanted)?;
    let from = parsed("ControlPlane", control_plane)?;
    let workers: Vec<Version> =
        workers.iter().map(|text| parsed("MachineDeployment", text)).collect::<Result<_, _>>()?;
    let oldest = workers.into_iter().min();
    if from == target && oldest.as_ref().is_none_or(|oldest| *oldest == target) {
        return Ok((Vec::new(), Vec::new()));
    }
    let plan = match of_class.is_empty() {
        true => one_minor(wanted, &target, control_plane, &from)?,
        false => through(of_class, &target, &from)?,
    };
    check(&plan, wanted, &target, &from)?;
    let workers = match oldest.filter(|oldest| *oldest != target) {
        Some(oldest) => of_workers(&plan, wanted, &target, control_plane, &from, &oldest)?,
        None => Vec::new(),
    };
    Ok((plan, workers))
}

fn one_minor(wanted: &str, target: &Version, found: &str, from: &Version) -> Result<Vec<String>, String> {
    if from == target {
        return Ok(Vec::new());
    }
    if target.minor > from.minor + 1 {
        return Err(format!("cannot compute an upgrade plan from {found} to {wanted}"));
    }
    Ok(vec![wanted.to_owned()])
}

/// The newest patch of each minor of the class between two versions.
fn through(of_class: &[String], target: &Version, from: &Version) -> Result<Vec<String>, String> {
    let mut plan: Vec<(u64, String)> = Vec::new();
    if from == target {
        return Ok(Vec::new());
    }
    for text in of_class {
        let version = parsed("ClusterClass", text)?;
        if version <= *from || version > *target {
            continue;
        }
        match plan.last_mut().filter(|(minor, _)| *minor == version.minor) {
            Some((_, latest)) => latest.clone_from(text),
            // Within the minor that it has, only the last step of an upgrade that ends there.
            None if version.minor == from.minor && target.minor != from.minor => {}
            None => plan.push((version.minor, text.clone())),
        }
    }
    Ok(plan.into_iter().map(|(_, text)| text).collect())
}

fn check(plan: &[String], wanted: &str, target: &Version, from: &Version) -> Result<(), String> {
    let mut last = from.clone();
    for (at, text) in plan.iter().enumerate() {
        let next = parsed("upgrade plan", text)?;
        let invalid = |why: String| format!("invalid ControlPlane upgrade plan: item {at}; {why}");
        if next <= last {
            return Err(invalid(format!("version {text} must be greater than v{last}")));
        }
        if next.minor != last.minor && next.minor != last.minor + 1 {
            return Err(invalid(format!(
                "expecting a version with minor {} or {}, found version {text}",
                last.minor,
                last.minor + 1
            )));
        }
        last = next;
    }
    match last == *target {
        true => Ok(()),
        false => Err(format!(
            "invalid ControlPlane upgrade plan: control plane upgrade plan must end with version {wanted}, ends with v{last} instead"
        )),
    }
}

/// Workers skip what the skew allows: every third minor, and the last.
fn of_workers(
    plan: &[String],
    wanted: &str,
    target: &Version,
    control_plane: &str,
    from: &Version,
    oldest: &Version,
) -> Result<Vec<String>, String> {
    let mut minors = vec![(from.minor, control_plane.to_owned())];
    for text in plan {
        let version = parsed("upgrade plan", text)?;
        minors.retain(|(minor, _)| *minor != version.minor);
        minors.push((version.minor, text.clone()));
    }
    let mut steps = Vec::new();
    for distance in 1..target.minor.saturating_sub(oldest.minor) {
        if distance % MOST_SKEW == 0 {
            let minor = oldest.minor + distance;
            let step = minors.iter().find(|(known, _)| *known == minor).map(|(_, text)| text.clone());
            steps.push(step.ok_or_else(|| {
                format!("invalid upgrade plan; unable to identify version for minor {minor}")
            })?);
        }
    }
    if steps.last().is_none_or(|last| last != wanted) {
        steps.push(wanted.to_owned());
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrades_pass_through_minors() {
        let class: Vec<String> =
            ["v1.30.0", "v1.30.4", "v1.31.1", "v1.31.5", "v1.32.0", "v1.33.2", "v1.34.0", "v1.35.1"]
                .map(str::to_owned)
                .into();
        let none: Vec<String> = Vec::new();
        for (wanted, control_plane, workers, of_class, expected) in [
            ("v1.31.0", "v1.31.0", vec!["v1.31.0"], &none, Ok((vec![], vec![]))),
            ("v1.31.0", "v1.30.0", vec!["v1.30.0"], &none, Ok((vec!["v1.31.0"], vec!["v1.31.0"]))),
            ("v1.31.0", "v1.31.0", vec!["v1.30.0", "v1.31.0"], &none, Ok((vec![], vec!["v1.31.0"]))),
            ("v1.31.0", "v1.30.0", vec![], &none, Ok((vec!["v1.31.0"], vec![]))),
            (
                "v1.32.0",
                "v1.30.0",
                vec![],
                &none,
                Err("cannot compute an upgrade plan from v1.30.0 to v1.32.0"),
            ),
            (
                "v1.32.0",
                "v1.30.0",
                vec!["v1.30.0"],
                &class,
                Ok((vec!["v1.31.5", "v1.32.0"], vec!["v1.32.0"])),
            ),
            ("v1.30.4", "v1.30.0", vec!["v1.30.0"], &class, Ok((vec!["v1.30.4"], vec!["v1.30.4"]))),
            (
                "v1.35.1",
                "v1.30.0",
                vec!["v1.30.0"],
                &class,
                Ok((vec!["v1.31.5", "v1.32.0", "v1.33.2", "v1.34.0", "v1.35.1"], vec!["v1.33.2", "v1.35.1"])),
            ),
            (
                "v1.36.0",
                "v1.30.0",
                vec![],
                &class,
                Err(
                    "invalid ControlPlane upgrade plan: control plane upgrade plan must end with version v1.36.0, ends with v1.35.1 instead",
                ),
            ),
            ("x", "v1.30.0", vec![], &none, Err("Cluster version \"x\" is no version")),
        ] {
            let found = plans(wanted, control_plane, &workers, of_class);
            let texts = |plan: Vec<&str>| plan.into_iter().map(str::to_owned).collect::<Vec<String>>();
            let expected = expected.map(|(a, b)| (texts(a), texts(b))).map_err(str::to_owned);
            assert_eq!(found, expected, "{control_plane} to {wanted}");
        }
    }
}
