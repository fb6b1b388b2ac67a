//! Typed JSON: what Go's decoder makes of an object of a built-in kind, and what its encoder writes back.
//!
//! Unknown and duplicate fields are reported and dropped, values of the wrong type refused in Go's words,
//! absent fields without `omitempty` added, empty ones with it removed, quantities and times written
//! canonically. Empty lists and maps are as good as absent: storage in protobuf makes no difference.

mod base64_text;
mod visit;

use capstan_schema::bounded::Texts;
use capstan_schema::memory::{TooLarge, Undecodable};
use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use crate::table::{Expr, TypeId, table};
use visit::{Context, Seed};

/// A decoded object.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// As Kubernetes would write it.
    pub object: Value,
    /// What strict field validation objects to: `unknown field "spec.foo"`, `duplicate field "data.a"`.
    pub strict: Texts,
}

/// The message of the 400 that kube-apiserver answers to a malformed object.
pub fn bad_request(why: impl std::fmt::Display, version: &str, kind: &str) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
}

impl Decoded {
    /// The text of the error that strict field validation answers, if it objects to anything.
    pub fn strict_error(&self) -> Option<String> {
        (!self.strict.is_empty()).then(|| format!("strict decoding error: {}", self.strict.join(", ")))
    }
}

/// Whose words say that a value does not fit its type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Words {
    /// Go's JSON decoder: bodies, JSON and merge patches.
    #[default]
    Decoder,
    /// Go's converter from maps: strategic merge patches.
    Converter,
}

/// Decodes a JSON text.
pub fn from_slice(id: TypeId, text: &[u8]) -> Result<Decoded, Undecodable> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    run(id, Words::Decoder, |seed| {
        let out = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(out)
    })
}

/// Decodes a JSON value; its duplicate fields are already lost.
pub fn from_value(id: TypeId, value: &Value) -> Result<Decoded, Undecodable> {
    run(id, Words::Decoder, |seed| seed.deserialize(value))
}

/// Puts in an object's place what Kubernetes would store of it, and says what a strict decoder objects
/// to. Kinds that are not built in are left alone; a malformed object's error is Go's text.
pub fn settle(group: &str, version: &str, kind: &str, object: &mut Value) -> Result<Texts, Undecodable> {
    settle_with(Words::Decoder, group, version, kind, object)
}

/// [`settle`], with errors in the given words.
pub fn settle_with(
    words: Words,
    group: &str,
    version: &str,
    kind: &str,
    object: &mut Value,
) -> Result<Texts, Undecodable> {
    let Some(id) = table().kind(group, version, kind) else { return Ok(Texts::default()) };
    let decoded = run(id, words, |seed| seed.deserialize(&*object))?;
    *object = decoded.object;
    Ok(decoded.strict)
}

/// How many bytes a base64 text stands for.
pub(crate) fn base64_len(text: &str) -> usize {
    let padding = text.bytes().rev().take(2).filter(|b| *b == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn run(
    id: TypeId,
    words: Words,
    body: impl FnOnce(Seed<'_, '_>) -> Result<Option<Value>, serde_json::Error>,
) -> Result<Decoded, Undecodable> {
    let mut context = Context::new(words);
    let expr = Expr::Named(id);
    let outcome = body(Seed { table: table(), expr: &expr, context: &mut context });
    if context.budget.is_exceeded() {
        return Err(Undecodable::TooLarge(TooLarge));
    }
    match (outcome, context.error.take()) {
        (_, Some(message)) => Err(Undecodable::Malformed(message)),
        (Err(error), None) => Err(Undecodable::Malformed(error.to_string())),
        (Ok(object), None) => {
            let object = object.unwrap_or_else(|| Value::Object(Map::new()));
            Ok(Decoded { object, strict: context.strict })
        }
    }
}

#[cfg(test)]
mod tests;
