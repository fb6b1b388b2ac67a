//! Versions that an upgrade passes through.

use capstan_capi_types::version;
use semver::Version;

/// Minors that workers may be behind the control plane.
const MOST_SKEW: u64 = 3;

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
