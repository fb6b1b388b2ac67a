//! JSON patch (RFC 6902) as in upstream's library: `replace` also creates a key of an object, `test` of an absent key
//! equals null, an index may count from the end, text before the first slash of a path is ignored, and copies may add
//! at most 3 MiB.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, PatchError, go};
use crate::golang;
use crate::memory::{self, MemoryBudget};

/// Most operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Most bytes that the `copy` operations of one patch may add in total.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Most values that one patch may move: an addition or a removal moves all entries of the list that follow. 10,000
/// removals at the front of a list of 2,000, or a tenth of a second.
pub const MAX_MOVED: usize = 20_000_000;

/// Nesting limit of a document between two operations.
const WORKING_DEPTH: usize = 1_000;

/// A decoded JSON patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    operations: Vec<Map<String, Value>>,
}

impl Patch {
    /// Decodes a patch from its parsed body.
    ///
    /// `typed` is for `fieldValidation` `Warn` and `Strict`, with which upstream first checks the types of `op`,
    /// `path` and `from`.
    ///
    /// # Errors
    /// [`PatchError::Malformed`] when it is not a list of objects, [`PatchError::TooManyOperations`].
    pub fn decode(body: Value, typed: bool) -> Result<Self, PatchError> {
        let (list_type, element_type) = if typed {
            ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
        } else {
            ("jsonpatch.Patch", "jsonpatch.Operation")
        };
        let malformed = |found: &Value, expected: &str| {
            let prefix = if typed { "error decoding patch: " } else { "" };
            let found = go::json_kind(found);
            PatchError::Malformed(format!("{prefix}json: cannot unmarshal {found} into Go {expected}"))
        };
        let items = match body {
            Value::Null => Vec::new(),
            Value::Array(items) => items,
            other => return Err(malformed(&other, &format!("value of type {list_type}"))),
        };
        let mut operations = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Null => operations.push(Map::new()),
                Value::Object(operation) => {
                    if typed {
                        for name in ["from", "op", "path"] {
                            match operation.get(name) {
                                None | Some(Value::Null | Value::String(_)) => {}
                                Some(other) => {
                                    let place = format!("struct field jsonPatchOp.{name} of type string");
                                    return Err(malformed(other, &place));
                                }
                            }
                        }
                    }
                    operations.push(operation);
                }
                other => return Err(malformed(&other, &format!("value of type {element_type}"))),
            }
        }
        if operations.len() > MAX_OPERATIONS {
            return Err(PatchError::TooManyOperations { limit: MAX_OPERATIONS, got: operations.len() });
        }
        Ok(Self { operations })
    }

    /// The strict decoding errors of the patch itself: `json patch unknown field "[0].foo"`.
    pub fn unknown_fields(&self) -> Vec<String> {
        let known = ["op", "path", "from", "value"];
        let mut out = Vec::new();
        for (i, operation) in self.operations.iter().enumerate() {
            for name in operation.keys().filter(|name| !known.contains(&name.as_str())) {
                out.push(format!("json patch unknown field \"[{i}].{name}\""));
            }
        }
        out
    }

    /// How many operations it has.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the operations in order. The result may be any JSON value, not only an object.
    ///
    /// # Errors
    /// [`PatchError::Inapplicable`] with upstream's text when an operation fails, [`PatchError::TooMuchWork`].
    pub fn apply(&self, document: Value) -> Result<Value, PatchError> {
        self.apply_within(document, MemoryBudget::default())
    }

    /// Like [`Patch::apply`], with a memory budget for what it copies.
    ///
    /// # Errors
    /// As [`Patch::apply`].
    pub fn apply_within(&self, document: Value, budget: MemoryBudget) -> Result<Value, PatchError> {
        let mut work = Work { depth: super::depth(&document), document, copied: 0, moved: 0, budget };
        for operation in &self.operations {
            let done = work.run(operation);
            if work.moved > MAX_MOVED {
                return Err(PatchError::TooMuchWork { doing: "move", limit: MAX_MOVED });
            }
            done.map_err(PatchError::Inapplicable)?;
        }
        if work.depth > MAX_DEPTH && super::depth(&work.document) > MAX_DEPTH {
            return Err(PatchError::Inapplicable(format!(
                "the patched document is nested deeper than {MAX_DEPTH} levels"
            )));
        }
        Ok(work.document)
    }
}

