//! Which contract a kind follows, and in which of its versions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use capstan_controller::KindName;
use capstan_object::{ObjectMeta, object};
use serde::{Deserialize, Serialize};

/// The metadata of a CustomResourceDefinition: all that is needed, and small enough to cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Definition {
    /// Name and labels.
    pub metadata: ObjectMeta,
}

object!(
    Definition,
    "apiextensions.k8s.io" / "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    Cluster
);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContractVersion {
    /// Deprecated upstream, still supported here.
    V1Beta1,
    V1Beta2,
}

impl ContractVersion {
    /// The label of a definition that lists the API versions following this contract.
    pub fn label(self) -> &'static str {
        match self {
            Self::V1Beta1 => "cluster.x-k8s.io/v1beta1",
            Self::V1Beta2 => "cluster.x-k8s.io/v1beta2",
        }
    }
}

/// The newest contract that a definition's labels name, and the newest API version that follows it.
pub fn served(labels: &BTreeMap<String, String>) -> Option<(ContractVersion, String)> {
    for contract in [ContractVersion::V1Beta2, ContractVersion::V1Beta1] {
        let Some(versions) = labels.get(contract.label()).filter(|versions| !versions.is_empty()) else {
            continue;
        };
        let newest = versions.split('_').max_by(|a, b| compare_versions(a, b));
        return newest.map(|version| (contract, version.to_owned()));
    }
    None
}

/// Kubernetes' order of API versions: stable over beta over alpha, then by number; anything else below.
fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parsed(a), parsed(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Names that are no versions sort in reverse alphabetical order, as upstream does.
        (None, None) => b.cmp(a),
    }
}

/// Maturity, major and minor number.
fn parsed(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    for (word, maturity) in [("alpha", 0), ("beta", 1)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((maturity, major.parse().ok()?, minor.parse().ok()?));
        }
    }
    Some((2, rest.parse().ok()?, 0))
}

/// The CRD name of a kind, which the contract fixes: plural and group.
pub fn definition_name(group: &str, kind: &str) -> String {
    format!("{}.{group}", plural(&kind.to_lowercase()))
}

/// A kind of a provider, whose plural the contract fixes.
pub fn kind_name(group: &str, version: &str, kind: &str) -> KindName {
    KindName::namespaced(group, version, kind, plural(&kind.to_lowercase()))
}

/// The English plural of a kind.
fn plural(word: &str) -> String {
    let before_last = word.chars().rev().nth(1);
    if ["s", "x", "z", "ch", "sh"].iter().any(|ending| word.ends_with(ending)) {
        format!("{word}es")
    } else if word.ends_with('y') && !before_last.is_some_and(|letter| "aeiou".contains(letter)) {
        format!("{}ies", &word[..word.len() - 1])
    } else {
        format!("{word}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_newest_contract_wins_and_then_the_newest_version() {
        for (pairs, expected) in [
            (&[("cluster.x-k8s.io/v1beta1", "v1beta1")][..], Some((ContractVersion::V1Beta1, "v1beta1"))),
            (
                &[
                    ("cluster.x-k8s.io/v1beta1", "v1beta9"),
                    ("cluster.x-k8s.io/v1beta2", "v1alpha3_v1beta2_v1beta1"),
                ],
                Some((ContractVersion::V1Beta2, "v1beta2")),
            ),
            (&[("cluster.x-k8s.io/v1beta2", "v1beta2_v1_v2alpha1")], Some((ContractVersion::V1Beta2, "v1"))),
            (
                &[("cluster.x-k8s.io/v1beta2", "v1beta9_v1beta10")],
                Some((ContractVersion::V1Beta2, "v1beta10")),
            ),
            (
                &[("cluster.x-k8s.io/v1beta2", ""), ("cluster.x-k8s.io/v1beta1", "v1")],
                Some((ContractVersion::V1Beta1, "v1")),
            ),
            (&[("cluster.x-k8s.io/v1alpha4", "v1alpha4")], None),
            (&[], None),
        ] {
            let expected = expected.map(|(contract, version)| (contract, version.to_owned()));
            assert_eq!(served(&labels(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_definition_is_named_by_the_plural_of_its_kind() {
        for (kind, expected) in [
            ("DockerCluster", "dockerclusters.g"),
            ("KubeadmControlPlane", "kubeadmcontrolplanes.g"),
            ("ClusterClass", "clusterclasses.g"),
            ("MachinePolicy", "machinepolicies.g"),
            ("SimKey", "simkeys.g"),
            ("Box", "boxes.g"),
        ] {
            assert_eq!(definition_name("g", kind), expected);
        }
    }
}
