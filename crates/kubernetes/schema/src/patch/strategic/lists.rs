//! Merges lists by merge key, or as sets of scalars.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::meta::Field;
use super::{DIRECTIVE, PatchError, go, merge_objects, no_merge_key, order, unknown_directive};

/// Kind of the entries of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Objects,
    Scalars,
}

/// Merges a patch list into a list. With `deletes`, removes its scalars instead.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: Field<'_>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if field.strategy()? != "merge" && !deletes {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    field.count_merged(original.iter().chain(&patch).map(super::super::count).sum())?;
    let kind = element_kind(&[&original, &patch])?;
    let merge_key = field.merge_key();
    let (merged, patch, original) = match kind {
        Kind::Scalars if deletes => {
            let gone: BTreeSet<String> = patch.iter().map(Value::to_string).collect();
            return Ok(original.into_iter().filter(|item| !gone.contains(&item.to_string())).collect());
        }
        Kind::Scalars => {
            let mut seen = BTreeSet::new();
            let both = original.iter().chain(&patch).filter(|item| seen.insert(item.to_string()));
            (both.cloned().collect(), patch, original)
        }
        Kind::Objects if merge_key.is_empty() => {
            let kind = field.meta().go_kind();
            return Err(PatchError::Internal(format!("cannot merge lists without merge key for {kind}")));
        }
        Kind::Objects => {
            let (original, patch) = special_entries(original, patch, merge_key)?;
            let merged = merge_entries(original.clone(), &patch, merge_key, field)?;
            (merged, patch, original)
        }
    };
    let (ours, theirs) = order::partition(merged, &patch, merge_key)?;
    // New entries are not in the original, so their order is the patch's.
    order::normalize(ours, theirs, &patch, &original, merge_key, kind)
}

/// Kind of the entries: all entries of all lists must have one type, which is not a list.
pub(super) fn element_kind(lists: &[&[Value]]) -> Result<Kind, PatchError> {
    let mut entries = lists.iter().flat_map(|list| list.iter());
    let Some(first) = entries.next() else {
        return Err(PatchError::Internal("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(PatchError::Inapplicable("lists of lists are not supported".to_owned()));
    }
    if first.is_null() || entries.any(|entry| go::type_name(entry) != go::type_name(first)) {
        let lists: Vec<String> = lists.iter().map(|list| go::v(&Value::Array(list.to_vec()))).collect();
        return Err(PatchError::Internal(format!(
            "list element types are not identical: [{}]",
            lists.join(" ")
        )));
    }
    Ok(if first.is_object() { Kind::Objects } else { Kind::Scalars })
}

/// Executes the directive entries of a patch. Returns the list without what they delete, and the patch without them.
fn special_entries(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replaces = false;
    let mut gone = BTreeSet::new();
    for entry in patch {
        let Value::Object(object) = &entry else { continue };
        let Some(directive) = object.get(DIRECTIVE) else {
            plain.push(entry);
            continue;
        };
        match directive.as_str() {
            Some("delete") => match object.get(merge_key) {
                Some(value) => _ = gone.insert(value.to_string()),
                None => return Err(no_merge_key(object, merge_key)),
            },
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(PatchError::Internal(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            _ => return Err(unknown_directive(directive, object)),
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    original.retain(|entry| entry.get(merge_key).is_none_or(|value| !gone.contains(&value.to_string())));
    Ok((original, plain))
}

fn merge_entries(
    mut original: Vec<Value>,
    patch: &[Value],
    merge_key: &str,
    field: Field<'_>,
) -> Result<Vec<Value>, PatchError> {
    let mut position: BTreeMap<String, usize> = BTreeMap::new();
    for (i, entry) in original.iter().enumerate() {
        if let Some(value) = entry.get(merge_key) {
            position.entry(value.to_string()).or_insert(i);
        }
    }
    for entry in patch {
        let Value::Object(object) = entry else { continue };
        let value = object.get(merge_key).ok_or_else(|| no_merge_key(object, merge_key))?;
        match position.get(&value.to_string()).and_then(|i| original.get_mut(*i)) {
            Some(current) => {
                if let Value::Object(old) = std::mem::take(current) {
                    *current = Value::Object(merge_objects(old, object.clone(), field.meta())?);
                }
            }
            None => {
                position.insert(value.to_string(), original.len());
                original.push(entry.clone());
            }
        }
    }
    Ok(original)
}
