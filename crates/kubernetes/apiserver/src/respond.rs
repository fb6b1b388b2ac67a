//! Giving answers the shape and encoding the client asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::http::StatusCode;
use bytes::{BufMut, Bytes, BytesMut};
use capstan_transport::WatchEvent;
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::listing::Listing;
use crate::negotiation::{self, Accepted, Encoding, Shape};
use crate::registry::Resource;
use crate::reply::{self, Reply, ReplyBody};
use crate::status::{Result, Status};
use crate::table::{self, Options, Printer};
use crate::verbs::{Answer, ListAnswer};

/// Turns an answer into a response.
pub(crate) fn respond(call: &Call, answer: Answer) -> Result<Reply> {
    match answer {
        Answer::Reply(reply) => Ok(reply),
        // What has no table says so; only a `Status` stays what it is whatever was asked for.
        Answer::Plain { value, .. }
            if matches!(call.accepted.shape, Shape::Table(_)) && value["kind"] != "Status" =>
        {
            Err(negotiation::not_acceptable(&negotiation::OBJECT_TYPES))
        }
        Answer::Plain { code, value } => encode(call, code, &value),
        Answer::Object { code, bytes } => object(call, code, bytes),
        Answer::List(list) => self::list(call, list),
    }
}

fn printer(call: &Call) -> Printer {
    if call.subresource() == "scale" {
        Printer::scale(call.resource())
    } else {
        Printer::new(call.resource())
    }
}

fn object(call: &Call, code: StatusCode, bytes: Bytes) -> Result<Reply> {
    let Accepted { encoding, shape, pretty } = call.accepted;
    table::check_shape(shape, call.resource(), false)?;
    if shape == Shape::Whole && encoding == Encoding::Json && !pretty {
        return Ok(reply::with_type(code, negotiation::JSON, ReplyBody::line(bytes)));
    }
    let value = parse(&bytes)?;
    let shaped = match shape {
        Shape::Whole => value,
        Shape::Table(version) => {
            let options = Options::new(version, call.query.get("includeObject"))?;
            printer(call).object_table(&value, true, &options, call.parts.env.now())
        }
        Shape::Metadata(version) | Shape::MetadataList(version) => table::metadata(&value, version),
    };
    encode(call, code, &shaped)
}

fn list(call: &Call, list: ListAnswer) -> Result<Reply> {
    let Accepted { encoding, shape, pretty } = call.accepted;
    table::check_shape(shape, call.resource(), true)?;
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), list.resource_version.to_string().into());
    // Lists of custom resources always have it upstream.
    if !list.continue_token.is_empty() || (shape == Shape::Whole && call.resource().custom().is_some()) {
        metadata.insert("continue".into(), list.continue_token.into());
    }
    if let Some(remaining) = list.remaining {
        metadata.insert("remainingItemCount".into(), remaining.into());
    }
    let resource = call.resource();
    let head =
        json!({"apiVersion": resource.api_version(), "kind": resource.list_kind, "metadata": metadata});
    if shape == Shape::Whole && encoding == Encoding::Json && !pretty {
        return Ok(reply::with_type(
            StatusCode::OK,
            "application/json",
            ReplyBody::pieces(match resource.custom() {
                Some(_) => custom_list(&head, list.items),
                None => list_of(resource, &head, list.items),
            }),
        ));
    }
    match shape {
        Shape::Table(version) => {
            let options = Options::new(version, call.query.get("includeObject"))?;
            let (printer, now) = (printer(call), call.parts.env.now());
            let table = printer.table(metadata.into(), Vec::new(), true, &options);
            let listing = Listing { head: table, field: "rows" };
            listing.encode(call.accepted, &list.items, |item| Ok(printer.row(&parse(item)?, &options, now)))
        }
        Shape::Metadata(version) | Shape::MetadataList(version) => {
            let listing = Listing { head: table::metadata_list(&head, version), field: "items" };
            listing.encode(call.accepted, &list.items, |item| Ok(table::metadata(&parse(item)?, version)))
        }
        Shape::Whole => {
            let typed = resource.custom().is_some();
            Listing { head, field: "items" }.encode(call.accepted, &list.items, |item| {
                let mut item = parse(item)?;
                if let Some(fields) = item.as_object_mut().filter(|_| !typed) {
                    fields.remove("apiVersion");
                    fields.remove("kind");
                }
                Ok(item)
            })
        }
    }
}

