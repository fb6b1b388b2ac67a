//! Number of machines, and what machines must not have in common.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachinePool, MachineSet, label};
use capstan_controller::{EffectOf, KindName, ObjectRef};
use capstan_harness::{Checker, Objects, Step};
use capstan_object::Key;
use capstan_sim_provider::types::SimMachine;
use serde_json::Value;

use crate::kinds::{has_label, is_deleting, name};

/// The Machine that a step creates.
fn created<'a>(step: &'a Step<'_>) -> Option<&'a Value> {
    match step.effect {
        EffectOf::Create { kind, body, .. } if !step.workload && **kind == KindName::of::<Machine>() => {
            Some(body)
        }
        _ => None,
    }
}

/// S2: an owner that creates a machine stays within its bound: replicas plus one for a control plane, a
/// deployment and a pool, replicas for a set.
pub struct NeverTooMany;

impl Checker for NeverTooMany {
    fn name(&self) -> &'static str {
        "S2"
    }

    fn after(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let Some(body) = created(step) else { return Ok(()) };
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or_default();
        let machines = objects.list(&KindName::of::<Machine>());
        let of = |label: &str, value: &str| {
            let same =
                |machine: &&Value| machine["metadata"]["labels"][label] == value && !is_deleting(machine);
            machines.iter().filter(same).count()
        };
        let wanted = |kind: &KindName, owner: &str| {
            let owner = objects.get(kind, &Key::new(namespace, owner))?;
            usize::try_from(owner["spec"]["replicas"].as_i64()?).ok()
        };
        let labels = &body["metadata"]["labels"];
        let bounds = [
            (label::CONTROL_PLANE_NAME, KindName::of::<KubeadmControlPlane>(), 1),
            (label::DEPLOYMENT_NAME, KindName::of::<MachineDeployment>(), 1),
            (label::SET_NAME, KindName::of::<MachineSet>(), 0),
            (label::POOL_NAME, KindName::of::<MachinePool>(), 1),
        ];
        for (label, kind, surge) in bounds {
            let Some(owner) = labels[label].as_str() else { continue };
            let Some(bound) = wanted(&kind, owner) else { continue };
            let found = of(label, owner);
            if found > bound + surge {
                return Err(format!(
                    "{kind} {owner} has {bound} replicas and a surge of {surge}, but {found} machines"
                ));
            }
        }
        Ok(())
    }
}

/// S11: a cluster that is being deleted gets no machines. A creation that was decided before the deletion may still
/// be carried out, but only if the decision is based on an older version of the Cluster.
#[derive(Default)]
pub struct NoMachinesWhileDeleting {
    /// The version of a Cluster since which it is being deleted.
    going: BTreeMap<Key, u64>,
    /// The versions of Clusters that a controller's last decision about an object is based on.
    known: BTreeMap<String, BTreeMap<ObjectRef, BTreeMap<Key, u64>>>,
}

impl NoMachinesWhileDeleting {
    fn note(&mut self, objects: &Objects) {
        for cluster in objects.list(&KindName::of::<Cluster>()).iter().filter(|cluster| is_deleting(cluster))
        {
            let text = |field: &str| cluster["metadata"][field].as_str().unwrap_or_default();
            let key = Key::new(text("namespace"), text("name"));
            if let Ok(version) = text("resourceVersion").parse() {
                self.going.entry(key).or_insert(version);
            }
        }
    }

    /// Whether the decision to create a machine was based on a Cluster that is being deleted. The decision is about
    /// the owner of the machine; without an owner it may be about any object of the controller.
    fn knew(&self, actor: &str, machine: &Value, cluster: &Key) -> bool {
        let Some(going) = self.going.get(cluster) else { return false };
        let owners = machine["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let concerns = |object: &ObjectRef| {
            let is = |owner: &Value| owner["kind"] == *object.kind.kind && owner["name"] == object.key.name;
            owners.is_empty() || owners.iter().any(is)
        };
        let decisions = self.known.get(actor).into_iter().flatten();
        decisions
            .filter(|(object, _)| concerns(object))
            .any(|(_, read)| read.get(cluster).is_some_and(|version| version >= going))
    }
}

