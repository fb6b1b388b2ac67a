//! Where a machine goes, and with whom.

use std::collections::BTreeMap;

use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_capi_types::kubernetes::ObjectReference;
use capstan_cloudstack_types::names::{self, GroupOwner};
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackAffinityGroupSpec, CloudStackCluster, CloudStackFailureDomain,
    CloudStackMachine,
};
use capstan_object::{Object, ObjectMeta, OwnerReference};

/// The failure domain that a machine goes to: what its Machine says, else what it says itself, else the one with the
/// fewest machines, the first of the cluster's list among equals.
pub(super) fn failure_domain<'a>(
    object: &'a CloudStackMachine,
    machine: &'a Machine,
    cluster: &'a CloudStackCluster,
    placed: &BTreeMap<String, usize>,
) -> Option<&'a str> {
    if !machine.spec.failure_domain.is_empty() {
        return Some(&machine.spec.failure_domain);
    }
    if !object.spec.failure_domain_name.is_empty() {
        return Some(&object.spec.failure_domain_name);
    }
    let names = cluster.spec.failure_domains.iter().map(|domain| domain.name.as_str());
    names.min_by_key(|name| placed.get(*name).copied().unwrap_or(0))
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
