//! The rules as part of a server of this process.

use std::sync::Arc;

use capstan_apiserver::admission::{
    Admission, AdmissionAttributes, GroupVersionKind, Operation, Representations,
};
use capstan_apiserver::auth::{ObjectSource, key};
use capstan_apiserver::status::{Result, Status};
use capstan_capi_types::conversion::Converter;
use capstan_object::{Key, Kind};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::rules::{Others, Rules, Subject};

/// Judges what clients of a server send.
pub(crate) struct InProcess {
    rules: Rules,
    others: Stored,
}

/// The object of a request and the stored one, in the version of the rules.
struct Both {
    object: Value,
    old: Option<Arc<Value>>,
}

impl InProcess {
    pub(crate) fn new(rules: Rules, stored: Arc<dyn ObjectSource>) -> Self {
        Self { rules, others: Stored(stored) }
    }

    /// The kind a request is about, if there are rules for it and something is written.
    fn judged(&self, attributes: &AdmissionAttributes) -> Option<Kind> {
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        let resource = &attributes.resource;
        self.rules.kind_of(&resource.group, &resource.resource).filter(|_| written)
    }

    async fn default(&self, attributes: &mut AdmissionAttributes, forms: &dyn Representations) -> Result<()> {
        let Some(kind) = self.judged(attributes).filter(|_| attributes.subresource.is_empty()) else {
            return Ok(());
        };
        let Some(both) = in_version(&kind, attributes, forms).await? else { return Ok(()) };
        let mut defaulted = both.object.clone();
        self.rules.fill_in(subject(&kind, attributes), &mut defaulted, both.old.as_deref())?;
        // What nothing was added to need not make the way back.
        if defaulted != both.object {
            attributes.object = Some(converted(defaulted, &attributes.kind, forms).await?);
        }
        Ok(())
    }

    async fn judge(&self, attributes: &AdmissionAttributes, forms: &dyn Representations) -> Result<()> {
        let Some(kind) = self.judged(attributes) else { return Ok(()) };
        let subject = subject(&kind, attributes);
        match attributes.subresource.as_str() {
            "" => {
                let Some(both) = in_version(&kind, attributes, forms).await? else { return Ok(()) };
                self.rules.validate(subject, &both.object, both.old.as_deref(), &self.others).await
            }
            "scale" => {
                let scale = attributes.object.as_ref().unwrap_or(&Value::Null);
                let verdict = self.rules.validate_scale(subject, scale, &self.others).await;
                verdict.map_err(|problem| attributes.forbidden(problem))
            }
            _ => Ok(()),
        }
    }
}

impl Admission for InProcess {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        forms: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.default(attributes, forms))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        forms: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.judge(attributes, forms))
    }
}

fn subject<'a>(kind: &Kind, attributes: &'a AdmissionAttributes) -> Subject<'a> {
    let prefix = attributes.object.as_ref().and_then(|object| object["metadata"]["generateName"].as_str());
    let name = match attributes.name.as_str() {
        "" => prefix.unwrap_or_default(),
        name => name,
    };
    Subject { group: kind.group, kind: kind.kind, namespace: &attributes.namespace, name }
}

/// New and old object in the version of the rules.
async fn in_version(
    kind: &Kind,
    attributes: &AdmissionAttributes,
    forms: &dyn Representations,
) -> Result<Option<Both>> {
    let Some(object) = attributes.object.clone() else { return Ok(None) };
    let old = attributes.old_object.clone();
    if attributes.kind.version == kind.version {
        return Ok(Some(Both { object, old }));
    }
    let hub = GroupVersionKind::new(kind.group, kind.version, kind.kind);
    let old = match old {
        Some(old) => Some(Arc::new(converted((*old).clone(), &hub, forms).await?)),
        None => None,
    };
    Ok(Some(Both { object: converted(object, &hub, forms).await?, old }))
}

async fn converted(object: Value, kind: &GroupVersionKind, forms: &dyn Representations) -> Result<Value> {
    if GroupVersionKind::of(&object) == *kind {
        return Ok(object);
    }
    forms.convert(object, kind).await
}

/// Other objects, straight from the store.
struct Stored(Arc<dyn ObjectSource>);

impl Others for Stored {
    fn get<'a>(&'a self, kind: &'a Kind, of: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        let bucket = format!("{}/{}", kind.group, kind.plural);
        let found = self.0.get(&bucket, &key(&of.namespace, &of.name));
        let hub = found.map(|found| Converter::default().convert((*found).clone(), kind.version));
        Box::pin(std::future::ready(hub.transpose().map_err(|error| Status::internal(error.to_string()))))
    }
}
