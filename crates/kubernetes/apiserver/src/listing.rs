//! Lists that are not sent as they are stored: encoded item by item, so that only one is decoded at a time.
//!
//! What stands before and after an item does not depend on it. Two documents with one item each, of one digit, differ
//! in that digit only: before it and after it stands what is around every item.

use ::http::StatusCode;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::negotiation::{self, Accepted, Encoding};
use crate::reply::{self, Reply, ReplyBody};
use crate::respond;
use crate::status::Result;

/// Encoded items are collected in buffers of this size.
const BUFFER: usize = 128 * 1024;

/// A list: everything but its items, and the field that has them.
pub(crate) struct Listing {
    pub head: Value,
    pub field: &'static str,
}

impl Listing {
    /// Encodes the list as a client accepts it. `decode` turns what is stored into the item that is shown.
    pub fn encode(
        mut self,
        accepted: Accepted,
        items: &[Bytes],
        decode: impl Fn(&Bytes) -> Result<Value>,
    ) -> Result<Reply> {
        if items.is_empty() {
            self.head[self.field] = json!([]);
            return respond::encode_as(accepted, StatusCode::OK, &self.head);
        }
        let (content_type, parts) = match accepted.encoding {
            Encoding::Protobuf => match self.protobuf(items, &decode)? {
                Some(parts) => (negotiation::PROTOBUF, parts),
                // Clients that prefer protobuf read the content type.
                None => (negotiation::JSON, self.text(items, decode, &Text::COMPACT)?),
            },
            Encoding::Yaml => ("application/yaml", self.text(items, decode, &Text::YAML)?),
            Encoding::Json if accepted.pretty => {
                (negotiation::JSON, self.text(items, decode, &Text::INDENTED)?)
            }
            Encoding::Json => (negotiation::JSON, self.text(items, decode, &Text::COMPACT)?),
        };
        Ok(reply::with_type(StatusCode::OK, content_type, ReplyBody::pieces(parts)))
    }

    /// A document of the same type with one item and nothing else.
    fn of_one(&self, item: Value) -> Value {
        json!({"apiVersion": self.head["apiVersion"], "kind": self.head["kind"], self.field: [item]})
    }

    fn text(
        &self,
        items: &[Bytes],
        decode: impl Fn(&Bytes) -> Result<Value>,
        format: &Text,
    ) -> Result<Vec<Bytes>> {
        let mut whole = self.head.clone();
        let around = Around::of(|digit| {
            whole[self.field] = json!([digit]);
            (format.write)(&whole)
        });
        let around_one = Around::of(|digit| (format.write)(&self.of_one(digit.into())));
        let mut out = Parts::default();
        out.push(&around.before);
        for (n, item) in items.iter().enumerate() {
            if n > 0 {
                out.push(format.separator);
            }
            let document = (format.write)(&self.of_one(decode(item)?));
            out.push(&document[around_one.before.len()..document.len() - around_one.after.len()]);
        }
        out.push(&around.after);
        Ok(out.finish())
    }

    /// `None` if the list or an item has no protobuf form.
    fn protobuf(
        &self,
        items: &[Bytes],
        decode: &impl Fn(&Bytes) -> Result<Value>,
    ) -> Result<Option<Vec<Bytes>>> {
        use capstan_builtin::protobuf::{ENVELOPE_END, encode_bare, envelope_start};
        let mut empty = self.of_one(Value::Null);
        empty[self.field] = json!([]);
        // The items are the last field.
        let (Some(head), Some(empty)) = (encode_bare(&self.head), encode_bare(&empty)) else {
            return Ok(None);
        };
        let mut out = Parts::default();
        out.push(&head);
        for item in items {
            let Some(document) = encode_bare(&self.of_one(decode(item)?)) else { return Ok(None) };
            out.push(&document[empty.len()..]);
        }
        let raw = out.finish();
        let text = |field: &str| self.head[field].as_str().unwrap_or_default();
        let length = raw.iter().map(Bytes::len).sum();
        let before = envelope_start(text("apiVersion"), text("kind"), length);
        Ok(Some([vec![before.into()], raw, vec![Bytes::from_static(&ENVELOPE_END)]].concat()))
    }
}

