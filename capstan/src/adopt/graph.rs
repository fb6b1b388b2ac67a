//! The objects of one cluster among all objects of a source, and the order in which they are created.
//!
//! A member is what a member owns, what owns or refers to it, and what names the cluster. Objects that name another cluster
//! are not members, so that what clusters share does not pull in the others.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use capstan_object::Key;
use serde_json::Value;

use super::refs::{Id, owners, references, text};
use crate::apply::title;
use crate::kinds::cluster_of;

/// Type of Secrets that clusters do not need.
const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// Objects of a source by identity. An object that is there twice counts once, in its last form.
pub struct Objects {
    all: Vec<Value>,
    by_id: BTreeMap<Id, usize>,
    by_uid: BTreeMap<String, usize>,
}

impl Objects {
    pub fn new(all: Vec<Value>) -> Self {
        let (mut by_id, mut by_uid) = (BTreeMap::new(), BTreeMap::new());
        for (at, object) in all.iter().enumerate() {
            by_id.insert(Id::of(object), at);
            let uid = text(object, "metadata.uid");
            if !uid.is_empty() {
                by_uid.insert(uid.to_owned(), at);
            }
        }
        Self { all, by_id, by_uid }
    }

    pub fn all(&self) -> &[Value] {
        &self.all
    }

    pub fn get(&self, id: &Id) -> Option<&Value> {
        self.by_id.get(id).map(|at| &self.all[*at])
    }

    /// The owner that a reference names: by uid, or by name in exports without uids.
    pub fn owner(&self, owner: &Value, namespace: &str) -> Option<&Value> {
        self.owner_at(owner, namespace).map(|at| &self.all[at])
    }

    fn owner_at(&self, owner: &Value, namespace: &str) -> Option<usize> {
        if let Some(at) = self.by_uid.get(text(owner, "uid")) {
            return Some(*at);
        }
        let at = *self.by_id.get(&Id::of_owner(owner, namespace))?;
        text(&self.all[at], "metadata.uid").is_empty().then_some(at)
    }

    /// The objects of a cluster, owners first. `also` are further objects that it needs.
    pub fn members(&self, cluster: &Key, also: &[Id]) -> Result<Vec<Value>> {
        let mut members: BTreeSet<usize> = BTreeSet::new();
        let own =
            Id { group: super::refs::GROUPS.to_owned(), kind: "Cluster".to_owned(), key: cluster.clone() };
        let wanted = std::iter::once(&own).chain(also);
        members.extend(wanted.filter_map(|id| self.by_id.get(id).copied()));
        loop {
            let more = self.next_to(&members, cluster);
            let before = members.len();
            members.extend(more);
            if members.len() == before {
                break;
            }
        }
        self.ordered(&members)
    }

    /// What belongs to a cluster because of these members.
    fn next_to(&self, members: &BTreeSet<usize>, cluster: &Key) -> Vec<usize> {
        let mut linked = BTreeSet::new();
        let mut owning = BTreeSet::new();
        for at in members {
            let object = &self.all[*at];
            let targets = references(object).into_iter().filter_map(|it| self.by_id.get(&it.target).copied());
            linked.extend(targets);
            owning.extend(self.owners_at(object));
        }
        let belongs = |at: &usize| {
            let object = &self.all[*at];
            let id = Id::of(object);
            if linked.contains(at) {
                return !id.is_cluster();
            }
            let named = cluster_of(object);
            let elsewhere = id.is_cluster() || named.is_some_and(|name| name != cluster.name);
            if elsewhere || object["type"] == ACCOUNT_TOKEN {
                return false;
            }
            let names = named.is_some() && id.key.namespace == cluster.namespace;
            let kept = id.is_cluster_api() || id.kind == "Secret";
            let owned = || self.owners_at(object).iter().any(|owner| members.contains(owner));
            (names && kept) || owned() || (owning.contains(at) && id.is_cluster_api())
        };
        self.by_id.values().copied().filter(|at| !members.contains(at)).filter(belongs).collect()
    }

    fn owners_at(&self, object: &Value) -> Vec<usize> {
        let namespace = text(object, "metadata.namespace");
        owners(object).filter_map(|owner| self.owner_at(owner, namespace)).collect()
    }

    fn ordered(&self, members: &BTreeSet<usize>) -> Result<Vec<Value>> {
        let mut left: BTreeSet<(u8, usize)> =
            members.iter().map(|at| (rank(&Id::of(&self.all[*at])), *at)).collect();
        let mut done = BTreeSet::new();
        let mut ordered = Vec::with_capacity(members.len());
        while !left.is_empty() {
            let ready = left.iter().find(|(_, at)| {
                let owners = self.owners_at(&self.all[*at]);
                owners.iter().all(|owner| done.contains(owner) || !members.contains(owner) || owner == at)
            });
            let Some(next) = ready.copied() else {
                let titles: Vec<String> = left.iter().map(|(_, at)| title(&self.all[*at])).collect();
                bail!("metadata.ownerReferences of these objects form a cycle: {}", titles.join(", "));
            };
            left.remove(&next);
            done.insert(next.1);
            ordered.push(self.all[next.1].clone());
        }
        Ok(ordered)
    }
}