struct Work {
    document: Value,
    /// Upper bound of the nesting of the document.
    depth: usize,
    copied: usize,
    /// Values that were moved or visited because of the position of others.
    moved: usize,
    /// Memory limit of copies, which the size of their text does not bound.
    budget: MemoryBudget,
}

impl Work {
    fn run(&mut self, operation: &Map<String, Value>) -> Result<(), String> {
        let op = match operation.get("op") {
            Some(Value::String(op)) => op.as_str(),
            _ => "unknown",
        };
        let value = || operation.get("value").cloned().unwrap_or(Value::Null);
        match op {
            "add" => {
                let path = pointer(operation, "path")
                    .map_err(|_| "add operation failed to decode path: missing value".to_owned())?;
                let value = value();
                let nesting = super::depth(&value);
                let (container, key) = self.find(path).ok_or_else(|| {
                    format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
                })?;
                let moved = add(container, key, value)
                    .map_err(|e| format!("error in add for path: '{path}': {e}"))?;
                self.moved += moved;
                self.deepened(tokens(path) + nesting)
            }
            "remove" => {
                let path = pointer(operation, "path")
                    .map_err(|_| "remove operation failed to decode path: missing value".to_owned())?;
                let (container, key) = self.find(path).ok_or_else(|| {
                    format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
                })?;
                let (_, moved) = remove(container, &key)
                    .map_err(|e| format!("error in remove for path: '{path}': {e}"))?;
                self.moved += moved;
                Ok(())
            }
            "replace" => {
                let path = pointer(operation, "path")
                    .map_err(|e| format!("replace operation failed to decode path: {e}"))?;
                self.replace(path, value())
            }
            "move" => {
                let from = pointer(operation, "from")
                    .map_err(|e| format!("move operation failed to decode from: {e}"))?;
                let (container, key) = self.find(from).ok_or_else(|| {
                    format!("move operation does not apply: doc is missing from path: {from}: missing value")
                })?;
                let in_move = |e: String| format!("error in move for path: '{key}': {e}");
                get(container, &key).map_err(in_move)?;
                let (value, moved) = remove(container, &key).map_err(in_move)?;
                self.moved += moved;
                let path = pointer(operation, "path")
                    .map_err(|e| format!("move operation failed to decode path: {e}"))?;
                let (container, key) = self.find(path).ok_or_else(|| {
                    format!("move operation does not apply: doc is missing destination path: {path}: missing value")
                })?;
                let moved = add(container, key, value)
                    .map_err(|e| format!("error in move for path: '{path}': {e}"))?;
                self.moved += moved;
                self.deepened(tokens(path) + self.depth.saturating_sub(tokens(from)))
            }
            "test" => {
                let path = pointer(operation, "path")
                    .map_err(|e| format!("test operation failed to decode path: {e}"))?;
                self.test(path, &value())
            }
            "copy" => {
                let from = pointer(operation, "from")
                    .map_err(|e| format!("copy operation failed to decode from: {e}"))?;
                let (container, key) = self.find(from).ok_or_else(|| {
                    format!("copy operation does not apply: doc is missing from path: {from}: missing value")
                })?;
                let value = get(container, &key)
                    .map_err(|e| format!("error in copy for from: '{from}': {e}"))?
                    .cloned()
                    .unwrap_or(Value::Null);
                let path = pointer(operation, "path")
                    .map_err(|_| "copy operation failed to decode path: missing value".to_owned())?;
                if self.find(path).is_none() {
                    return Err(format!(
                        "copy operation does not apply: doc is missing destination path: {path}: missing value"
                    ));
                }
                if !value.is_null() {
                    self.copied += value.to_string().len();
                }
                if self.copied > MAX_COPIED_BYTES {
                    return Err(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED_BYTES}",
                        self.copied
                    ));
                }
                self.budget
                    .spend(memory::tree(&value))
                    .map_err(|e| format!("unable to complete the copy: {e}"))?;
                let nesting = super::depth(&value);
                if let Some((container, key)) = self.find(path) {
                    let moved = add(container, key, value)
                        .map_err(|e| format!("error while adding value during copy: {e}"))?;
                    self.moved += moved;
                }
                self.deepened(tokens(path) + nesting)
            }
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    /// The container of a path and the last key of the path; `None` if a parent is missing.
    fn find(&mut self, path: &str) -> Option<(&mut Value, String)> {
        let (_, path) = path.split_once('/')?;
        let (parents, key) =
            path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
        let mut container = &mut self.document;
        for token in parents.into_iter().flat_map(|p| p.split('/')) {
            container = match container {
                Value::Object(map) => map.get_mut(&unescape(token))?,
                Value::Array(items) => {
                    let index = index_of(&unescape(token), items.len()).ok()?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
        }
        (container.is_object() || container.is_array()).then(|| (container, unescape(key)))
    }

    fn replace(&mut self, path: &str, value: Value) -> Result<(), String> {
        let nesting = super::depth(&value);
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
            }
            self.document = value;
            self.depth = nesting;
            return Ok(());
        }
        let (container, key) = self.find(path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        })?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(items) => {
                let slot =
                    index_of(&key, items.len()).ok().and_then(|i| items.get_mut(i)).ok_or_else(|| {
                        format!("replace operation does not apply: doc is missing key: {path}: missing value")
                    })?;
                *slot = value;
            }
            _ => {}
        }
        self.deepened(tokens(path) + nesting)
    }

    fn test(&mut self, path: &str, expected: &Value) -> Result<(), String> {
        let failed = || Err(format!("testing value {path} failed: test failed"));
        if path.is_empty() {
            return if &self.document == expected { Ok(()) } else { failed() };
        }
        let (container, key) = self.find(path).ok_or_else(|| {
            format!("test operation does not apply: is missing path: {path}: missing value")
        })?;
        let found = get(container, &key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
        if found.unwrap_or(&Value::Null) == expected { Ok(()) } else { failed() }
    }

    /// Records that the document reaches a level. A chain of moves can nest a small document very deeply, and
    /// dropping such a value would exhaust the stack.
    fn deepened(&mut self, level: usize) -> Result<(), String> {
        self.depth = self.depth.max(level);
        if self.depth > WORKING_DEPTH {
            self.moved += super::count(&self.document);
            self.depth = super::depth(&self.document);
            if self.depth > WORKING_DEPTH / 2 {
                return Err(format!("the patched document is nested deeper than {MAX_DEPTH} levels"));
            }
        }
        Ok(())
    }
}

