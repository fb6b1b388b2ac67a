//! The objects of one cluster among those of its namespace, so that the others need not be copied.

use std::collections::BTreeSet;

use capstan_controller::KindName;
use capstan_object::Key;
use capstan_rehearsal::Records;
use serde_json::Value;

use super::topologies::key_of;
use crate::kinds::cluster_of;

/// Drops other clusters with all that is only theirs. What belongs to no cluster stays: templates and classes may be shared.
pub fn keep(records: &mut Records, cluster: &Key) {
    let clusters = records.0.iter().filter(|(kind, _)| is_cluster(kind));
    let others: Vec<&Value> =
        clusters.map(|(_, object)| object).filter(|object| key_of(object) != *cluster).collect();
    let names: BTreeSet<Key> = others.iter().map(|other| key_of(other)).collect();
    let mut dropped: BTreeSet<String> = others.iter().map(|other| uid(other).to_owned()).collect();
    let is_dropped = |dropped: &BTreeSet<String>, object: &Value| {
        let key = key_of(object);
        let of = cluster_of(object).map(|name| Key::new(key.namespace.as_str(), name));
        if of.as_ref() == Some(cluster) {
            return false;
        }
        let owners = object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_theirs = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| dropped.contains(uid));
        of.is_some_and(|of| names.contains(&of)) || (!owners.is_empty() && owners.iter().all(is_theirs))
    };
    loop {
        let found: Vec<String> = records
            .0
            .iter()
            .filter(|(_, object)| !dropped.contains(uid(object)) && is_dropped(&dropped, object))
            .map(|(_, object)| uid(object).to_owned())
            .collect();
        if found.is_empty() {
            break;
        }
        dropped.extend(found);
    }
    records.0.retain(|(_, object)| !dropped.contains(uid(object)));
}

fn is_cluster(kind: &KindName) -> bool {
    kind.group == "cluster.x-k8s.io" && kind.kind == "Cluster"
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, label: &str, owners: &[&str]) -> (KindName, Value) {
        let owners: Vec<Value> = owners.iter().map(|uid| json!({"uid": uid})).collect();
        let mut object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
            "metadata": {"name": name, "namespace": "n", "uid": name, "ownerReferences": owners},
        });
        if !label.is_empty() {
            object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": label});
        }
        (KindName::namespaced("cluster.x-k8s.io", "v1beta2", kind, "x"), object)
    }

    #[test]
    fn only_what_is_of_other_clusters_alone_is_dropped() {
        let mut records = Records(vec![
            object("Cluster", "ours", "", &[]),
            object("Cluster", "theirs", "", &[]),
            object("Machine", "ours-1", "ours", &["ours-set"]),
            object("Machine", "theirs-1", "theirs", &[]),
            object("Infra", "ours-infra", "", &["ours"]),
            object("Infra", "theirs-infra", "", &["theirs"]),
            object("Part", "theirs-part", "", &["theirs-infra"]),
            object("Template", "shared", "", &["theirs", "ours"]),
            object("Template", "free", "", &[]),
        ]);
        keep(&mut records, &Key::new("n", "ours"));
        let left: Vec<&str> = records.0.iter().map(|(_, object)| uid(object)).collect();
        assert_eq!(left, ["ours", "ours-1", "ours-infra", "shared", "free"]);
    }
}
