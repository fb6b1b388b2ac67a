//! Typed JSON: how Go decodes an object of a built-in kind, and how it encodes it again.
//!
//! Unknown and duplicate fields are reported and dropped, values of the wrong type rejected with Go's messages,
//! absent fields without `omitempty` added, empty ones with it removed, quantities and times canonicalized. Empty
//! lists and maps count as absent, as protobuf storage does not distinguish them.

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
    /// As Kubernetes would serialize it.
    pub object: Value,
    /// Errors of strict field validation: `unknown field "spec.foo"`, `duplicate field "data.a"`.
    pub strict: Texts,
}

/// The message of kube-apiserver's 400 for a malformed object.
pub fn bad_request(why: impl std::fmt::Display, version: &str, kind: &str) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
}

impl Decoded {
    /// The error of strict field validation, if any.
    pub fn strict_error(&self) -> Option<String> {
        (!self.strict.is_empty()).then(|| format!("strict decoding error: {}", self.strict.join(", ")))
    }
}

/// Which error texts to use for type mismatches.
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

/// Decodes a JSON value; duplicate fields are already lost.
pub fn from_value(id: TypeId, value: &Value) -> Result<Decoded, Undecodable> {
    run(id, Words::Decoder, |seed| seed.deserialize(value))
}

/// Replaces an object by what Kubernetes would store, and returns the errors of strict field validation. Other kinds
/// are unchanged; the error for a malformed object is Go's.
pub fn settle(group: &str, version: &str, kind: &str, object: &mut Value) -> Result<Texts, Undecodable> {
    settle_with(Words::Decoder, group, version, kind, object)
}

/// [`settle`] with the given error texts.
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

/// Number of bytes in a base64 text.
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
