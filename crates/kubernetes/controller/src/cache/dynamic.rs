//! Objects of kinds that no type in this process stands for.

use std::collections::BTreeMap;

use bytes::Bytes;
use capstan_object::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Cached;
use crate::client::Weight;

/// An object of any kind: its metadata, and the rest as received, without `managedFields`, which are half of it
/// and unused here. Kept as text because a parsed tree takes six times the space and is read only with its
/// owner.
#[derive(Debug, Clone)]
pub struct Dynamic {
    metadata: ObjectMeta,
    text: Bytes,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl Dynamic {
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The whole object, without `managedFields`.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        capstan_transport::json::parse(&self.text)
    }

    /// The object read as a type: the fields a contract names and nothing else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }
}

impl Cached for Dynamic {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn decode(bytes: &Bytes) -> Result<Self, serde_json::Error> {
        let head: Head = serde_json::from_slice(bytes)?;
        // A copy of its own: a slice would keep the whole piece of the stream alive.
        let text = without_managed_fields(bytes).unwrap_or_else(|| Bytes::copy_from_slice(bytes));
        Ok(Self { metadata: head.metadata, text })
    }

    fn weight(&self) -> usize {
        Weight::of(&self.metadata) + self.text.len()
    }
}

/// The text without `metadata.managedFields`, if it has any.
fn without_managed_fields(text: &[u8]) -> Option<Bytes> {
    let mut object: BTreeMap<&str, &RawValue> = serde_json::from_slice(text).ok()?;
    let mut metadata: BTreeMap<&str, &RawValue> = serde_json::from_str(object.get("metadata")?.get()).ok()?;
    metadata.remove("managedFields")?;
    let metadata = serde_json::value::to_raw_value(&metadata).ok()?;
    object.insert("metadata", &metadata);
    serde_json::to_vec(&object).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_kept_but_for_who_owns_its_fields() {
        let mut object = json!({
            "kind": "Any",
            "metadata": {"name": "a", "labels": {"x": "\u{e9}\n"}, "managedFields": [{"manager": "somebody"}]},
            "spec": {"managedFields": [1], "deep": {"list": [1.5, null, "text"]}},
        });
        let kept = |object: &Value| {
            let dynamic = Dynamic::decode(&Bytes::from(object.to_string())).expect("an object");
            assert_eq!(dynamic.metadata().name, "a");
            dynamic.value().expect("a value")
        };
        let whole = kept(&object);
        object["metadata"].as_object_mut().expect("metadata").remove("managedFields");
        assert_eq!(whole, object);
        assert_eq!(kept(&object), object);
    }
}