/// A text format.
struct Text {
    write: fn(&Value) -> Vec<u8>,
    /// Between two items.
    separator: &'static [u8],
}

impl Text {
    const COMPACT: Self = Self { write: |value| reply::line(value).into(), separator: b"," };
    const INDENTED: Self = Self {
        write: |value| respond::indented(&capstan_builtin::text::to_vec(value)),
        separator: b",\n    ",
    };
    const YAML: Self = Self { write: |value| crate::yaml::to_string(value).into_bytes(), separator: b"\n- " };
}

/// What stands before and after the only item of a document.
struct Around {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Around {
    fn of(mut document: impl FnMut(u8) -> Vec<u8>) -> Self {
        let (mut before, other) = (document(0), document(1));
        let digit = before.iter().zip(&other).take_while(|(a, b)| a == b).count();
        let after = before.split_off((digit + 1).min(before.len()));
        before.truncate(digit);
        Self { before, after }
    }
}

/// Bytes in buffers that are sent one by one.
#[derive(Default)]
struct Parts {
    full: Vec<Bytes>,
    current: Vec<u8>,
}

impl Parts {
    fn push(&mut self, bytes: &[u8]) {
        self.current.extend_from_slice(bytes);
        if self.current.len() >= BUFFER {
            self.full.push(std::mem::take(&mut self.current).into());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        if !self.current.is_empty() {
            self.full.push(self.current.into());
        }
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiation::Shape;

    /// Items with what could be taken for the borders of an item, and without any field.
    fn items() -> Vec<Value> {
        vec![
            json!({"metadata": {"name": "a"}, "data": {"0": "1", "1": "0", "k": "- x\n- y\n", "e": "],}"}}),
            json!({}),
            json!({"metadata": {"name": "b", "labels": {}, "finalizers": []}, "data": {"z": "", "a": "items"}}),
        ]
    }

    #[test]
    fn a_list_of_items_reads_as_the_whole_document_does() {
        let heads = [
            (
                "items",
                json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "10"}}),
            ),
            ("items", json!({"apiVersion": "ex.io/v1", "kind": "WidgetList", "metadata": {"continue": ""}})),
            (
                "items",
                json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}}),
            ),
            (
                "rows",
                json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {},
                "columnDefinitions": [{"name": "0", "description": "rows: [0]"}]}),
            ),
        ];
        for (field, head) in heads {
            for (encoding, pretty) in [
                (Encoding::Json, false),
                (Encoding::Json, true),
                (Encoding::Yaml, false),
                (Encoding::Protobuf, false),
            ] {
                for count in 0..4 {
                    let items = &items()[..count.min(3)];
                    let mut whole = head.clone();
                    whole[field] = items.to_vec().into();
                    let accepted = Accepted { encoding, shape: Shape::Whole, pretty };
                    let expected = respond::encode_as(accepted, StatusCode::OK, &whole).expect("a response");
                    let stored: Vec<Bytes> = items.iter().map(|item| item.to_string().into()).collect();
                    let listing = Listing { head: head.clone(), field };
                    let decode = |item: &Bytes| Ok(serde_json::from_slice(item).expect("JSON"));
                    let got = listing.encode(accepted, &stored, decode).expect("a response");
                    let what = format!("{} {encoding:?} {pretty} {count}", head["kind"]);
                    assert_eq!(got.headers(), expected.headers(), "{what}");
                    let text = |reply: &Reply| {
                        String::from_utf8_lossy(&reply.body().bytes().expect("whole")).into_owned()
                    };
                    assert_eq!(text(&got), text(&expected), "{what}");
                }
            }
        }
    }
}