fn pointer<'a>(operation: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match operation.get(name) {
        Some(Value::String(path)) => Ok(path),
        None | Some(Value::Null) if name == "path" => {
            Err("operation missing path field: missing value".to_owned())
        }
        None | Some(Value::Null) => Err(format!("operation, missing {name} field: missing value")),
        Some(other) => {
            Err(format!("json: cannot unmarshal {} into Go value of type string", go::json_kind(other)))
        }
    }
}

fn tokens(path: &str) -> usize {
    path.bytes().filter(|b| *b == b'/').count()
}

/// One pass, so that `~01` is `~1`.
fn unescape(token: &str) -> String {
    let mut out = String::with_capacity(token.len());
    let mut rest = token;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (plain, used) = match rest.as_bytes().get(at + 1) {
            Some(b'0') => ("~", 2),
            Some(b'1') => ("/", 2),
            _ => ("~", 1),
        };
        out.push_str(plain);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    out
}

fn parse_index(key: &str) -> Result<i64, String> {
    key.parse::<i64>().map_err(|e| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = if matches!(e.kind(), PosOverflow | NegOverflow) {
            "value out of range"
        } else {
            "invalid syntax"
        };
        format!("strconv.Atoi: parsing {}: {why}", golang::quote(key))
    })
}

/// The index of a key in a list of `len` entries, negative ones counting from the end.
fn index_of(key: &str, len: usize) -> Result<usize, String> {
    let index = parse_index(key)?;
    let position = if index < 0 { index.checked_add_unsigned(len as u64) } else { Some(index) };
    position
        .and_then(|p| usize::try_from(p).ok())
        .filter(|p| *p < len)
        .ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}

