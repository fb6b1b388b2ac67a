//! The order of merged lists: first that of the patch, then that of the original.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::lists::Kind;
use super::{DIRECTIVE, ELEMENT_ORDER, PatchError, bad_type, go, no_merge_key};

/// Identity of an entry: its merge key, or itself.
fn identity(entry: &Value, merge_key: &str) -> String {
    if merge_key.is_empty() {
        entry.to_string()
    } else {
        entry.get(merge_key).unwrap_or(&Value::Null).to_string()
    }
}

fn key_of<'v>(entry: &'v Value, merge_key: &str) -> Result<&'v Value, PatchError> {
    let object = entry.as_object().ok_or_else(|| bad_type("map[string]interface {}", entry))?;
    object.get(merge_key).ok_or_else(|| no_merge_key(object, merge_key))
}

fn is_deletion(entry: &Value) -> bool {
    entry.get(DIRECTIVE).and_then(Value::as_str) == Some("delete")
}

/// Whether the entries of a patch are in the order of its own directive.
pub(super) fn check(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut entries = Vec::with_capacity(patch.len());
    for entry in patch {
        if merge_key.is_empty() {
            entries.push(entry);
            continue;
        }
        entry.as_object().ok_or_else(|| bad_type("map[string]interface {}", entry))?;
        if !is_deletion(entry) {
            entries.push(entry);
        }
    }
    let mut entries = entries.into_iter().peekable();
    let mut wanted = order.iter().peekable();
    while let (Some(entry), Some(next)) = (entries.peek(), wanted.peek()) {
        if entry.get(DIRECTIVE).is_some() {
            entries.next();
            continue;
        }
        let same = if merge_key.is_empty() {
            entry == next
        } else {
            key_of(entry, merge_key)? == key_of(next, merge_key)?
        };
        if same {
            entries.next();
        }
        wanted.next();
    }
    if entries.peek().is_none() {
        return Ok(());
    }
    let text = |list: &[Value]| go::v(&Value::Array(list.to_vec()));
    Err(PatchError::Internal(format!(
        "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
        text(patch),
        text(order)
    )))
}

/// Splits entries into those that a list names and the others.
pub(super) fn partition(
    merged: Vec<Value>,
    by: &[Value],
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    if merge_key.is_empty() {
        if merged.iter().chain(by).any(|entry| entry.is_object() || entry.is_array()) {
            return Err(PatchError::Internal("runtime error: hash of unhashable type".to_owned()));
        }
    } else {
        for entry in &merged {
            key_of(entry, merge_key)?;
        }
    }
    let named: BTreeSet<String> = by
        .iter()
        .filter(|e| merge_key.is_empty() || e.get(merge_key).is_some())
        .map(|e| identity(e, merge_key))
        .collect();
    Ok(merged.into_iter().partition(|entry| named.contains(&identity(entry, merge_key))))
}

/// The entries of the patch in the patch's order and the others in the original's, merged so that others keep their
/// position relative to common entries.
pub(super) fn normalize(
    ours: Vec<Value>,
    theirs: Vec<Value>,
    our_order: &[Value],
    server_order: &[Value],
    merge_key: &str,
    kind: Kind,
) -> Result<Vec<Value>, PatchError> {
    let merge_key = if kind == Kind::Objects { merge_key } else { "" };
    let ours = sorted(ours, our_order, merge_key, kind)?;
    let theirs = sorted(theirs, server_order, merge_key, kind)?;
    let positions = positions(server_order, merge_key);
    let place = |entry: &Value| positions.get(&identity(entry, merge_key)).copied();
    let mut out = Vec::with_capacity(ours.len() + theirs.len());
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        let theirs_first = match (ours.peek(), theirs.peek()) {
            (None, None) => return Ok(out),
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(our), Some(their)) => matches!((place(their), place(our)), (Some(l), Some(r)) if l < r),
        };
        out.extend(if theirs_first { theirs.next() } else { ours.next() });
    }
}

fn positions(order: &[Value], merge_key: &str) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for (i, entry) in order.iter().enumerate() {
        out.entry(identity(entry, merge_key)).or_insert(i);
    }
    out
}

fn sorted(
    entries: Vec<Value>,
    order: &[Value],
    merge_key: &str,
    kind: Kind,
) -> Result<Vec<Value>, PatchError> {
    let mut deletions = Vec::new();
    let mut entries = entries;
    if kind == Kind::Objects {
        for entry in entries.iter().chain(order) {
            key_of(entry, merge_key)?;
        }
        (deletions, entries) = entries.into_iter().partition(is_deletion);
    }
    let positions = positions(order, merge_key);
    let mut placed: Vec<(Option<usize>, Value)> = entries
        .into_iter()
        .map(|entry| (positions.get(&identity(&entry, merge_key)).copied(), entry))
        .collect();
    if placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| *place);
    } else {
        reverse_unplaced(&mut placed);
    }
    Ok(placed.into_iter().map(|(_, entry)| entry).chain(deletions).collect())
}

/// Upstream's comparison sorts an entry without a position before all others. Its sort then moves every such entry to
/// the front, one after the other.
fn reverse_unplaced(placed: &mut [(Option<usize>, Value)]) {
    const SMALL: usize = 20;
    if placed.len() > SMALL {
        // The order of larger lists depends on internals of the sort; clients cannot rely on it.
        placed.sort_by_key(|(place, _)| *place);
        return;
    }
    for i in 1..placed.len() {
        let mut j = i;
        while j > 0 {
            let less = match (placed[j].0, placed[j - 1].0) {
                (Some(a), Some(b)) => a < b,
                _ => true,
            };
            if !less {
                break;
            }
            placed.swap(j, j - 1);
            j -= 1;
        }
    }
}
