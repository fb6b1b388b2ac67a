//! Secrets and ConfigMaps: the fields that the controllers use.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::core::{CLUSTER_SECRET_TYPE, label};
use capstan_object::{ObjectMeta, OwnerReference, object};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

object!(Secret, "" / "v1", "Secret", "secrets", Namespaced);
object!(ConfigMap, "" / "v1", "ConfigMap", "configmaps", Namespaced);
object!(SecretOutline, "" / "v1", "Secret", "secrets", Namespaced);

/// Why a value of a Secret cannot be used. Never contains the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The Secret lacks a key.
    #[error("secret {secret} has no key {key:?}")]
    KeyMissing { secret: String, key: String },
    /// The value is not text.
    #[error("secret {secret} key {key:?} is not UTF-8 text")]
    NotText { secret: String, key: String },
}

/// `Debug` does not show the content.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Secret {
    pub metadata: ObjectMeta,
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "write_base64",
        deserialize_with = "read_base64"
    )]
    pub data: BTreeMap<String, Vec<u8>>,
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret")
            .field("metadata", &self.metadata)
            .field("keys", &self.data.keys())
            .field("type", &self.kind)
            .finish()
    }
}

impl Secret {
    /// A value as text; fails if it is missing or not UTF-8.
    pub fn text(&self, key: &str) -> Result<String, SecretError> {
        let secret = || self.metadata.name.clone();
        let bytes = self
            .data
            .get(key)
            .ok_or_else(|| SecretError::KeyMissing { secret: secret(), key: key.to_owned() })?;
        String::from_utf8(bytes.clone())
            .map_err(|_| SecretError::NotText { secret: secret(), key: key.to_owned() })
    }
}

/// A cluster Secret as controllers create it, with label, type and owner.
pub fn cluster_secret<'a>(
    namespace: &str,
    name: &str,
    cluster: &str,
    owner: OwnerReference,
    data: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Secret {
    let mut metadata = ObjectMeta::named(namespace, name);
    metadata.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.to_owned());
    metadata.owner_references.push(owner);
    Secret {
        metadata,
        data: data.into_iter().map(|(key, value)| (key.to_owned(), value.to_vec())).collect(),
        kind: CLUSTER_SECRET_TYPE.to_owned(),
    }
}

fn write_base64<S: Serializer>(data: &BTreeMap<String, Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(data.iter().map(|(key, value)| (key, STANDARD.encode(value))))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<u8>>, D::Error> {
    let encoded = Option::<BTreeMap<String, Option<String>>>::deserialize(deserializer)?.unwrap_or_default();
    let decode = |(key, value): (String, Option<String>)| {
        let bytes = STANDARD
            .decode(value.unwrap_or_default())
            .map_err(|_| serde::de::Error::custom(format_args!("the value of {key} is not base64")))?;
        Ok((key, bytes))
    };
    encoded.into_iter().map(decode).collect()
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    pub metadata: ObjectMeta,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
}

/// A Secret without its content: enough to notice changes, and small enough to cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretOutline {
    pub metadata: ObjectMeta,
    #[serde(rename = "type")]
    pub kind: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_content_of_a_secret() {
        let secret =
            cluster_secret("ns", "a-ca", "a", OwnerReference::default(), [("tls.key", &b"hidden"[..])]);
        let shown = format!("{secret:?}");
        assert!(shown.contains("tls.key") && !shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn content_is_serialized_as_base64() {
        let secret =
            cluster_secret("ns", "a-ca", "a", OwnerReference::default(), [("value", &b"\xff\x00"[..])]);
        let wire = serde_json::to_value(&secret).expect("JSON");
        assert_eq!(wire["data"]["value"], "/wA=");
        assert_eq!(wire["type"], "cluster.x-k8s.io/secret");
        assert_eq!(serde_json::from_value::<Secret>(wire).expect("a secret"), secret);
    }
}