fn get<'a>(container: &'a Value, key: &str) -> Result<Option<&'a Value>, String> {
    match container {
        Value::Array(items) => Ok(items.get(index_of(key, items.len())?)),
        other => Ok(other.get(key)),
    }
}

/// Adds a value and returns how many others it moves.
fn add(container: &mut Value, key: String, value: Value) -> Result<usize, String> {
    match container {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let len = items.len() + 1;
            parse_index(&key).map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            let index = index_of(&key, len)?;
            items.insert(index, value);
            return Ok(items.len() - index);
        }
        _ => {}
    }
    Ok(0)
}

/// Removes a value and returns it, and how many others that moves.
fn remove(container: &mut Value, key: &str) -> Result<(Value, usize), String> {
    match container {
        Value::Array(items) => {
            let index = index_of(key, items.len())?;
            Ok((items.remove(index), items.len() - index))
        }
        Value::Object(map) => map
            .remove(key)
            .map(|value| (value, 0))
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        _ => Ok((Value::Null, 0)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(document: Value, patch: Value) -> Result<Value, String> {
        Patch::decode(patch, false).unwrap().apply(document).map_err(|e| {
            assert_eq!(e.status(), 422);
            e.to_string()
        })
    }

    #[test]
    fn operations_change_the_document() {
        for (document, patch, expected) in [
            (json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2})),
            (
                json!({"a": [1, 3]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}]),
                json!({"a": [1, 2, 3]}),
            ),
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-", "value": 2}]), json!({"a": [1, 2]})),
            // Position -1 is after the last entry for an addition and the last entry otherwise.
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-1", "value": 2}]), json!({"a": [1, 2]})),
            (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/-1"}]), json!({"a": [1]})),
            (
                json!({"a": [1, 2]}),
                json!([{"op": "replace", "path": "/a/+1", "value": 9}]),
                json!({"a": [1, 9]}),
            ),
            (json!({}), json!([{"op": "add", "path": "/a"}]), json!({"a": null})),
            (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1})),
            (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"b": 1}}]), json!({"b": 1})),
            (
                json!({"a": {"b": 1}}),
                json!([{"op": "move", "from": "/a/b", "path": "/c"}]),
                json!({"a": {}, "c": 1}),
            ),
            (
                json!({"a": {"b": 1}}),
                json!([{"op": "copy", "from": "/a", "path": "/c"}]),
                json!({"a": {"b": 1}, "c": {"b": 1}}),
            ),
            (json!({}), json!([{"op": "copy", "from": "/x", "path": "/c"}]), json!({"c": null})),
            (
                json!({"a/b": 1, "m~n": 2}),
                json!([{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}]),
                json!({}),
            ),
            (json!({"~1": 1}), json!([{"op": "remove", "path": "/~01"}]), json!({})),
            (json!({"a": 1}), json!([{"op": "remove", "path": "ignored/a"}]), json!({})),
            (json!({"": 1}), json!([{"op": "remove", "path": "/"}]), json!({})),
            (
                json!({"a": [null, {"b": 1}]}),
                json!([{"op": "test", "path": "/a", "value": [null, {"b": 1}]}]),
                json!({"a": [null, {"b": 1}]}),
            ),
            (json!({"a": 1}), json!([{"op": "test", "path": "/b"}]), json!({"a": 1})),
            (json!({"a": 1}), json!(null), json!({"a": 1})),
        ] {
            assert_eq!(patched(document.clone(), patch.clone()), Ok(expected), "{document} + {patch}");
        }
    }

    #[test]
    fn inapplicable_operations_are_rejected_with_upstreams_texts() {
        let document = json!({"a": {"b": [1]}, "n": null, "s": "x"});
        for (operation, text) in [
            (
                json!({"op": "add", "path": "/x/y", "value": 1}),
                "add operation does not apply: doc is missing path: \"/x/y\": missing value",
            ),
            (
                json!({"op": "add", "path": "/n/y", "value": 1}),
                "add operation does not apply: doc is missing path: \"/n/y\": missing value",
            ),
            (
                json!({"op": "add", "path": "/s/y", "value": 1}),
                "add operation does not apply: doc is missing path: \"/s/y\": missing value",
            ),
            (
                json!({"op": "add", "path": "", "value": {}}),
                "add operation does not apply: doc is missing path: \"\": missing value",
            ),
            (json!({"op": "add", "value": 1}), "add operation failed to decode path: missing value"),
            (
                json!({"op": "add", "path": "/a/b/3", "value": 1}),
                "error in add for path: '/a/b/3': Unable to access invalid index: 3: invalid index referenced",
            ),
            (
                json!({"op": "add", "path": "/a/b/-3", "value": 1}),
                "error in add for path: '/a/b/-3': Unable to access invalid index: -3: invalid index referenced",
            ),
            (
                json!({"op": "add", "path": "/a/b/x", "value": 1}),
                "error in add for path: '/a/b/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!({"op": "remove", "path": "/x"}),
                "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                json!({"op": "remove", "path": "/a/b/1"}),
                "error in remove for path: '/a/b/1': Unable to access invalid index: 1: invalid index referenced",
            ),
            (
                json!({"op": "replace", "path": "/a/b/1", "value": 1}),
                "replace operation does not apply: doc is missing key: /a/b/1: missing value",
            ),
            (
                json!({"op": "replace", "path": "/x/y", "value": 1}),
                "replace operation does not apply: doc is missing path: /x/y: missing value",
            ),
            (
                json!({"op": "replace"}),
                "replace operation failed to decode path: operation missing path field: missing value",
            ),
            (
                json!({"op": "move", "path": "/x"}),
                "move operation failed to decode from: operation, missing from field: missing value",
            ),
            (
                json!({"op": "move", "from": "/x", "path": "/y"}),
                "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                json!({"op": "move", "from": "/a", "path": "/a/b"}),
                "move operation does not apply: doc is missing destination path: /a/b: missing value",
            ),
            (
                json!({"op": "copy", "from": "/x/y", "path": "/y"}),
                "copy operation does not apply: doc is missing from path: /x/y: missing value",
            ),
            (json!({"op": "test", "path": "/s", "value": "y"}), "testing value /s failed: test failed"),
            (
                json!({"op": "test", "path": "/a/b/0", "value": 1.0}),
                "testing value /a/b/0 failed: test failed",
            ),
            (
                json!({"op": "test", "path": "/x/y", "value": 1}),
                "test operation does not apply: is missing path: /x/y: missing value",
            ),
            (
                json!({"op": "test", "path": "/a/b/9", "value": 1}),
                "error in test for path: '/a/b/9': Unable to access invalid index: 9: invalid index referenced",
            ),
            (json!({"op": "frob", "path": "/a"}), "Unexpected kind: frob"),
            (json!({}), "Unexpected kind: unknown"),
            (json!(null), "Unexpected kind: unknown"),
        ] {
            assert_eq!(
                patched(document.clone(), json!([operation.clone()])),
                Err(text.to_owned()),
                "{operation}"
            );
        }
    }

    #[test]
    fn a_patch_that_is_no_list_of_operations_is_malformed() {
        for (body, typed, text) in [
            (json!({}), false, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
            (json!([1]), false, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
            (
                json!({}),
                true,
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                json!([{"op": 1}]),
                true,
                "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            ),
        ] {
            let error = Patch::decode(body, typed).unwrap_err();
            assert_eq!((error.status(), error.to_string().as_str()), (400, text));
        }
        let many =
            Patch::decode(Value::Array(vec![json!({"op": "test", "path": "/a"}); 10_001]), true).unwrap_err();
        assert_eq!(many.status(), 413);
        assert_eq!(many.to_string(), "The allowed maximum operations in a JSON patch is 10000, got 10001");
    }

    #[test]
    fn unknown_fields_of_an_operation_are_named() {
        let patch =
            Patch::decode(json!([{"op": "test", "path": "/a"}, {"op": "test", "pth": 1}]), true).unwrap();
        assert_eq!(patch.unknown_fields(), ["json patch unknown field \"[1].pth\""]);
    }

    #[test]
    fn copies_may_not_double_a_document_without_end() {
        let copy = json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let error = patched(json!({"a": ["0123456789"]}), Value::Array(vec![copy; 64])).unwrap_err();
        assert!(error.starts_with("Unable to complete the copy, the accumulated size"), "{error}");
    }

    #[test]
    fn work_at_the_front_of_a_long_list_is_bounded() {
        let long = Value::Array(vec![json!(0); 400_000]);
        for operation in [
            json!({"op": "remove", "path": "/x/0"}),
            json!({"op": "add", "path": "/x/0", "value": 1}),
            json!({"op": "move", "from": "/x/0", "path": "/x/-"}),
            json!({"op": "copy", "from": "/x/1", "path": "/x/0"}),
        ] {
            let error = |count| {
                let patch = Patch::decode(Value::Array(vec![operation.clone(); count]), true).unwrap();
                patch.apply(json!({"x": long})).err()
            };
            assert_eq!(error(40), None, "{operation}");
            let error = error(1_000).unwrap();
            assert_eq!(error, PatchError::TooMuchWork { doing: "move", limit: MAX_MOVED }, "{operation}");
            assert_eq!(error.status(), 413);
        }
        let at_the_end = vec![json!({"op": "remove", "path": "/x/-1"}); MAX_OPERATIONS];
        assert!(Patch::decode(Value::Array(at_the_end), true).unwrap().apply(json!({"x": long})).is_ok());
    }

    #[test]
    fn work_to_measure_the_nesting_is_bounded() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        let document = json!({"d": deep, "x": vec![json!(0); 400_000], "v": 1});
        let (path, back) = (format!("/d{}/v", "/a".repeat(100)), "/v");
        let there = json!({"op": "move", "from": back, "path": path});
        let back = json!({"op": "move", "from": path, "path": back});
        let operations = [there, back].iter().cycle().take(MAX_OPERATIONS).cloned().collect();
        let error = Patch::decode(Value::Array(operations), true).unwrap().apply(document).unwrap_err();
        assert_eq!(error.status(), 413, "{error}");
    }

    #[test]
    fn moves_may_not_nest_a_document_without_end() {
        let wrap = [
            json!({"op": "add", "path": "/n", "value": {}}),
            json!({"op": "move", "from": "/a", "path": "/n/a"}),
            json!({"op": "move", "from": "/n", "path": "/a"}),
        ];
        for rounds in [200, 3_000] {
            let operations: Vec<Value> = wrap.iter().cycle().take(rounds * 3).cloned().collect();
            let error = patched(json!({"a": {}}), Value::Array(operations)).unwrap_err();
            assert_eq!(error, "the patched document is nested deeper than 127 levels");
        }
    }
}
