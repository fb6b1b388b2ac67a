//! Versions that an upgrade passes through.

use capstan_capi_types::runtime::hook::{GenerateUpgradePlanResponse, UpgradeStep};
use capstan_capi_types::version;
use semver::Version;
use serde_json::{Value, json};

/// Minors that workers may be behind the control plane.
const MOST_SKEW: u64 = 3;
/// Steps that the plan of an extension may have, as many as a class may list versions.
const MOST_STEPS: usize = 100;

fn parsed(what: &str, text: &str) -> Result<Version, String> {
    version::tolerant(text).ok_or_else(|| format!("{what} version {text:?} is not a version"))
}

/// Versions that a cluster passes through on its way to the wanted one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpgradePlan {
    pub control_plane: Vec<String>,
    pub workers: Vec<String>,
}

fn oldest(workers: &[&str]) -> Result<Option<Version>, String> {
    let workers: Vec<Version> =
        workers.iter().map(|text| parsed("MachineDeployment", text)).collect::<Result<_, _>>()?;
    Ok(workers.into_iter().min())
}

/// What an extension is asked about an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanQuestion {
    wanted: String,
    control_plane: String,
    /// The oldest version of workers; empty without workers.
    workers: String,
}

impl std::fmt::Display for PlanQuestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({},{}) => {}", self.control_plane, self.workers, self.wanted)
    }
}

impl PlanQuestion {
    /// `None` if everything has the wanted version.
    pub fn about(wanted: &str, control_plane: &str, workers: &[&str]) -> Result<Option<Self>, String> {
        let (target, from) = (parsed("Cluster", wanted)?, parsed("ControlPlane", control_plane)?);
        let oldest = oldest(workers)?;
        if from == target && oldest.as_ref().is_none_or(|oldest| *oldest == target) {
            return Ok(None);
        }
        Ok(Some(Self {
            wanted: wanted.to_owned(),
            control_plane: control_plane.to_owned(),
            workers: oldest.map(|oldest| format!("v{oldest}")).unwrap_or_default(),
        }))
    }

    /// The request, without type, settings and Cluster.
    pub fn request(&self) -> Value {
        let mut request = json!({
            "fromControlPlaneKubernetesVersion": self.control_plane, "toKubernetesVersion": self.wanted,
        });
        if !self.workers.is_empty() {
            request["fromWorkersKubernetesVersion"] = self.workers.as_str().into();
        }
        request
    }

    /// The plan of an extension, if it is one.
    pub fn answered(&self, response: &GenerateUpgradePlanResponse) -> Result<UpgradePlan, String> {
        let versions = |steps: &[UpgradeStep]| {
            if steps.len() > MOST_STEPS {
                return Err(format!("the upgrade plan has {} steps, more than {MOST_STEPS}", steps.len()));
            }
            Ok(steps.iter().map(|step| step.version.clone()).collect::<Vec<_>>())
        };
        let control_plane = versions(&response.control_plane_upgrades)?;
        let mut workers = versions(&response.workers_upgrades)?;
        let target = parsed("Cluster", &self.wanted)?;
        let from = parsed("ControlPlane", &self.control_plane)?;
        if from != target {
            check(&control_plane, &self.wanted, &target, &from)?;
        } else if !control_plane.is_empty() {
            return Err("invalid ControlPlane upgrade plan: control plane is already at the desired version"
                .to_owned());
        }
        let oldest = match self.workers.is_empty() {
            true => None,
            false => Some(parsed("MachineDeployment", &self.workers)?).filter(|oldest| *oldest != target),
        };
        let Some(oldest) = oldest else {
            return match workers.is_empty() {
                true => Ok(UpgradePlan { control_plane, workers }),
                false => Err(
                    "invalid worker upgrade plan; there are no workers or workers already at the desired version"
                        .to_owned(),
                ),
            };
        };
        if workers.is_empty() {
            workers = of_workers(&control_plane, &self.wanted, &target, &self.control_plane, &from, &oldest)?;
        }
        self.check_workers(&control_plane, &workers, &target, &oldest)?;
        Ok(UpgradePlan { control_plane, workers })
    }

    /// Workers pass through versions of the control plane, in order, and are never too far behind.
    fn check_workers(
        &self,
        control_plane: &[String],
        workers: &[String],
        target: &Version,
        oldest: &Version,
    ) -> Result<(), String> {
        let known = |version: &&String| control_plane.contains(version) || **version == self.control_plane;
        let unknown: Vec<&str> =
            workers.iter().filter(|version| !known(version)).map(String::as_str).collect();
        if !control_plane.is_empty() && !unknown.is_empty() {
            return Err(format!(
                "invalid workers upgrade plan: versions {} doesn't match any versions in the control plane upgrade plan nor the control plane version",
                unknown.join(",")
            ));
        }
        let mut last = oldest.clone();
        for (at, text) in workers.iter().enumerate() {
            let next = parsed("upgrade plan", text)?;
            let invalid = |why: String| format!("invalid workers upgrade plan, item {at}; {why}");
            if next <= last {
                return Err(invalid(format!("version {text} must be greater than v{last}")));
            }
            if next.minor.saturating_sub(last.minor) > MOST_SKEW {
                return Err(invalid(format!(
                    "workers cannot go from minor {} (v{last}) to minor {} ({text}), an intermediate step is required to comply with Kubernetes version skew rules",
                    last.minor, next.minor
                )));
            }
            last = next;
        }
        match last == *target {
            true => Ok(()),
            false => Err(format!(
                "invalid workers upgrade plan; workers upgrade plan must end with version {}, ends with v{last} instead",
                self.wanted
            )),
        }
    }
}

