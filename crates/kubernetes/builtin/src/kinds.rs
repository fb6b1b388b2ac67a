//! The built-in resources and their names, as in kube-apiserver's discovery.

use std::sync::LazyLock;

/// A built-in resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for core.
    pub group: &'static str,
    /// Version, such as `v1`.
    pub version: &'static str,
    /// `ConfigMap`
    pub kind: &'static str,
    /// `ConfigMapList`
    pub list_kind: String,
    /// `configmaps`
    pub plural: &'static str,
    /// `configmap`
    pub singular: &'static str,
    /// `cm`
    pub short_names: Vec<&'static str>,
    /// `all`, `api-extensions`
    pub categories: Vec<&'static str>,
    pub namespaced: bool,
    /// Verbs of the resource itself, sorted.
    pub verbs: Vec<&'static str>,
    /// `storageVersionHash` of discovery; empty for kinds that are not stored.
    pub storage_version_hash: &'static str,
    /// Subresources, sorted by name.
    pub subresources: Vec<Subresource>,
}

/// A subresource of a built-in resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// `status`, `scale`…
    pub name: &'static str,
    /// Group of the exchanged kind.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    /// The kind is in another group than the resource, so discovery has group and version.
    pub foreign: bool,
    /// Verbs, sorted.
    pub verbs: Vec<&'static str>,
}

impl Kind {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Objects are stored; reviews are not.
    pub fn stored(&self) -> bool {
        self.verbs.contains(&"list")
    }
}

/// All built-in resources, by group version, then plural.
pub fn kinds() -> &'static [Kind] {
    static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| load(include_str!("facts/kinds.txt")));
    &KINDS
}

/// The built-in resource of a kind.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    kinds().iter().find(|k| k.kind == kind && k.group == group && k.version == version)
}

const STORED_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";
const READ_WRITE_VERBS: &str = "get,patch,update";

fn verbs(word: &'static str) -> Vec<&'static str> {
    let list = match word {
        "all" => STORED_VERBS,
        "rw" => READ_WRITE_VERBS,
        other => other,
    };
    list.split(',').collect()
}

fn load(text: &'static str) -> Vec<Kind> {
    let mut out: Vec<Kind> = Vec::new();
    let (mut group, mut version) = ("", "");
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(name) = first.strip_prefix('/') {
            let (kind, verb_word) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let foreign: Vec<&'static str> = kind.split('/').collect();
            let (sub_group, sub_version, sub_kind) = match foreign[..] {
                [g, v, k] => (g, v, k),
                _ => (group, version, kind),
            };
            if let Some(parent) = out.last_mut() {
                parent.subresources.push(Subresource {
                    name,
                    group: sub_group,
                    version: sub_version,
                    kind: sub_kind,
                    foreign: foreign.len() == 3,
                    verbs: verbs(verb_word),
                });
            }
        } else if line.starts_with(' ') {
            let singular = words.next().unwrap_or_default();
            let kind = words.next().unwrap_or_default();
            let mut entry = Kind {
                group,
                version,
                kind,
                list_kind: format!("{kind}List"),
                plural: first,
                singular,
                short_names: Vec::new(),
                categories: Vec::new(),
                namespaced: words.next() == Some("namespaced"),
                verbs: verbs(words.next().unwrap_or_default()),
                storage_version_hash: "",
                subresources: Vec::new(),
            };
            for word in words {
                match word.split_once('=') {
                    Some(("short", v)) => entry.short_names = v.split(',').collect(),
                    Some(("categories", v)) => entry.categories = v.split(',').collect(),
                    Some(("hash", v)) => entry.storage_version_hash = v,
                    _ => {}
                }
            }
            out.push(entry);
        } else {
            (group, version) = first.split_once('/').unwrap_or(("", first));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::table;

    #[test]
    fn every_kind_and_subresource_has_a_type_in_the_table() {
        assert!(kinds().len() > 50);
        for kind in kinds() {
            assert!(table().kind(kind.group, kind.version, kind.kind).is_some(), "{kind:?}");
            if kind.stored() {
                assert!(table().kind(kind.group, kind.version, &kind.list_kind).is_some(), "{kind:?}");
            }
            for sub in &kind.subresources {
                assert!(table().kind(sub.group, sub.version, sub.kind).is_some(), "{sub:?}");
            }
        }
    }

    #[test]
    fn a_foreign_subresource_names_its_group() {
        let pod = kind("", "v1", "Pod").unwrap();
        let eviction = pod.subresource("eviction").unwrap();
        assert_eq!((eviction.group, eviction.version, eviction.foreign), ("policy", "v1", true));
        assert_eq!(pod.subresource("status").unwrap().verbs, ["get", "patch", "update"]);
        assert_eq!(pod.short_names, ["po"]);
    }
}
