//! A policy rule: what it allows, what it covers, how it is displayed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::auth::Attributes;

/// A rule of a Role or ClusterRole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyRule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub api_groups: Vec<String>,
    /// Resources, `pods/log`, `*/scale` or `*`.
    pub resources: Vec<String>,
    /// Names the rule is limited to; empty means all.
    pub resource_names: Vec<String>,
    /// Paths; a trailing `*` matches everything below.
    pub non_resource_urls: Vec<String>,
}

pub(super) const ALL: &str = "*";

impl PolicyRule {
    /// Parses the JSON form. Absent and null are empty.
    pub fn from_json(rule: &Value) -> Self {
        let strings = |field: &str| {
            let items = rule[field].as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        Self {
            verbs: strings("verbs"),
            api_groups: strings("apiGroups"),
            resources: strings("resources"),
            resource_names: strings("resourceNames"),
            non_resource_urls: strings("nonResourceURLs"),
        }
    }

    /// The rules of a Role or ClusterRole.
    pub fn list_from_json(role: &Value) -> Vec<Self> {
        let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        rules.iter().map(Self::from_json).collect()
    }

    /// The JSON form. Empty lists are omitted, `verbs` is always present.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        for (field, items) in [
            ("apiGroups", &self.api_groups),
            ("nonResourceURLs", &self.non_resource_urls),
            ("resourceNames", &self.resource_names),
            ("resources", &self.resources),
        ] {
            if !items.is_empty() {
                out.insert(field.into(), items.clone().into());
            }
        }
        out.insert("verbs".into(), self.verbs.clone().into());
        Value::Object(out)
    }

    pub fn allows(&self, request: &Attributes) -> bool {
        if !has_or_all(&self.verbs, &request.verb) {
            return false;
        }
        if !request.is_resource_request() {
            return self.non_resource_urls.iter().any(|url| path_matches(url, &request.path));
        }
        has_or_all(&self.api_groups, &request.group)
            && self.resources.iter().any(|rule| resource_matches(rule, request))
            && (self.resource_names.is_empty() || self.resource_names.contains(&request.name))
    }

    /// The same permissions as rules with one verb and one resource each. There are as many as the product of all
    /// lists: [`coverage`](super::coverage) avoids expanding them.
    #[cfg(test)]
    pub(super) fn atoms(&self) -> Vec<Self> {
        let one = |s: &String| vec![s.clone()];
        let mut atoms = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let atom = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        atoms.push(atom);
                        continue;
                    }
                    atoms.extend(
                        self.resource_names
                            .iter()
                            .map(|name| Self { resource_names: one(name), ..atom.clone() }),
                    );
                }
            }
        }
        for url in &self.non_resource_urls {
            for verb in &self.verbs {
                atoms.push(Self { verbs: one(verb), non_resource_urls: one(url), ..Self::default() });
            }
        }
        atoms
    }

    /// Whether this rule allows everything that an atom allows.
    #[cfg(test)]
    pub(super) fn covers_atom(&self, atom: &Self) -> bool {
        let names = self.resource_names.is_empty()
            || (!atom.resource_names.is_empty()
                && atom.resource_names.iter().all(|name| self.resource_names.contains(name)));
        names
            && atom.verbs.iter().all(|verb| has_or_all(&self.verbs, verb))
            && atom.api_groups.iter().all(|group| has_or_all(&self.api_groups, group))
            && atom.resources.iter().all(|resource| covers_resource(&self.resources, resource))
            && atom
                .non_resource_urls
                .iter()
                .all(|url| self.non_resource_urls.iter().any(|own| own == url || prefix_matches(own, url)))
    }

    /// The form in escalation errors: only what is set, in Go's notation for lists of strings.
    pub fn compact(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, items)| !items.is_empty())
        .map(|(name, items)| format!("{name}:{}", quoted_list(items)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// `["a" "b"]`, as Go's `%q` prints a list of strings.
pub(in crate::auth) fn quoted_list(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Merges atoms of the same resource and name into one rule with all their verbs; other rules come first.
pub fn compacted(atoms: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut joined: BTreeMap<(String, String, Vec<String>), PolicyRule> = BTreeMap::new();
    let mut out = Vec::new();
    for atom in atoms {
        let ([group], [resource], true) =
            (&atom.api_groups[..], &atom.resources[..], atom.non_resource_urls.is_empty())
        else {
            out.push(atom);
            continue;
        };
        let key = (group.clone(), resource.clone(), atom.resource_names.clone());
        match joined.get_mut(&key) {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => {
                joined.insert(key, atom);
            }
        }
    }
    out.extend(joined.into_values());
    out
}

fn has_or_all(set: &[String], item: &str) -> bool {
    set.iter().any(|own| own == ALL || own == item)
}

fn resource_matches(rule: &str, request: &Attributes) -> bool {
    if rule == ALL {
        return true;
    }
    if request.subresource.is_empty() {
        return rule == request.resource;
    }
    match rule.split_once('/') {
        Some((ALL, subresource)) => subresource == request.subresource,
        Some((resource, subresource)) => resource == request.resource && subresource == request.subresource,
        None => false,
    }
}

#[cfg(test)]
fn covers_resource(held: &[String], wanted: &str) -> bool {
    has_or_all(held, wanted)
        || wanted.split_once('/').is_some_and(|(_, subresource)| {
            held.iter().any(|own| own.strip_prefix("*/").is_some_and(|own| own == subresource))
        })
}

fn path_matches(rule: &str, path: &str) -> bool {
    rule == ALL || rule == path || prefix_matches(rule, path)
}

/// Whether a rule ending in `*` matches a path. As upstream, all trailing stars are trimmed.
pub(super) fn prefix_matches(rule: &str, path: &str) -> bool {
    rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use super::super::coverage::uncovered;
    use super::*;

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> PolicyRule {
        let own = |items: &[&str]| items.iter().map(|&s| s.to_owned()).collect();
        PolicyRule {
            verbs: own(verbs),
            api_groups: own(groups),
            resources: own(resources),
            resource_names: own(names),
            ..PolicyRule::default()
        }
    }

    fn paths(verbs: &[&str], urls: &[&str]) -> PolicyRule {
        let own = |items: &[&str]| items.iter().map(|&s| s.to_owned()).collect();
        PolicyRule { verbs: own(verbs), non_resource_urls: own(urls), ..PolicyRule::default() }
    }

    fn request(verb: &str, group: &str, resource: &str, name: &str) -> Attributes {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes {
            verb: verb.to_owned().into(),
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            name: name.into(),
            ..Attributes::default()
        }
    }

    fn path(verb: &str, path: &str) -> Attributes {
        Attributes { verb: verb.to_owned().into(), path: path.into(), ..Attributes::default() }
    }

    #[test]
    fn rules_allow_what_they_name_and_nothing_else() {
        let table = [
            (rule(&["get"], &[""], &["pods"], &[]), request("get", "", "pods", "a"), true),
            (rule(&["get"], &[""], &["pods"], &[]), request("list", "", "pods", ""), false),
            (rule(&["get"], &[""], &["pods"], &[]), request("get", "apps", "pods", ""), false),
            (rule(&["get"], &[""], &["pods"], &[]), request("get", "", "pods/log", ""), false),
            (rule(&["get"], &[""], &["pods/log"], &[]), request("get", "", "pods/log", ""), true),
            (rule(&["get"], &[""], &["pods/log"], &[]), request("get", "", "pods", ""), false),
            (rule(&["get"], &[""], &["*/scale"], &[]), request("get", "", "pods/scale", ""), true),
            (rule(&["get"], &[""], &["*/scale"], &[]), request("get", "", "pods/status", ""), false),
            (rule(&["get"], &[""], &["*/scale"], &[]), request("get", "", "scale", ""), false),
            // `pods/*` is not a wildcard: upstream supports only `*` and `*/subresource`.
            (rule(&["get"], &[""], &["pods/*"], &[]), request("get", "", "pods/log", ""), false),
            (rule(&["*"], &["*"], &["*"], &[]), request("escalate", "x", "y/z", "n"), true),
            (rule(&["*"], &["*"], &["*"], &[]), path("get", "/healthz"), false),
            (rule(&["get"], &[""], &["secrets"], &["a"]), request("get", "", "secrets", "a"), true),
            (rule(&["get"], &[""], &["secrets"], &["a"]), request("get", "", "secrets", "b"), false),
            (rule(&["list"], &[""], &["secrets"], &["a"]), request("list", "", "secrets", ""), false),
            (paths(&["get"], &["/healthz"]), path("get", "/healthz"), true),
            (paths(&["get"], &["/healthz"]), path("get", "/healthz/etcd"), false),
            (paths(&["get"], &["/healthz/*"]), path("get", "/healthz/etcd"), true),
            (paths(&["get"], &["/healthz/*"]), path("get", "/healthz"), false),
            (paths(&["get"], &["*"]), path("get", "/anything"), true),
            (paths(&["get"], &["*"]), path("post", "/anything"), false),
            (paths(&["*"], &["*"]), request("get", "", "pods", ""), false),
        ];
        for (rule, request, allowed) in table {
            assert_eq!(rule.allows(&request), allowed, "{} {request:?}", rule.compact());
        }
    }

    #[test]
    fn covering_is_counted_atom_by_atom() {
        let table: [(Vec<PolicyRule>, PolicyRule, &[&str]); 9] = [
            (vec![rule(&["get"], &["v1"], &["builds"], &[])], rule(&["get"], &["v1"], &["builds"], &[]), &[]),
            (
                vec![rule(&["get"], &["v1"], &["*/scale"], &[])],
                rule(&["get"], &["v1"], &["a/scale"], &[]),
                &[],
            ),
            (
                vec![rule(&["get"], &[""], &["a"], &[]), rule(&["list"], &[""], &["b"], &[])],
                rule(&["get", "list"], &[""], &["a", "b"], &[]),
                &[
                    r#"{APIGroups:[""], Resources:["a"], Verbs:["list"]}"#,
                    r#"{APIGroups:[""], Resources:["b"], Verbs:["get"]}"#,
                ],
            ),
            (
                vec![rule(&["get"], &[""], &["a"], &["x"])],
                rule(&["get"], &[""], &["a"], &[]),
                &[r#"{APIGroups:[""], Resources:["a"], Verbs:["get"]}"#],
            ),
            (vec![rule(&["get"], &[""], &["a"], &[])], rule(&["get"], &[""], &["a"], &["x"]), &[]),
            (
                vec![rule(&["get"], &[""], &["*"], &[])],
                rule(&["*"], &[""], &["a"], &[]),
                &[r#"{APIGroups:[""], Resources:["a"], Verbs:["*"]}"#],
            ),
            (vec![paths(&["get"], &["/a/*"])], paths(&["get"], &["/a/b", "/a/*"]), &[]),
            (
                vec![paths(&["get"], &["/a/*"])],
                paths(&["get"], &["/a", "*"]),
                &[r#"{NonResourceURLs:["*"], Verbs:["get"]}"#, r#"{NonResourceURLs:["/a"], Verbs:["get"]}"#],
            ),
            (vec![], rule(&[], &[""], &["a"], &[]), &[]),
        ];
        for (held, wanted, missing) in table {
            let uncovered = uncovered(&held, std::slice::from_ref(&wanted)).unwrap().atoms(usize::MAX);
            let mut found: Vec<String> = compacted(uncovered).iter().map(PolicyRule::compact).collect();
            found.sort();
            assert_eq!(found, missing, "{}", wanted.compact());
        }
    }

    #[test]
    fn json_leaves_empty_lists_out_and_reads_nulls_as_empty() {
        let written = rule(&["get"], &[""], &["pods"], &[]).to_json();
        assert_eq!(written, serde_json::json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}));
        let read = PolicyRule::from_json(&serde_json::json!({"verbs": null, "resources": ["a"]}));
        assert_eq!(read, rule(&[], &[], &["a"], &[]));
    }
}