/// A JSON list around bytes that stay as they are. Its keys are sorted, so that its items come first.
fn custom_list(head: &Value, items: Vec<Bytes>) -> Vec<Bytes> {
    let mut parts = Vec::with_capacity(items.len() * 2 + 2);
    parts.push(format!("{{\"apiVersion\":{},\"items\":[", head["apiVersion"]).into());
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            parts.push(Bytes::from_static(b","));
        }
        parts.push(item);
    }
    parts.push(format!("],\"kind\":{},\"metadata\":{}}}\n", head["kind"], head["metadata"]).into());
    parts
}

/// A JSON list around the bytes of built-in objects without their types: upstream's typed lists leave them out, and
/// clients compare.
fn list_of(resource: &Resource, head: &Value, items: Vec<Bytes>) -> Vec<Bytes> {
    let mut text = capstan_builtin::text::to_vec(head);
    text.pop();
    text.extend_from_slice(b",\"items\":[");
    let mut parts = Vec::with_capacity(items.len() * 2 + 2);
    parts.push(text.into());
    // How an object begins that was written in the version of the list.
    let (kind, version) = (&resource.kind, resource.api_version());
    let typed = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",");
    for (n, item) in items.into_iter().enumerate() {
        parts.push(Bytes::from_static(if n > 0 { b",{" } else { b"{" }));
        if item.starts_with(typed.as_bytes()) {
            parts.push(item.slice(typed.len()..));
        } else {
            without_type(item, &mut parts);
        }
    }
    parts.push(Bytes::from_static(b"]}\n"));
    parts
}