/// What admission of a Cluster may look up comes before it, everything else after it.
fn rank(id: &Id) -> u8 {
    match id.kind.as_str() {
        "Secret" | "ConfigMap" | "ClusterClass" => 0,
        kind if kind.ends_with("Template") => 0,
        "Cluster" => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api: &str, kind: &str, name: &str, owner: Option<&Value>, spec: Value) -> Value {
        let mut meta = json!({"name": name, "namespace": "n", "uid": format!("uid-{name}")});
        if let Some(owner) = owner {
            meta["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
        }
        json!({"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec})
    }

    const CORE: &str = "cluster.x-k8s.io/v1beta1";
    const ADDONS: &str = "addons.cluster.x-k8s.io/v1beta1";

    fn titles(objects: &[Value]) -> Vec<String> {
        objects.iter().map(title).collect()
    }

    fn members(all: Vec<Value>, name: &str) -> Vec<String> {
        titles(&Objects::new(all).members(&Key::new("n", name), &[]).expect("an order"))
    }

    #[test]
    fn owners_come_first_and_other_clusters_are_left_out() {
        let a = object(CORE, "Cluster", "a", None, json!({}));
        let b = object(CORE, "Cluster", "b", None, json!({}));
        let set = object(CORE, "MachineSet", "a-set", Some(&a), json!({"clusterName": "a"}));
        let machine = object(CORE, "Machine", "a-1", Some(&set), json!({"clusterName": "a"}));
        let of_b = object(CORE, "Machine", "b-1", Some(&b), json!({"clusterName": "b"}));
        let certificate = object("v1", "Secret", "a-ca", None, json!({}));
        let stranger = object("v1", "Secret", "password", None, json!({}));
        let all = vec![machine, set, of_b, stranger, certificate, b, a];
        assert_eq!(members(all, "a"), ["Secret/a-ca", "Cluster/a", "MachineSet/a-set", "Machine/a-1"]);
    }

    #[test]
    fn what_clusters_share_does_not_pull_in_the_others() {
        let a = object(CORE, "Cluster", "a", None, json!({}));
        let b = object(CORE, "Cluster", "b", None, json!({}));
        let set = object(
            ADDONS,
            "ClusterResourceSet",
            "cni",
            None,
            json!({"resources": [{"kind": "ConfigMap", "name": "cni"}]}),
        );
        let mut of_a =
            object(ADDONS, "ClusterResourceSetBinding", "a", Some(&a), json!({"clusterName": "a"}));
        let owner =
            json!({"apiVersion": ADDONS, "kind": "ClusterResourceSet", "name": "cni", "uid": "uid-cni"});
        of_a["metadata"]["ownerReferences"].as_array_mut().expect("owners").push(owner);
        of_a["metadata"]["uid"] = "binding-a".into();
        let mut of_b =
            object(ADDONS, "ClusterResourceSetBinding", "b", Some(&set), json!({"clusterName": "b"}));
        of_b["metadata"]["uid"] = "binding-b".into();
        let mut content = object("v1", "ConfigMap", "cni", None, json!({}));
        content["metadata"]["uid"] = "content".into();
        let found = members(vec![a, b, set, of_a, of_b, content], "a");
        let expected =
            ["ConfigMap/cni", "Cluster/a", "ClusterResourceSet/cni", "ClusterResourceSetBinding/a"];
        assert_eq!(found, expected);
    }

    #[test]
    fn owners_are_found_by_name_in_exports_without_uids() {
        let mut a = object(CORE, "Cluster", "a", None, json!({}));
        let machine = object(CORE, "Machine", "m", Some(&a), json!({}));
        a["metadata"].as_object_mut().expect("metadata").remove("uid");
        assert_eq!(members(vec![machine, a], "a"), ["Cluster/a", "Machine/m"]);
    }

    #[test]
    fn a_cycle_of_owners_is_refused() {
        let a = object(CORE, "Cluster", "a", None, json!({}));
        let mut first = object(CORE, "Machine", "m1", Some(&a), json!({"clusterName": "a"}));
        let second = object(CORE, "Machine", "m2", Some(&first), json!({"clusterName": "a"}));
        first["metadata"]["ownerReferences"][0]["uid"] = "uid-m2".into();
        let error =
            Objects::new(vec![a, first, second]).members(&Key::new("n", "a"), &[]).expect_err("refused");
        assert!(error.to_string().ends_with("form a cycle: Machine/m1, Machine/m2"), "{error}");
    }
}
