//! Questions of `capstan init` that all clouds have in common.

use crate::{Answers, Choice, Finding, Question, Shape};

/// Variables that templates of all providers have.
pub const CLUSTER_NAME: &str = "CLUSTER_NAME";
pub const KUBERNETES_VERSION: &str = "KUBERNETES_VERSION";
pub const CONTROL_PLANE_COUNT: &str = "CONTROL_PLANE_MACHINE_COUNT";
pub const WORKER_COUNT: &str = "WORKER_MACHINE_COUNT";

/// What kubeadm's preflight checks ask of a control plane machine.
const LEAST_CPUS: u32 = 2;
const LEAST_MEMORY_MIB: u64 = 1700;

/// The Kubernetes version in an image's name, as image-builder names images: `ubuntu-2404-kube-v1.36.0`,
/// `kube-v1.27.2/rhel-8`. Names without one say nothing.
pub fn version_in(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once("kube-v")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let version = rest[..end].trim_end_matches('.');
    (version.split('.').count() == 3).then_some(version)
}

/// Images with a Kubernetes version in their name, the wanted or newest first, then others.
pub fn images(mut names: Vec<&str>, wanted: Option<&str>) -> Vec<Choice> {
    let numbers = |name: &str| -> Vec<u64> {
        version_in(name).into_iter().flat_map(|it| it.split('.')).filter_map(|it| it.parse().ok()).collect()
    };
    let wanted = wanted.map(|it| it.trim_start_matches('v'));
    names.sort_by_key(|name| {
        std::cmp::Reverse((version_in(name) == wanted && wanted.is_some(), numbers(name)))
    });
    names.dedup();
    let note = |name: &str| version_in(name).map(|it| format!("Kubernetes v{it}")).unwrap_or_default();
    names.into_iter().map(|name| Choice::new(name, note(name))).collect()
}

/// The version to install, proposed by the name of the chosen image.
pub fn version_question(image: &str) -> Question {
    let version = version_in(image).map(|version| format!("v{version}"));
    let choices = version.map(|it| Choice::new(it, "by the image's name")).into_iter().collect();
    let title = "Kubernetes version of the image";
    Question { variable: KUBERNETES_VERSION, title, choices, others: Some(Shape::Version) }
}

/// A size of machines that a cloud offers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferedSize {
    pub memory_mib: u64,
    pub cpus: u32,
    pub name: String,
}

/// Sizes that a control plane machine fits into, the smallest first.
pub fn sizes(offered: impl IntoIterator<Item = OfferedSize>) -> Vec<Choice> {
    let fits = |size: &OfferedSize| size.cpus >= LEAST_CPUS && size.memory_mib >= LEAST_MEMORY_MIB;
    let mut fitting: Vec<OfferedSize> = offered.into_iter().filter(fits).collect();
    fitting.sort();
    let note = |size: &OfferedSize| format!("{} CPUs, {} MiB", size.cpus, size.memory_mib);
    fitting.iter().map(|size| Choice::new(&size.name, note(size))).collect()
}

/// How many machines; `None` if the answers have that.
pub fn count_question(answers: &Answers) -> Option<Question> {
    let questions = [
        (
            CONTROL_PLANE_COUNT,
            "control plane machines",
            [("1", "no redundancy"), ("3", "one may fail")],
            Shape::OddCount,
        ),
        (WORKER_COUNT, "workers", [("1", ""), ("3", "")], Shape::Count),
    ];
    let (variable, title, counts, shape) =
        questions.into_iter().find(|(variable, ..)| !answers.contains_key(*variable))?;
    let choices = counts.map(|(count, note)| Choice::new(count, note)).to_vec();
    Some(Question { variable, title, choices, others: Some(shape) })
}

/// The numbers of machines that the answers ask for: control plane and workers.
pub fn counts(answers: &Answers) -> [i64; 2] {
    let count = |variable: &str| answers.get(variable).and_then(|text| text.parse().ok()).unwrap_or(1_i64);
    [count(CONTROL_PLANE_COUNT), count(WORKER_COUNT)]
}

/// Whether a quota is sufficient: of each resource what is left, if it is limited, and what is needed.
pub fn quota(resources: &[(&str, Option<i64>, i64)]) -> Finding {
    let short: Vec<String> = resources
        .iter()
        .filter_map(|(what, left, needed)| {
            left.filter(|left| left < needed)
                .map(|left| format!("{needed} {what} are needed and {left} are left"))
        })
        .collect();
    match short.is_empty() {
        true => Finding::fine("the quota is sufficient"),
        false => Finding::bad(
            format!("quota: {}", short.join(", ")),
            "choose fewer or smaller machines, or have the limit raised",
        ),
    }
}

/// The finding of a quota that cannot be read.
pub fn unknown_quota(why: &str) -> Finding {
    Finding::warning(format!("the quota is not known: {why}"), "ask the cloud's operator")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    #[test]
    fn the_newest_image_is_proposed_unless_a_version_is_asked_for() {
        let names = ["plain", "ubuntu-kube-v1.9.9", "ubuntu-kube-v1.36.0", "ubuntu-kube-v1.35.0"];
        let first = |version| images(names.to_vec(), version)[0].value.clone();
        assert_eq!(first(None), "ubuntu-kube-v1.36.0");
        assert_eq!(first(Some("v1.35.0")), "ubuntu-kube-v1.35.0");
        assert_eq!(images(names.to_vec(), None).last().map(|it| it.value.as_str()), Some("plain"));
    }

    #[test]
    fn the_smallest_size_that_kubeadm_accepts_is_proposed() {
        let size = |name: &str, cpus, memory_mib| OfferedSize { memory_mib, cpus, name: name.to_owned() };
        let offered = [size("big", 8, 16384), size("tiny", 1, 512), size("fits", 2, 2048)];
        let choices: Vec<_> = sizes(offered).into_iter().map(|choice| choice.value).collect();
        assert_eq!(choices, ["fits", "big"]);
    }

    #[test]
    fn a_quota_names_what_is_short() {
        assert_eq!(quota(&[("machines", None, 500), ("CPUs", Some(4), 4)]).severity, Severity::Fine);
        let short = quota(&[("machines", Some(3), 4), ("CPUs", Some(9), 8)]);
        assert_eq!(short.what, "quota: 4 machines are needed and 3 are left");
    }
}