/// Compact JSON with line breaks and two spaces per level, in the order of the text.
pub(crate) fn indented(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact.len() * 2);
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_usize);
    let new_line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b"  ", depth).flatten());
    };
    for (n, byte) in compact.iter().copied().enumerate() {
        if quoted {
            out.push(byte);
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        let empty = |close: u8| compact.get(n + 1) == Some(&close);
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                if !empty(byte + 2) {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                if !matches!(compact.get(n.wrapping_sub(1)), Some(b'{' | b'[')) {
                    depth = depth.saturating_sub(1);
                    new_line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'"' => {
                quoted = true;
                out.push(byte);
            }
            other => out.push(other),
        }
    }
    out
}

/// Adds the pieces of a compact JSON object, after its brace, that are left without `apiVersion` and `kind`.
fn without_type(object: Bytes, parts: &mut Vec<Bytes>) {
    let (mut kept, mut at, mut found) = (1, 1, 0);
    while found < 2 {
        let Some(end) = member_end(&object, at) else { break };
        let member = &object[at..end];
        if member.starts_with(b"\"apiVersion\":") || member.starts_with(b"\"kind\":") {
            if kept < at {
                parts.push(object.slice(kept..at));
            }
            kept = end + 1;
            found += 1;
        }
        at = end + 1;
    }
    parts.push(object.slice(kept..));
}

/// Where the comma after the member at `at` is; `None` if it is the last one.
fn member_end(object: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, at);
    loop {
        match object.get(at)? {
            b'"' => at = string_end(object, at + 1)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
}

/// Where the quote that ends the text from `at` on is. Most of an object is text, so this skips to what counts.
fn string_end(object: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', object.get(at..)?)?;
        if object[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

fn parse(bytes: &[u8]) -> Result<Value> {
    capstan_transport::json::parse(bytes)
        .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))
}

/// Encodes a finished document.
pub(crate) fn encode(call: &Call, code: StatusCode, value: &Value) -> Result<Reply> {
    encode_as(call.accepted, code, value)
}

/// Encodes a finished document as a client accepts it.
pub(crate) fn encode_as(accepted: Accepted, code: StatusCode, value: &Value) -> Result<Reply> {
    Ok(match accepted.encoding {
        Encoding::Json if accepted.pretty => {
            reply::json_bytes(code, indented(&capstan_builtin::text::to_vec(value)))
        }
        Encoding::Json => reply::json(code, value),
        Encoding::Yaml => {
            reply::with_type(code, "application/yaml", ReplyBody::full(crate::yaml::to_string(value)))
        }
        Encoding::Protobuf => match capstan_builtin::protobuf::encode(value) {
            Some(bytes) => reply::with_type(code, negotiation::PROTOBUF, ReplyBody::full(bytes)),
            // Clients that prefer protobuf read the content type.
            None => reply::json(code, value),
        },
    })
}

/// How the events of a watch look.
#[derive(Clone)]
pub(crate) struct WatchShape {
    accepted: Accepted,
    table: Option<Arc<TableWatch>>,
}

struct TableWatch {
    printer: Printer,
    options: Options,
    headers_sent: AtomicBool,
}

impl WatchShape {
    pub fn of(call: &Call) -> Result<Self> {
        let table = match call.accepted.shape {
            Shape::Table(version) => Some(Arc::new(TableWatch {
                printer: printer(call),
                options: Options::new(version, call.query.get("includeObject"))?,
                headers_sent: AtomicBool::new(false),
            })),
            _ => None,
        };
        Ok(Self { accepted: call.accepted, table })
    }

    pub fn content_type(&self) -> &'static str {
        self.accepted.encoding.watch_media_type()
    }

    /// Whether events are sent as whole objects in JSON.
    pub fn is_plain(&self) -> bool {
        self.accepted.shape == Shape::Whole && self.accepted.encoding == Encoding::Json
    }

    /// Events as they are sent.
    pub fn encode(&self, call: &Call, events: &[WatchEvent]) -> Result<Bytes> {
        if self.is_plain() {
            return Ok(WatchEvent::to_lines(events));
        }
        let mut out = BytesMut::new();
        for event in events {
            let object = parse(event.object())?;
            let object = match event {
                WatchEvent::Error { .. } => object,
                _ => self.shaped(call, object),
            };
            out.put(self.frame(event.kind(), &object)?);
        }
        Ok(out.freeze())
    }

    /// The error that ends a watch.
    pub fn error(&self, status: &Status) -> Bytes {
        self.frame("ERROR", &status.to_json()).unwrap_or_default()
    }

    fn shaped(&self, call: &Call, object: Value) -> Value {
        match (self.accepted.shape, &self.table) {
            (Shape::Metadata(version) | Shape::MetadataList(version), _) => table::metadata(&object, version),
            (_, Some(table)) => {
                let first = !table.headers_sent.swap(true, Ordering::Relaxed);
                table.printer.object_table(&object, first, &table.options, call.parts.env.now())
            }
            _ => object,
        }
    }

    fn frame(&self, kind: &str, object: &Value) -> Result<Bytes> {
        if self.accepted.encoding == Encoding::Protobuf {
            return Ok(protobuf_frame(kind, &protobuf(object)?));
        }
        Ok(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into())
    }
}

fn protobuf(value: &Value) -> Result<Vec<u8>> {
    capstan_builtin::protobuf::encode(value)
        .ok_or_else(|| Status::not_acceptable("this answer has no protobuf form; accept application/json"))
}

/// One event of a protobuf watch: a length, then a `WatchEvent` of type (field 1) and raw object (field 2).
fn protobuf_frame(kind: &str, object: &[u8]) -> Bytes {
    let mut raw = Vec::with_capacity(object.len() + 8);
    put_field(&mut raw, 1, object);
    let mut event = Vec::with_capacity(raw.len() + kind.len() + 16);
    put_field(&mut event, 1, kind.as_bytes());
    put_field(&mut event, 2, &raw);
    let mut frame = BytesMut::with_capacity(event.len() + 4);
    frame.put_u32(u32::try_from(event.len()).unwrap_or(u32::MAX));
    frame.put_slice(&event);
    frame.freeze()
}

/// A length-delimited protobuf field.
fn put_field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap_or(0));
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indented_json_keeps_its_order_and_its_texts() {
        let text = br#"{"b":[],"a":{"x":"{\\\",:[","y":[1,{}]}}"#;
        let expected = "{\n  \"b\": [],\n  \"a\": {\n    \"x\": \"{\\\\\\\",:[\",\n    \"y\": [\n      1,\n      {}\n    ]\n  }\n}";
        assert_eq!(String::from_utf8(indented(text)).unwrap(), expected);
    }

    #[test]
    fn items_lose_their_type_and_nothing_else() {
        let table = [
            (r#"{"apiVersion":"v1","kind":"Secret","metadata":{}}"#, r#"{"metadata":{}}"#),
            (
                r#"{"apiVersion":"v1","data":{"kind":"a","b":"\"kind\":,}\\"},"kind":"ConfigMap","metadata":{"name":"x"}}"#,
                r#"{"data":{"kind":"a","b":"\"kind\":,}\\"},"metadata":{"name":"x"}}"#,
            ),
            (
                r#"{"metadata":{"kind":1},"spec":[{"kind":"a"},2]}"#,
                r#"{"metadata":{"kind":1},"spec":[{"kind":"a"},2]}"#,
            ),
            ("{}", "{}"),
        ];
        for (typed, untyped) in table {
            let mut parts = vec![Bytes::from_static(b"{")];
            without_type(Bytes::from_static(typed.as_bytes()), &mut parts);
            assert_eq!(String::from_utf8(parts.concat()).unwrap(), untyped);
        }
    }
}
