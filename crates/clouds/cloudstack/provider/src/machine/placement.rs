//! Where a machine goes, and with whom.

use std::collections::BTreeMap;

use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_capi_types::kubernetes::ObjectReference;
use capstan_cloudstack_types::names::{self, GroupOwner};
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackAffinityGroupSpec, CloudStackCluster, CloudStackFailureDomain,
    CloudStackMachine,
};
use capstan_object::{Key, Object, ObjectMeta, OwnerReference};
use parking_lot::Mutex;

/// The failure domain that a machine goes to: what it says itself, else what its Machine says, as CAPC has it; else the one
/// with the fewest machines, the first of the cluster's list among equals. A machine that was placed says so itself.
pub(super) fn failure_domain<'a>(
    object: &'a CloudStackMachine,
    machine: &'a Machine,
    cluster: &'a CloudStackCluster,
    placed: &BTreeMap<String, usize>,
) -> Option<&'a str> {
    if !object.spec.failure_domain_name.is_empty() {
        return Some(&object.spec.failure_domain_name);
    }
    if !machine.spec.failure_domain.is_empty() {
        return Some(&machine.spec.failure_domain);
    }
    let names = cluster.spec.failure_domains.iter().map(|domain| domain.name.as_str());
    names.min_by_key(|name| placed.get(*name).copied().unwrap_or(0))
}

/// Failure domains that were chosen for machines and are not on their objects yet. Machines that are placed at the same
/// moment do not see each other's record, but all of them see this.
#[derive(Debug, Default)]
pub(super) struct Placements(Mutex<BTreeMap<Key, Chosen>>);

#[derive(Debug)]
struct Chosen {
    /// Uid of the machine's owner.
    owner: String,
    domain: String,
}

impl Placements {
    /// Chooses for a machine. `placed` are those on record of the same owner, and gets what is chosen for others of it;
    /// `choose` says where one more goes.
    pub(super) fn choose<'a>(
        &self,
        (machine, owner): (&Key, &str),
        placed: &mut BTreeMap<String, usize>,
        recorded: &[Key],
        choose: impl FnOnce(&BTreeMap<String, usize>) -> Option<&'a str>,
    ) {
        let mut all = self.0.lock();
        for key in recorded {
            all.remove(key);
        }
        for (_, other) in all.iter().filter(|(key, other)| *key != machine && other.owner == owner) {
            *placed.entry(other.domain.clone()).or_default() += 1;
        }
        if let Some(domain) = choose(placed) {
            let (owner, domain) = (owner.to_owned(), domain.to_owned());
            all.insert(machine.clone(), Chosen { owner, domain });
        }
    }

    /// A machine is on record or gone.
    pub(super) fn forget(&self, machine: &Key) {
        self.0.lock().remove(machine);
    }
}

/// The group that a machine asks for, if it asks for one.
pub(super) fn group(
    object: &CloudStackMachine,
    machine: &Machine,
    cluster: &Cluster,
    domain: &CloudStackFailureDomain,
) -> Option<CloudStackAffinityGroup> {
    let affinity = object.spec.affinity.to_lowercase();
    let kind = match affinity.as_str() {
        "pro" => "host affinity",
        "anti" => "host anti-affinity",
        _ => return None,
    };
    let owner = machine.metadata.controller()?;
    let of = GroupOwner { kind: &owner.kind, name: &owner.name, uid: &owner.uid };
    let (cluster_name, uid) = (&cluster.metadata.name, &cluster.metadata.uid);
    let name = names::affinity_group(cluster_name, uid, &affinity, of, &domain.spec.name);
    let mut metadata = ObjectMeta::named(object.metadata.namespace.as_str(), name.to_lowercase());
    metadata.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone());
    metadata.owner_references.push(OwnerReference::controlled_by(domain));
    let spec = CloudStackAffinityGroupSpec {
        kind: kind.to_owned(),
        name,
        id: String::new(),
        failure_domain_name: domain.spec.name.clone(),
    };
    Some(CloudStackAffinityGroup { metadata, spec, ..CloudStackAffinityGroup::default() })
}

/// Names a group.
pub(super) fn reference(group: &CloudStackAffinityGroup) -> ObjectReference {
    ObjectReference {
        api_version: CloudStackAffinityGroup::KIND.api_version(),
        kind: CloudStackAffinityGroup::KIND.kind.to_owned(),
        name: group.metadata.name.clone(),
        namespace: group.metadata.namespace.clone(),
        uid: group.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_are_placed_in_the_same_moment_are_spread() {
        let placements = Placements::default();
        let key = |name: &str| Key::new("ns", name);
        let fewest = |placed: &BTreeMap<String, usize>| {
            ["a", "b"].into_iter().min_by_key(|name| placed.get(*name).copied().unwrap_or(0))
        };
        // Nothing is on record, as nobody has written anything yet.
        let place = |machine: &str, owner: &str, recorded: &[Key]| {
            let mut placed = recorded.iter().map(|_| ("a".to_owned(), 1)).collect();
            placements.choose((&key(machine), owner), &mut placed, recorded, fewest);
            fewest(&placed).map(str::to_owned)
        };
        assert_eq!(place("m1", "set", &[]).as_deref(), Some("a"));
        assert_eq!(place("m2", "set", &[]).as_deref(), Some("b"));
        assert_eq!(place("m1", "set", &[]).as_deref(), Some("a"), "it stays where it was to go");
        assert_eq!(place("n1", "another", &[]).as_deref(), Some("a"), "others do not count");
        assert_eq!(place("m3", "set", &[key("m1")]).as_deref(), Some("a"), "what is on record counts once");
        for machine in ["m2", "m3"] {
            placements.forget(&key(machine));
        }
        assert_eq!(place("m4", "set", &[]).as_deref(), Some("a"));
    }
}
