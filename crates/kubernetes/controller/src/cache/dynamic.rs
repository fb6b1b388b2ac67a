//! Objects of kinds that no type in this process stands for.

use bytes::Bytes;
use capstan_object::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Cached;

/// An object of any kind: its metadata, and the rest as it came. Kept as text because a parsed tree takes six
/// times the space and is looked at only when its owner is.
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
    /// The object's metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The whole object.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.text)
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
        Ok(Self { metadata: head.metadata, text: Bytes::copy_from_slice(bytes) })
    }
}
