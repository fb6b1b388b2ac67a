//! Rules for Kubernetes versions that `upgrade` enforces and `plan` warns about.

use anyhow::{Result, bail};
use capstan_capi_types::core::{Machine, label};
use capstan_capi_types::version::tolerant;
use capstan_object::ObjectMeta;
use semver::Version;
use serde_json::Value;

use crate::workers::WorkerGroup;

/// How many minor versions a kubelet may be behind its API server.
const KUBELET_SKEW: u64 = 3;

/// The newest minor version that suites ran against; `tests/support` names its patch release.
const NEWEST_TESTED: (u64, u64) = (1, 36);

/// A warning about a version that this release was not tested with.
pub fn untested(version: &Version) -> Option<String> {
    let (major, minor) = NEWEST_TESTED;
    ((version.major, version.minor) > NEWEST_TESTED).then(|| {
        format!("v{version} is not known to this release, whose newest tested Kubernetes version is v{major}.{minor}")
    })
}

/// Versions of machines whose nodes joined a cluster. A version that is only in a spec can still be taken back.
#[derive(Debug, Clone, Default)]
pub struct JoinedVersions {
    control_plane: Vec<Version>,
    workers: Vec<(ObjectMeta, Version)>,
}

impl JoinedVersions {
    /// Of the machines of one cluster.
    pub fn of<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> Self {
        let mut joined = Self::default();
        for machine in machines.into_iter().filter(|machine| !machine.status.node_ref.name.is_empty()) {
            let Some(version) = tolerant(&machine.spec.version) else { continue };
            match machine.metadata.labels.contains_key(label::CONTROL_PLANE) {
                true => joined.control_plane.push(version),
                false => joined.workers.push((machine.metadata.clone(), version)),
            }
        }
        joined
    }

    /// Refuses downgrades and skipped minor versions of a control plane whose spec is at `now`. A control plane that is
    /// `initialized` has data of that version, whether or not its machines are known.
    pub fn check_control_plane(&self, initialized: bool, now: &Version, to: &Version) -> Result<()> {
        let newest = self.control_plane.iter().max().or_else(|| initialized.then_some(now));
        let oldest = self.control_plane.iter().min().unwrap_or(now);
        if newest.is_some_and(|newest| to < newest) {
            bail!("Kubernetes cannot be downgraded; restore an etcd backup into a new cluster instead");
        }
        if (to.major, to.minor) > (oldest.major, oldest.minor + 1) {
            bail!(
                "a control plane cannot skip minor versions: upgrade to v{}.{} first",
                oldest.major,
                oldest.minor + 1
            );
        }
        Ok(())
    }

    /// Refuses versions of workers that their control plane at `to` does not support. `now` is the version in the spec.
    pub fn check_workers(&self, group: &WorkerGroup, now: &Version, to: &Version) -> Result<()> {
        let listed =
            self.workers.iter().filter(|(machine, _)| group.has(machine)).map(|(_, own)| own.clone());
        let unlisted = group.unlisted.iter().filter_map(|version| tolerant(version));
        let mut joined = listed.chain(unlisted).peekable();
        if joined.peek().is_none() && now > to {
            // The version of the spec is taken back before a machine has joined with it.
            return Ok(());
        }
        match joined.peek() {
            None => check_skew(now, to),
            Some(_) => joined.try_for_each(|own| check_skew(&own, to)),
        }
    }
}

/// Whether the API server of a control plane has run, by its status under any version of the contract.
pub fn is_initialized(control_plane: &Value) -> bool {
    let status = &control_plane["status"];
    status["initialization"]["controlPlaneInitialized"] == true || status["initialized"] == true
}

/// A version with its patch release; without, it is ambiguous.
pub fn parsed(text: &str) -> Result<Version> {
    let whole = text.split(['-', '+']).next().unwrap_or_default().matches('.').count() == 2;
    match tolerant(text).filter(|_| whole) {
        Some(version) => Ok(version),
        None => bail!("{text:?} is not a Kubernetes version such as v1.36.0"),
    }
}

