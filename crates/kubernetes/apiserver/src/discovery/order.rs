//! The order of groups and versions. Clients that find a name in two groups use the first.

use std::cmp::Ordering;

/// Priorities of built-in groups, highest first. Custom groups have [`CUSTOM`].
const BUILT_IN: &[(&str, u32)] = &[
    ("apiregistration.k8s.io", 20000),
    ("", 18000),
    ("apps", 17800),
    ("events.k8s.io", 17750),
    ("authentication.k8s.io", 17700),
    ("authorization.k8s.io", 17600),
    ("autoscaling", 17500),
    ("batch", 17400),
    ("certificates.k8s.io", 17300),
    ("networking.k8s.io", 17200),
    ("policy", 17100),
    ("rbac.authorization.k8s.io", 17000),
    ("storage.k8s.io", 16800),
    ("admissionregistration.k8s.io", 16700),
    ("apiextensions.k8s.io", 16700),
    ("scheduling.k8s.io", 16600),
    ("coordination.k8s.io", 16500),
    ("node.k8s.io", 16300),
    ("discovery.k8s.io", 16200),
    ("resource.k8s.io", 16200),
    ("flowcontrol.apiserver.k8s.io", 16100),
    ("internal.apiserver.k8s.io", 16000),
    ("storagemigration.k8s.io", 15800),
];

/// Priority of groups that come from CustomResourceDefinitions.
const CUSTOM: u32 = 1000;

/// `groupPriorityMinimum` of a group's APIServices.
pub fn group_priority(group: &str) -> u32 {
    BUILT_IN.iter().find(|(name, _)| *name == group).map_or(CUSTOM, |(_, priority)| *priority)
}

/// Groups by descending priority, then by name.
pub fn compare_groups(a: &str, b: &str) -> Ordering {
    group_priority(b).cmp(&group_priority(a)).then_with(|| a.cmp(b))
}

/// Versions by preference: stable before beta before alpha, then the higher number; anything else last, by name.
/// `Less` means preferred.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// (stability, major, minor) of a `v<major>[alpha|beta<minor>]`.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let major = number(major)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    if let Some(minor) = rest.strip_prefix("beta") {
        return Some((1, major, number(minor)?));
    }
    Some((0, major, number(rest.strip_prefix("alpha")?)?))
}

/// Decimal digits only: no sign, no overflow.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_listed_from_most_to_least_mature() {
        let ordered =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        let mut shuffled = ordered;
        shuffled.reverse();
        shuffled.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(shuffled, ordered);
    }

    #[test]
    fn odd_versions_are_names_not_numbers() {
        for odd in ["v", "v1beta", "v1gamma1", "1", "v1.2", "v+1", "v1beta-1", "v99999999999999999999"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn custom_groups_follow_built_in_ones_by_name() {
        let mut groups = ["zoo.example", "apps", "", "a.example", "rbac.authorization.k8s.io"];
        groups.sort_by(|a, b| compare_groups(a, b));
        assert_eq!(groups, ["", "apps", "rbac.authorization.k8s.io", "a.example", "zoo.example"]);
    }
}
