//! Rules for Kubernetes versions that `upgrade` enforces and `plan` warns about.

use anyhow::{Result, bail};
use capstan_capi_types::core::{Machine, label};
use capstan_capi_types::version::tolerant;
use semver::Version;

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
    /// By MachineDeployment.
    workers: Vec<(String, Version)>,
}

impl JoinedVersions {
    /// Of the machines of one cluster.
    pub fn of<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> Self {
        let mut joined = Self::default();
        for machine in machines.into_iter().filter(|machine| !machine.status.node_ref.name.is_empty()) {
            let Some(version) = tolerant(&machine.spec.version) else { continue };
            let labels = &machine.metadata.labels;
            if labels.contains_key(label::CONTROL_PLANE) {
                joined.control_plane.push(version);
            } else if let Some(deployment) = labels.get(label::DEPLOYMENT_NAME) {
                joined.workers.push((deployment.clone(), version));
            }
        }
        joined
    }

    /// Refuses downgrades and skipped minor versions of a control plane whose spec is at `now`.
    pub fn check_control_plane(&self, now: &Version, to: &Version) -> Result<()> {
        let newest = self.control_plane.iter().max().unwrap_or(now);
        let oldest = self.control_plane.iter().min().unwrap_or(now);
        if to < newest {
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
    pub fn check_workers(&self, deployment: &str, now: &Version, to: &Version) -> Result<()> {
        let mut joined =
            self.workers.iter().filter(|(of, _)| of == deployment).map(|(_, own)| own).peekable();
        if joined.peek().is_none() && now > to {
            // The version of the spec is taken back before a machine has joined with it.
            return Ok(());
        }
        match joined.peek() {
            None => check_skew(now, to),
            Some(_) => joined.try_for_each(|own| check_skew(own, to)),
        }
    }
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
        for (machines, now, to, refused) in [
            // A failed upgrade: the new machine never joined.
            (vec![control_plane("v1.35.0", "a"), control_plane("v1.36.0", "")], "v1.36.0", "v1.35.0", None),
            (vec![control_plane("v1.35.0", "a")], "v1.36.0", "v1.35.0", None),
            (vec![control_plane("v1.35.0", "a")], "v1.36.0", "v1.36.1", None),
            (
                vec![control_plane("v1.35.0", "a"), control_plane("v1.36.0", "b")],
                "v1.36.0",
                "v1.35.0",
                Some("cannot be downgraded"),
            ),
            (vec![control_plane("v1.35.0", "a")], "v1.36.0", "v1.34.0", Some("cannot be downgraded")),
            // From what runs, not from the spec that failed.
            (vec![control_plane("v1.35.0", "a")], "v1.36.0", "v1.37.0", Some("upgrade to v1.36 first")),
            // Nothing has joined yet: the spec is all that is known.
            (vec![], "v1.36.0", "v1.35.0", Some("cannot be downgraded")),
        ] {
            let joined = JoinedVersions::of(&machines);
            let result = joined.check_control_plane(&version(now), &version(to));
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
        let worker = |version: &str, node: &str| machine(version, &[(label::DEPLOYMENT_NAME, "md")], node);
        let check = |machines: &[Machine]| {
            JoinedVersions::of(machines).check_workers("md", &version("v1.36.0"), &version("v1.35.0"))
        };
        assert!(check(&[]).is_ok());
        assert!(check(&[worker("v1.35.0", "a"), worker("v1.36.0", "")]).is_ok());
        let error = check(&[worker("v1.35.0", "a"), worker("v1.36.0", "b")]).expect_err("it joined");
        assert!(error.to_string().contains("must not be newer"), "{error}");
    }
}