/// Refuses workers that are newer than their control plane, or too old for it.
pub fn check_skew(own: &Version, to: &Version) -> Result<()> {
    if own > to {
        bail!("newer than v{to}: workers must not be newer than their control plane");
    }
    if own.minor + KUBELET_SKEW < to.minor {
        bail!(
            "a kubelet may be at most {KUBELET_SKEW} minor versions older than its API server: upgrade it to at least v{}.{} first",
            to.major,
            to.minor - KUBELET_SKEW
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::core::{MachineDeployment, MachinePool, StatusVersion};

    use super::*;

    fn version(text: &str) -> Version {
        parsed(text).expect("a version")
    }

    fn machine(version: &str, labels: &[(&str, &str)], node: &str) -> Machine {
        let mut machine = Machine::default();
        machine.spec.version = version.to_owned();
        machine.status.node_ref.name = node.to_owned();
        machine.metadata.labels =
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        machine
    }

    #[test]
    fn a_version_can_be_taken_back_while_no_machine_of_it_has_joined() {
        let control_plane = |version: &str, node: &str| machine(version, &[(label::CONTROL_PLANE, "")], node);
        for (machines, initialized, now, to, refused) in [
            // A failed upgrade: the new machine never joined.
            (
                vec![control_plane("v1.35.0", "a"), control_plane("v1.36.0", "")],
                true,
                "v1.36.0",
                "v1.35.0",
                None,
            ),
            (vec![control_plane("v1.35.0", "a")], true, "v1.36.0", "v1.35.0", None),
            (vec![control_plane("v1.35.0", "a")], true, "v1.36.0", "v1.36.1", None),
            (
                vec![control_plane("v1.35.0", "a"), control_plane("v1.36.0", "b")],
                true,
                "v1.36.0",
                "v1.35.0",
                Some("cannot be downgraded"),
            ),
            (vec![control_plane("v1.35.0", "a")], true, "v1.36.0", "v1.34.0", Some("cannot be downgraded")),
            // From what runs, not from the spec that failed.
            (vec![control_plane("v1.35.0", "a")], true, "v1.36.0", "v1.37.0", Some("upgrade to v1.36 first")),
            // Its machines are not known, or do not report their nodes: the spec is all that is known.
            (vec![], true, "v1.36.0", "v1.35.0", Some("cannot be downgraded")),
            // A cluster that never started: there is no data of a newer version.
            (vec![], false, "v1.36.0", "v1.35.0", None),
            (vec![control_plane("v1.36.0", "")], false, "v1.36.0", "v1.34.0", None),
            (vec![control_plane("v1.36.0", "a")], false, "v1.36.0", "v1.35.0", Some("cannot be downgraded")),
        ] {
            let joined = JoinedVersions::of(&machines);
            let result = joined.check_control_plane(initialized, &version(now), &version(to));
            match (result, refused) {
                (Ok(()), None) => {}
                (Err(error), Some(words)) => {
                    assert!(error.to_string().contains(words), "{now} → {to}: {error}")
                }
                (result, refused) => panic!("{now} → {to}: {result:?}, not {refused:?}"),
            }
        }
    }

    #[test]
    fn workers_go_back_with_their_control_plane_unless_one_has_joined() {
        let mut deployment = MachineDeployment::default();
        deployment.metadata.name = "workers".to_owned();
        let mut pool = MachinePool::default();
        pool.metadata.name = "workers".to_owned();
        let groups = [
            (WorkerGroup::of_deployment(&deployment), label::DEPLOYMENT_NAME),
            (WorkerGroup::of_pool(&pool), label::POOL_NAME),
        ];
        for (group, label) in &groups {
            let worker = |version: &str, node: &str| machine(version, &[(label, "workers")], node);
            let check = |machines: &[Machine]| {
                JoinedVersions::of(machines).check_workers(group, &version("v1.36.0"), &version("v1.35.0"))
            };
            assert!(check(&[]).is_ok());
            assert!(check(&[worker("v1.35.0", "a"), worker("v1.36.0", "")]).is_ok());
            let error = check(&[worker("v1.35.0", "a"), worker("v1.36.0", "b")]).expect_err("it joined");
            assert!(error.to_string().contains("must not be newer"), "{error}");
        }
        // A pool whose provider keeps no Machines.
        pool.status.versions =
            vec![StatusVersion { version: "v1.36.0".to_owned(), ..StatusVersion::default() }];
        let check = |to: &str| {
            let (joined, pool) = (JoinedVersions::default(), WorkerGroup::of_pool(&pool));
            joined.check_workers(&pool, &version("v1.36.0"), &version(to))
        };
        assert!(check("v1.36.1").is_ok());
        assert!(check("v1.35.0").expect_err("it joined").to_string().contains("must not be newer"));
    }
}