/// Versions that the control plane and the workers pass through, by the versions of the class.
pub fn plans(
    wanted: &str,
    control_plane: &str,
    workers: &[&str],
    of_class: &[String],
) -> Result<UpgradePlan, String> {
    let target = parsed("Cluster", wanted)?;
    let from = parsed("ControlPlane", control_plane)?;
    let oldest = oldest(workers)?;
    if from == target && oldest.as_ref().is_none_or(|oldest| *oldest == target) {
        return Ok(UpgradePlan::default());
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
    Ok(UpgradePlan { control_plane: plan, workers })
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
            ("x", "v1.30.0", vec![], &none, Err("Cluster version \"x\" is not a version")),
        ] {
            let found = plans(wanted, control_plane, &workers, of_class);
            let texts = |plan: Vec<&str>| plan.into_iter().map(str::to_owned).collect::<Vec<String>>();
            let expected = expected
                .map(|(a, b)| UpgradePlan { control_plane: texts(a), workers: texts(b) })
                .map_err(str::to_owned);
            assert_eq!(found, expected, "{control_plane} to {wanted}");
        }
    }

    #[test]
    fn the_plan_of_an_extension_is_checked_and_completed() {
        let steps = |versions: &[&str]| -> Vec<UpgradeStep> {
            versions.iter().map(|version| UpgradeStep { version: (*version).to_owned() }).collect()
        };
        let all = ["v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0"];
        for (control_plane, workers, plan, of_workers, expected) in [
            ("v1.30.0", "v1.30.0", &all[..], &[][..], Ok("v1.33.0 v1.34.0")),
            ("v1.30.0", "v1.30.0", &all, &["v1.32.0", "v1.34.0"], Ok("v1.32.0 v1.34.0")),
            ("v1.30.0", "", &all, &[], Ok("")),
            ("v1.34.0", "v1.30.0", &[], &["v1.34.0"], Err("workers cannot go from minor 30 (v1.30.0)")),
            ("v1.34.0", "v1.33.0", &[], &[], Ok("v1.34.0")),
            ("v1.30.0", "v1.30.0", &[], &[], Err("must end with version v1.34.0, ends with v1.30.0")),
            ("v1.30.0", "v1.30.0", &all[1..], &[], Err("item 0; expecting a version with minor 30 or 31")),
            ("v1.34.0", "v1.33.0", &all[3..], &[], Err("control plane is already at the desired version")),
            ("v1.30.0", "", &all, &["v1.34.0"], Err("there are no workers or workers already at")),
            ("v1.30.0", "v1.30.0", &all, &["v1.31.5", "v1.34.0"], Err("versions v1.31.5 doesn't match any")),
            (
                "v1.30.0",
                "v1.30.0",
                &all,
                &["v1.33.0"],
                Err("workers upgrade plan must end with version v1.34.0"),
            ),
            (
                "v1.30.0",
                "v1.30.0",
                &all,
                &["v1.33.0", "v1.32.0"],
                Err("item 1; version v1.32.0 must be greater"),
            ),
            ("v1.30.0", "v1.30.0", &["x"], &[], Err("\"x\" is not a version")),
        ] {
            let workers: Vec<&str> = Some(workers).filter(|text| !text.is_empty()).into_iter().collect();
            let question = PlanQuestion::about("v1.34.0", control_plane, &workers);
            let question = question.expect("versions").expect("an upgrade");
            let response = GenerateUpgradePlanResponse {
                control_plane_upgrades: steps(plan),
                workers_upgrades: steps(of_workers),
            };
            match (question.answered(&response), expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(
                        (found.control_plane.join(" "), found.workers.join(" ")),
                        (plan.join(" "), expected.to_owned())
                    );
                }
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, expected) => panic!("{question}: {found:?}, not {expected:?}"),
            }
        }
        assert_eq!(PlanQuestion::about("v1.34.0", "v1.34.0", &["v1.34.0"]), Ok(None));
        let many = GenerateUpgradePlanResponse {
            control_plane_upgrades: steps(&["v1.31.0"; 101]),
            ..Default::default()
        };
        let question = PlanQuestion::about("v1.34.0", "v1.30.0", &[]).expect("versions").expect("an upgrade");
        assert!(question.answered(&many).expect_err("too long").contains("101 steps"));
        assert_eq!(
            question.request(),
            json!({"fromControlPlaneKubernetesVersion": "v1.30.0", "toKubernetesVersion": "v1.34.0"})
        );
    }
}
