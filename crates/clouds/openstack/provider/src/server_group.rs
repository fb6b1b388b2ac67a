//! Managed server groups: the scheduler keeps the machines of a control plane or of a MachineDeployment apart, or together.
//!
//! An annotation in the metadata of the machines asks for one. The OpenStackCluster creates it, records its id in an
//! annotation of its own, and deletes it when no machine asks for it any more.

use std::collections::BTreeMap;

use capstan_capi_types::core::{Machine, label};
use capstan_object::ObjectMeta;
use capstan_openstack_types::v1beta2::OpenStackCluster;

use crate::mark;

/// On Machines, by way of the metadata of their templates: the policy of the group.
pub const POLICY: &str = "capstan.dev/openstack-server-group";
/// On OpenStackClusters: ids of the managed groups by name, as JSON.
pub const GROUPS: &str = "capstan.dev/openstack-server-groups";

/// Nova's policies.
const POLICIES: [&str; 4] = ["soft-anti-affinity", "anti-affinity", "soft-affinity", "affinity"];

/// A group that a machine asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub name: String,
    pub policy: String,
}

/// The group that a machine asks for, or why there can be none.
pub(crate) fn wanted(machine: &Machine, cluster: &OpenStackCluster) -> Result<Option<Wanted>, String> {
    let meta = &machine.metadata;
    let Some(policy) = meta.annotations.get(POLICY) else { return Ok(None) };
    if !POLICIES.contains(&policy.as_str()) {
        return Err(format!("annotation {POLICY} is {policy:?}: use one of {}", POLICIES.join(", ")));
    }
    let of = match meta.labels.get(label::DEPLOYMENT_NAME) {
        _ if meta.labels.contains_key(label::CONTROL_PLANE) => "control-plane",
        Some(deployment) => deployment.as_str(),
        None => "machines",
    };
    // A policy cannot be changed, and Nova's groups have no place for a mark but their name.
    let prefix = prefix(&machine.spec.cluster_name);
    let name = format!("{prefix}{of}-{policy}-{}", mark::of(&cluster.metadata));
    Ok(Some(Wanted { name, policy: policy.clone() }))
}

fn prefix(cluster: &str) -> String {
    format!("k8s-{cluster}-")
}

/// Whether a group was created for a cluster.
pub(crate) fn is_ours(name: &str, cluster: &str, mark: &str) -> bool {
    let rest = name.strip_prefix(&prefix(cluster)).and_then(|rest| rest.strip_suffix(mark));
    rest.is_some_and(|rest| POLICIES.iter().any(|policy| rest.ends_with(&format!("-{policy}-"))))
}

/// The mark in the name of a managed group. It is a uid: groups of others may have a name of the same shape.
pub(crate) fn held_mark(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("k8s-")?;
    let mark = POLICIES.iter().find_map(|policy| rest.rsplit_once(&format!("-{policy}-")))?.1;
    let is_uid = mark.len() == 36 && mark.chars().all(|it| it.is_ascii_hexdigit() || it == '-');
    is_uid.then_some(mark)
}

/// Ids of the managed groups by name.
pub(crate) fn recorded(meta: &ObjectMeta) -> BTreeMap<String, String> {
    meta.annotations.get(GROUPS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Records the managed groups.
pub(crate) fn record(meta: &mut ObjectMeta, groups: &BTreeMap<String, String>) {
    match serde_json::to_string(groups) {
        Ok(text) if !groups.is_empty() => drop(meta.annotations.insert(GROUPS.to_owned(), text)),
        _ => drop(meta.annotations.remove(GROUPS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(labels: &[(&str, &str)], policy: &str) -> Machine {
        let mut machine = Machine::default();
        machine.spec.cluster_name = "c".to_owned();
        machine.metadata.labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        machine.metadata.annotations.insert(POLICY.to_owned(), policy.to_owned());
        machine
    }

    #[test]
    fn a_control_plane_and_each_deployment_have_groups_of_their_own() {
        let mut cluster = OpenStackCluster::default();
        cluster.metadata.uid = "u".to_owned();
        let name = |labels: &[(&str, &str)]| {
            wanted(&machine(labels, "anti-affinity"), &cluster).expect("a policy").expect("a group").name
        };
        assert_eq!(name(&[(label::CONTROL_PLANE, "")]), "k8s-c-control-plane-anti-affinity-u");
        assert_eq!(name(&[(label::DEPLOYMENT_NAME, "md")]), "k8s-c-md-anti-affinity-u");
        assert!(is_ours("k8s-c-md-anti-affinity-u", "c", "u"));
        assert!(!is_ours("k8s-c-md-anti-affinity-v", "c", "u"));
        assert!(!is_ours("k8s-c-of-somebody-u", "c", "u"));
        let uid = "0a5c9e0e-2f4b-4f5e-9f0a-0123456789ab";
        assert_eq!(held_mark(&format!("k8s-c-md-soft-anti-affinity-{uid}")), Some(uid));
        assert_eq!(held_mark("k8s-c-md-anti-affinity-of-somebody"), None);
    }

    #[test]
    fn an_unknown_policy_is_refused_with_those_that_there_are() {
        let why = wanted(&machine(&[], "apart"), &OpenStackCluster::default()).unwrap_err();
        assert!(why.contains("\"apart\"") && why.contains("soft-anti-affinity"), "{why}");
    }
}
