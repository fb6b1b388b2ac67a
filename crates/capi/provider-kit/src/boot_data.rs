//! Boot data by reference: which version of which Secret a machine boots with.
//!
//! Boot data holds join tokens and keys, so neither a decision nor the journal may contain it. A controller observes a
//! [`BootData`], puts its reference into the order, and reads the data when the call is made. A Secret that changed in
//! between makes the order stale.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::core::Machine;
use capstan_controller::{Code, KindName, Outcome, View, catalogue};
use capstan_object::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum size of boot data: what fits into a Secret.
const MOST_BOOT_DATA: usize = 1 << 20;
/// The key of boot data in its Secret; part of the bootstrap provider contract.
const KEY: &str = "value";
/// Value of the Secret's key `format` for Ignition.
const IGNITION: &[u8] = b"ignition";

/// One version of the boot data in a Secret. Contains none of the data: it may be journaled and logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootDataRef {
    /// Name of the Secret, in the namespace of the object that refers to it.
    pub secret: String,
    pub key: String,
    /// Uid of the Secret.
    pub uid: String,
    pub resource_version: String,
}

/// What a decision may know about boot data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootData {
    pub reference: BootDataRef,
    /// It is for Ignition, which does not support compression; otherwise it is for cloud-init.
    pub ignition: bool,
}

/// Why boot data cannot be used. Never contains the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootDataError {
    /// The Secret is not the version that the order refers to.
    #[error("Secret {0} changed after the order was decided; the machine is ordered again")]
    Stale(Key),
    /// The Secret is missing or has no boot data.
    #[error("{0}")]
    Unreadable(String),
}

impl BootDataError {
    /// The outcome of a call that could not be made: a conflict if the order is stale, else a failure with this code.
    pub fn outcome(&self, code: Code) -> Outcome {
        let code = match self {
            Self::Stale(_) => catalogue::API_CONFLICT,
            Self::Unreadable(_) => code,
        };
        Outcome::failed(code, self.to_string())
    }
}

impl BootData {
    pub async fn observe(secret: &Key, view: &View) -> Result<Self, BootDataError> {
        Ok(boot_data(secret, view).await?.0)
    }

    /// Observes the boot data of a Machine.
    pub async fn of_machine(machine: &Machine, view: &View) -> Result<Self, BootDataError> {
        let secret = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
        Self::observe(&Key::new(machine.metadata.namespace.as_str(), secret), view).await
    }
}

impl BootDataRef {
    /// Reads the data of exactly this version.
    pub async fn read(&self, namespace: &str, view: &View) -> Result<Vec<u8>, BootDataError> {
        let secret = Key::new(namespace, self.secret.as_str());
        let (observed, data) = boot_data(&secret, view).await?;
        self.verified(secret, &observed, data)
    }

    fn verified(&self, secret: Key, observed: &BootData, data: Vec<u8>) -> Result<Vec<u8>, BootDataError> {
        if observed.reference == *self { Ok(data) } else { Err(BootDataError::Stale(secret)) }
    }
}

/// Reads the current boot data in a Secret.
pub async fn boot_data(secret: &Key, view: &View) -> Result<(BootData, Vec<u8>), BootDataError> {
    let wrong = BootDataError::Unreadable;
    let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
    let read = view.client().get_raw(&secrets, secret).await;
    let reply = read.map_err(|error| wrong(format!("Secret {secret} cannot be read: {error}")))?;
    let reply = reply.ok_or_else(|| wrong(format!("there is no Secret {secret}")))?;
    let object: Value = reply.parse().map_err(|_| wrong(format!("Secret {secret} cannot be read")))?;
    parse(secret, &object)
}

fn parse(secret: &Key, object: &Value) -> Result<(BootData, Vec<u8>), BootDataError> {
    let field = |key: &str| STANDARD.decode(object["data"][key].as_str()?).ok();
    let data = field(KEY).filter(|data| data.len() <= MOST_BOOT_DATA).ok_or_else(|| {
        BootDataError::Unreadable(format!("Secret {secret} has no boot data in its key {KEY:?}"))
    })?;
    let meta = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    let reference = BootDataRef {
        secret: secret.name.clone(),
        key: KEY.to_owned(),
        uid: meta("uid"),
        resource_version: meta("resourceVersion"),
    };
    let ignition = field("format").is_some_and(|format| format == IGNITION);
    Ok((BootData { reference, ignition }, data))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(data: Value) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "data": data})
    }

    #[test]
    fn a_reference_has_the_version_and_none_of_the_data() {
        let key = Key::new("ns", "m");
        let data = json!({"value": STANDARD.encode("token"), "format": STANDARD.encode("ignition")});
        let (observed, data) = parse(&key, &secret(data)).expect("boot data");
        assert_eq!((data.as_slice(), observed.ignition), (&b"token"[..], true));
        assert_eq!(
            serde_json::to_value(&observed.reference).expect("JSON"),
            json!({"secret": "m", "key": "value", "uid": "u", "resourceVersion": "7"})
        );
        assert!(!format!("{observed:?}").contains("token"));
    }

    #[test]
    fn a_secret_without_boot_data_is_reported() {
        let key = Key::new("ns", "m");
        for data in [json!({}), json!({"value": "?"}), json!({"other": STANDARD.encode("x")})] {
            let error = parse(&key, &secret(data)).expect_err("no data");
            assert_eq!(error.to_string(), "Secret ns/m has no boot data in its key \"value\"");
        }
    }

    #[test]
    fn boot_data_of_another_version_or_secret_is_not_read() {
        let key = Key::new("ns", "m");
        let data = json!({"value": STANDARD.encode("token")});
        let (observed, _) = parse(&key, &secret(data)).expect("boot data");
        let of = |uid: &str, version: &str| BootDataRef {
            uid: uid.to_owned(),
            resource_version: version.to_owned(),
            ..observed.reference.clone()
        };
        for (reference, same) in [(of("u", "7"), true), (of("u", "6"), false), (of("v", "7"), false)] {
            let read = reference.verified(key.clone(), &observed, b"token".to_vec());
            assert_eq!(read.is_ok(), same, "{reference:?}");
            assert!(same || read == Err(BootDataError::Stale(key.clone())), "{reference:?}");
        }
    }

    #[test]
    fn a_stale_order_is_a_conflict_and_nothing_else_is() {
        let stale = BootDataError::Stale(Key::new("ns", "m")).outcome(catalogue::OBSERVE);
        let unreadable = BootDataError::Unreadable("no".to_owned()).outcome(catalogue::OBSERVE);
        let code = |outcome| match outcome {
            Outcome::Failed(error) => error.code,
            other => panic!("{other:?}"),
        };
        assert_eq!((code(stale), code(unreadable)), (catalogue::API_CONFLICT, catalogue::OBSERVE));
    }
}
