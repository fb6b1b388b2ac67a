//! The `application/vnd.kubernetes.protobuf` format: an envelope with the kind, around a message whose fields are in
//! the table by number.

mod decode;
mod encode;
mod wire;

use serde_json::{Map, Value};

use crate::error::Error;
use crate::table::{Table, TypeId, table};

/// Prefix of every Kubernetes protobuf body.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// What stands after the message in its envelope: neither an encoding nor a type of the content.
pub const ENVELOPE_END: [u8; 4] = [3 << 3 | 2, 0, 4 << 3 | 2, 0];

/// Maximum nesting of messages.
const MAX_DEPTH: usize = 128;

/// Decodes a body to the JSON object that Go would write, including `apiVersion` and `kind`.
pub fn decode(body: &[u8]) -> Result<Value, Error> {
    let payload = body.strip_prefix(&MAGIC).ok_or(Error::Prefix)?;
    let envelope = decode::envelope(payload)?;
    let (group, version) = envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let id = table().kind(group, version, &envelope.kind).ok_or_else(|| Error::UnknownKind {
        api_version: envelope.api_version.clone(),
        kind: envelope.kind.clone(),
    })?;
    let mut object = decode_message(id, envelope.raw)?;
    object.insert("apiVersion".to_owned(), Value::String(envelope.api_version));
    object.insert("kind".to_owned(), Value::String(envelope.kind));
    Ok(Value::Object(object))
}

/// Decodes a bare message of a known type.
pub fn decode_message(id: TypeId, raw: &[u8]) -> Result<Map<String, Value>, Error> {
    decode::Decoder::new(table()).object(id, raw)
}

/// Encodes an object of a built-in kind, by its `apiVersion` and `kind`. `None` if the kind is not built in, or the
/// object does not match its type.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let raw = encode_bare(object)?;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut body = envelope_start(text("apiVersion"), text("kind"), raw.len());
    body.extend_from_slice(&raw);
    body.extend_from_slice(&ENVELOPE_END);
    Some(body)
}

/// Like [`encode`], without the envelope.
pub fn encode_bare(object: &Value) -> Option<Vec<u8>> {
    // `APIVersions` is older than `apiVersion`.
    let api_version = object.get("apiVersion").map_or(Some(""), Value::as_str)?;
    let kind = object.get("kind")?.as_str()?;
    let (group, version) = match api_version {
        "" => ("", "v1"),
        given => given.split_once('/').unwrap_or(("", given)),
    };
    encode_message(table(), table().kind(group, version, kind)?, object)
}

/// What stands before a bare message of a length in its envelope.
pub fn envelope_start(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut start = MAGIC.to_vec();
    encode::envelope_start(&mut start, api_version, kind, length);
    start
}

/// Encodes a bare message. Built-in objects have no `apiVersion` and `kind` inside of lists and watches.
fn encode_message(table: &Table, id: TypeId, object: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    encode::message(table, id, object.as_object()?, &mut out)?;
    Some(out)
}

#[cfg(test)]
mod tests;
