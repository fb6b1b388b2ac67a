//! Claims a provider's object: owner reference and cluster label.

use capstan_capi_types::core::label;
use capstan_controller::Effect;
use capstan_object::OwnerReference;
use serde_json::json;

use super::external::External;

/// The desired ownership of a provider's object.
pub struct Claim<'a> {
    pub owner: OwnerReference,
    pub cluster: &'a str,
    /// References to remove.
    pub evicted: &'a dyn Fn(&OwnerReference) -> bool,
}

/// The patch for a claim; `None` if it holds. Fails if another object controls this one.
pub fn claim<K>(object: &External, claim: &Claim<'_>) -> Result<Option<Effect<K>>, String> {
    let meta = &object.metadata;
    let wanted = &claim.owner;
    let exact = |owner: &OwnerReference| {
        owner.api_version == wanted.api_version
            && owner.kind == wanted.kind
            && owner.name == wanted.name
            && owner.uid == wanted.uid
            && owner.controller.unwrap_or(false) == wanted.controller.unwrap_or(false)
    };
    let labelled = meta.labels.get(label::CLUSTER_NAME).is_some_and(|name| name == claim.cluster);
    if labelled && meta.owner_references.iter().any(exact) && !meta.owner_references.iter().any(claim.evicted)
    {
        return Ok(None);
    }
    let mut owners: Vec<OwnerReference> =
        meta.owner_references.iter().filter(|owner| !(claim.evicted)(owner)).cloned().collect();
    if wanted.controller == Some(true)
        && let Some(other) =
            owners.iter().find(|owner| owner.controller == Some(true) && !owner.same_owner(wanted))
    {
        return Err(format!(
            "{} {} is controlled by {} {}",
            object.kind.kind, meta.name, other.kind, other.name
        ));
    }
    match owners.iter_mut().find(|owner| owner.same_owner(wanted)) {
        Some(owner) => *owner = wanted.clone(),
        None => owners.push(wanted.clone()),
    }
    // Guarded by resourceVersion: a merge patch replaces the list of owners as a whole.
    let change = json!({
        "metadata": {"ownerReferences": owners, "labels": {label::CLUSTER_NAME: claim.cluster}},
    });
    Ok(Some(Effect::merge_guarded(object.reference(), meta, change)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ContractVersion;
    use capstan_controller::{KindName, NoCall, Patch};
    use serde_json::Value;

    fn owner(kind: &str, controller: Option<bool>) -> OwnerReference {
        OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: kind.to_owned(),
            name: "o".to_owned(),
            uid: "u".to_owned(),
            controller,
            block_owner_deletion: None,
        }
    }

    fn change(owners: &[OwnerReference], labelled: bool) -> Result<Option<Value>, String> {
        let labels = if labelled { json!({"cluster.x-k8s.io/cluster-name": "c"}) } else { json!({}) };
        let value = json!({"metadata": {"name": "x", "namespace": "n", "resourceVersion": "7",
            "labels": labels, "ownerReferences": owners}});
        let kind = KindName::namespaced("g", "v1", "Fake", "fakes");
        let object = External::new(kind, ContractVersion::V1Beta2, value);
        let wanted = Claim {
            owner: owner("Machine", Some(true)),
            cluster: "c",
            evicted: &|owner| owner.kind == "MachineSet",
        };
        let effect = claim::<NoCall>(&object, &wanted)?;
        Ok(effect.map(|effect| match effect {
            Effect::Patch { patch: Patch::Merge(body), .. } => body["metadata"]["ownerReferences"].clone(),
            other => panic!("{other:?}"),
        }))
    }

    #[test]
    fn a_claim_is_patched_only_if_it_does_not_hold() {
        let ours = owner("Machine", Some(true));
        let tool = owner("Tool", None);
        assert_eq!(change(std::slice::from_ref(&ours), true), Ok(None));
        assert_eq!(change(std::slice::from_ref(&ours), false), Ok(Some(json!([ours]))));
        assert_eq!(change(&[], true), Ok(Some(json!([ours]))));
        assert_eq!(change(std::slice::from_ref(&tool), true), Ok(Some(json!([tool, ours]))));
        assert_eq!(change(&[owner("MachineSet", Some(true)), ours.clone()], true), Ok(Some(json!([ours]))));
        assert_eq!(change(&[owner("Machine", None)], true), Ok(Some(json!([ours]))));
    }

    #[test]
    fn an_object_with_another_controller_is_not_claimed() {
        assert_eq!(
            change(&[owner("Tool", Some(true))], true),
            Err("Fake x is controlled by Tool o".to_owned())
        );
    }
}
