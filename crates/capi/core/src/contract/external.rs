//! Provider objects, whose kinds are known only at run time.

use capstan_capi_types::core::ContractVersionedObjectReference;
use capstan_controller::{KindName, ObjectRef, ObserveError, View};
use capstan_object::{Condition, Conditions, Key, ObjectMeta};
use serde_json::Value;

use super::definition::{ContractVersion, Definition, definition_name, kind_name, served};
use super::field_error::FieldError;
use crate::conditions;

/// An object of a provider and the contract it follows.
#[derive(Debug, Clone)]
pub struct External {
    /// In the API version that follows the contract.
    pub kind: KindName,
    pub contract: ContractVersion,
    pub metadata: ObjectMeta,
    value: Value,
}

/// The result of following a reference.
#[derive(Debug, Clone, Default)]
pub enum Lookup {
    /// The reference is empty.
    #[default]
    NotReferenced,
    Object(Box<External>),
    /// There is no such object, or no such kind.
    Missing,
    /// It cannot be read, or its kind follows no contract.
    Unusable(String),
}

impl Lookup {
    /// The object, if it is there.
    pub fn object(&self) -> Option<&External> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

impl External {
    pub fn new(kind: KindName, contract: ContractVersion, value: Value) -> Self {
        let metadata = serde_json::from_value(value["metadata"].clone()).unwrap_or_default();
        Self { kind, contract, metadata, value }
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The object with its API version and kind.
    pub fn typed_value(&self) -> Value {
        let mut value = self.value.clone();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("apiVersion".to_owned(), self.kind.api_version().into());
            fields.insert("kind".to_owned(), self.kind.kind.as_ref().into());
        }
        value
    }

    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(self.kind.clone(), self.metadata.key())
    }

    /// The value at a path; `None` if any step of it is absent or null.
    pub(super) fn at(&self, path: &'static str) -> Result<Option<&Value>, FieldError> {
        let mut value = &self.value;
        for step in path.split('.') {
            match value {
                Value::Object(fields) => match fields.get(step) {
                    Some(next) => value = next,
                    None => return Ok(None),
                },
                Value::Null => return Ok(None),
                _ => return Err(FieldError::new(&self.kind.kind, path, "an object")),
            }
        }
        Ok(Some(value).filter(|value| !value.is_null()))
    }

    /// Its conditions, in the format of either contract.
    pub fn conditions(&self) -> Result<Vec<Condition>, String> {
        conditions::of_external(&self.value, &self.kind.kind)
    }

    pub fn condition(&self, kind: &str) -> Result<Option<Condition>, String> {
        Ok(self.conditions()?.condition(kind).cloned())
    }

    /// Reason and message of a terminal failure (`failureReason`, `failureMessage`), for the status of the object that
    /// refers to this one.
    pub fn failure(&self) -> (Option<String>, Option<String>) {
        let text = |name: &str| self.value["status"][name].as_str().filter(|text| !text.is_empty());
        let message = text("failureMessage").map(|message| {
            format!(
                "Failure detected from referenced resource {}, Kind={} with name {:?}: {message}",
                self.kind.api_version(),
                self.kind.kind,
                self.metadata.name
            )
        });
        (text("failureReason").map(str::to_owned), message)
    }
}

/// Sets the API version of a kind that follows the contract; `None` if no version does.
pub fn contract_version(view: &View, kind: KindName) -> Result<Option<KindName>, ObserveError> {
    let name = definition_name(&kind.group, &kind.kind);
    let definition = view.get::<Definition>(&Key::new("", name))?;
    let served = definition.and_then(|definition| served(&definition.metadata.labels));
    Ok(served.map(|(_, version)| KindName { version: version.into(), ..kind }))
}

/// Reads the object that a reference names. Its kind is watched from then on, and changes trigger its owners.
pub async fn look_up(
    view: &View,
    reference: &ContractVersionedObjectReference,
    namespace: &str,
) -> Result<Lookup, ObserveError> {
    if reference.kind.is_empty() {
        return Ok(Lookup::NotReferenced);
    }
    let name = definition_name(&reference.api_group, &reference.kind);
    let Some(definition) = view.get::<Definition>(&Key::new("", name.as_str()))? else {
        return Ok(Lookup::Missing);
    };
    let Some((contract, version)) = served(&definition.metadata.labels) else {
        return Ok(Lookup::Unusable(format!(
            "{name} has no label {} or {} that names a version",
            ContractVersion::V1Beta2.label(),
            ContractVersion::V1Beta1.label()
        )));
    };
    let kind = kind_name(&reference.api_group, &version, &reference.kind);
    let key = Key::new(namespace, reference.name.as_str());
    let Some(object) = view.external(&kind, &key).await? else {
        return Ok(Lookup::Missing);
    };
    Ok(match object.value() {
        Ok(value) => {
            let metadata = object.metadata().clone();
            Lookup::Object(Box::new(External { kind, contract, metadata, value }))
        }
        Err(error) => Lookup::Unusable(format!("{} {key} cannot be read: {error}", reference.kind)),
    })
}