impl Checker for NoMachinesWhileDeleting {
    fn name(&self) -> &'static str {
        "S11"
    }

    fn decided(
        &mut self,
        actor: &str,
        object: &ObjectRef,
        read: &[(KindName, Key, u64)],
    ) -> Result<(), String> {
        let clusters = KindName::of::<Cluster>();
        let read = read.iter().filter(|(kind, _, _)| *kind == clusters);
        let versions = read.map(|(_, key, version)| (key.clone(), *version)).collect();
        self.known.entry(actor.to_owned()).or_default().insert(object.clone(), versions);
        Ok(())
    }

    /// A starting process has decided nothing.
    fn booted(&mut self, _: &Objects) -> Result<(), String> {
        self.known.clear();
        Ok(())
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.note(objects);
        Ok(())
    }

    fn before(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.note(objects);
        let Some(body) = created(step) else { return Ok(()) };
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or_default();
        let cluster = body["spec"]["clusterName"].as_str().unwrap_or_default();
        let Some(stored) = objects.get(&KindName::of::<Cluster>(), &Key::new(namespace, cluster)) else {
            return Err(format!("{} is created for cluster {cluster}, which is gone", name(body)));
        };
        let deleted: Option<jiff::Timestamp> =
            stored["metadata"]["deletionTimestamp"].as_str().and_then(|text| text.parse().ok());
        let late = |deleted| step.at.duration_since(deleted) > jiff::SignedDuration::from_secs(1);
        if deleted.is_some_and(late) || self.knew(step.actor, body, &Key::new(namespace, cluster)) {
            return Err(format!("{} is created for cluster {cluster}, which is being deleted", name(body)));
        }
        Ok(())
    }
}

/// S17: no two machines have the same provider id, address or node.
pub struct NothingShared;

impl Checker for NothingShared {
    fn name(&self) -> &'static str {
        "S17"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        unique(
            "node",
            objects.list(&KindName::of::<Machine>()).iter().filter_map(|machine| {
                Some((name(machine).to_owned(), machine["status"]["nodeRef"]["name"].as_str()?.to_owned()))
            }),
        )?;
        let machines = objects.list(&KindName::of::<SimMachine>());
        unique(
            "provider id",
            machines.iter().filter_map(|machine| {
                Some((name(machine).to_owned(), machine["spec"]["providerID"].as_str()?.to_owned()))
            }),
        )?;
        unique(
            "address",
            machines.iter().flat_map(|machine| {
                let addresses = machine["status"]["addresses"].as_array().cloned().unwrap_or_default();
                let owner = name(machine).to_owned();
                addresses
                    .into_iter()
                    .filter_map(|address| Some(address["address"].as_str()?.to_owned()))
                    .map(move |address| (owner.clone(), address))
                    .collect::<Vec<_>>()
            }),
        )
    }
}

fn unique(what: &str, pairs: impl Iterator<Item = (String, String)>) -> Result<(), String> {
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (owner, value) in pairs {
        owners.entry(value).or_default().insert(owner);
    }
    match owners.iter().find(|(_, owners)| owners.len() > 1) {
        Some((value, owners)) => Err(format!("{owners:?} have the same {what}: {value}")),
        None => Ok(()),
    }
}

pub(super) fn control_plane_of(cluster: &str, objects: &Objects) -> Vec<Value> {
    let machines = objects.list(&KindName::of::<Machine>()).into_iter();
    machines
        .filter(|machine| {
            machine["spec"]["clusterName"] == cluster && has_label(machine, label::CONTROL_PLANE)
        })
        .collect()
}

/// The cluster exists and is not being deleted.
pub(super) fn cluster_stays(cluster: &str, objects: &Objects) -> bool {
    let clusters = objects.list(&KindName::of::<Cluster>());
    let planes = objects.list(&KindName::of::<KubeadmControlPlane>());
    let stays =
        |objects: &[Value]| objects.iter().any(|object| name(object) == cluster && !is_deleting(object));
    stays(&clusters) && planes.iter().all(|plane| !is_deleting(plane))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_decision_older_than_the_deletion_may_be_carried_out() {
        let cluster = Key::new("default", "c");
        let set = |name: &str| ObjectRef::new(KindName::of::<MachineSet>(), Key::new("default", name));
        let owned = json!({"metadata": {"ownerReferences": [{"kind": "MachineSet", "name": "one"}]}});
        let orphan = json!({"metadata": {}});
        for (what, read, machine, expected) in [
            ("read before it was deleted", ("one", 6), &owned, false),
            ("read when it was deleted", ("one", 7), &owned, true),
            ("read by another of the same kind", ("two", 8), &owned, false),
            ("read by any object, and the machine has no owner", ("two", 8), &orphan, true),
        ] {
            let mut checker = NoMachinesWhileDeleting::default();
            checker.going.insert(cluster.clone(), 7);
            let read_versions = [(KindName::of::<Cluster>(), cluster.clone(), read.1)];
            checker.decided("machineset", &set(read.0), &read_versions).expect("noted");
            assert_eq!(checker.knew("machineset", machine, &cluster), expected, "{what}");
            assert!(!checker.knew("other", machine, &cluster), "{what}");
        }
    }

    #[test]
    fn shared_ids_addresses_and_nodes_are_caught() {
        let pairs = |values: &[&str]| -> Vec<(String, String)> {
            values.iter().enumerate().map(|(at, value)| (format!("m{at}"), (*value).to_owned())).collect()
        };
        assert!(unique("address", pairs(&["10.0.0.1", "10.0.0.2"]).into_iter()).is_ok());
        assert!(unique("address", pairs(&["10.0.0.1", "10.0.0.1"]).into_iter()).is_err());
    }
}
