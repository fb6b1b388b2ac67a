//! Kinds of templates that a cluster's workers referred to and that its class does not name any more.
//!
//! When the last reference to such a kind goes, its templates are still there. An annotation of the Cluster remembers the
//! kind until they are gone: it is written while there are references, so no restart and no move comes between.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_types::core::ContractVersionedObjectReference;

/// Group and kind of templates.
pub type TemplateKind = (String, String);

/// On a Cluster: kinds as `Kind.group`, separated by commas.
const ANNOTATION: &str = "capstan.dev/former-template-kinds";

/// The kinds that are referred to although the class does not name them, and all that may have templates left.
pub(super) fn of(
    annotations: &BTreeMap<String, String>,
    declared: &BTreeSet<TemplateKind>,
    references: &[&ContractVersionedObjectReference],
) -> (BTreeSet<TemplateKind>, BTreeSet<TemplateKind>) {
    let referred = references.iter().filter(|reference| !reference.kind.is_empty());
    let referred = referred.map(|reference| (reference.api_group.clone(), reference.kind.clone()));
    let referred: BTreeSet<TemplateKind> = referred.filter(|kind| !declared.contains(kind)).collect();
    let remembered = annotations.get(ANNOTATION).map(String::as_str).unwrap_or_default();
    let remembered = remembered.split(',').filter_map(|kind| kind.split_once('.'));
    let remembered = remembered.map(|(kind, group)| (group.to_owned(), kind.to_owned()));
    let mut former: BTreeSet<TemplateKind> = remembered.filter(|kind| !declared.contains(kind)).collect();
    former.extend(referred.iter().cloned());
    (referred, former)
}

pub(super) fn write(former: &BTreeSet<TemplateKind>, annotations: &mut BTreeMap<String, String>) {
    let kinds: Vec<String> = former.iter().map(|(group, kind)| format!("{kind}.{group}")).collect();
    if kinds.is_empty() {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.to_owned(), kinds.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_former_references_are_remembered_by_the_cluster() {
        let kind = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        let reference = |(api_group, kind): TemplateKind| ContractVersionedObjectReference {
            api_group,
            kind,
            name: "x".to_owned(),
        };
        let (old, machines) = (kind("boot.example", "OldTemplate"), kind("infra.example", "MachineTemplate"));
        let declared = BTreeSet::from([machines.clone()]);
        let (known, former) = (reference(machines), reference(old.clone()));
        let none = reference(kind("", ""));
        let mut annotations = BTreeMap::new();

        let (referred, all) = of(&annotations, &declared, &[&known, &former, &none]);
        assert_eq!((&referred, &all), (&BTreeSet::from([old.clone()]), &BTreeSet::from([old.clone()])));
        write(&all, &mut annotations);
        assert_eq!(annotations[ANNOTATION], "OldTemplate.boot.example");

        let (referred, all) = of(&annotations, &declared, &[&known]);
        assert_eq!((referred.len(), &all), (0, &BTreeSet::from([old.clone()])), "the reference is gone");

        let again = BTreeSet::from([old]);
        assert_eq!(of(&annotations, &again, &[]).1.len(), 0, "the class names it again");
        write(&BTreeSet::new(), &mut annotations);
        assert!(annotations.is_empty());
    }
}
