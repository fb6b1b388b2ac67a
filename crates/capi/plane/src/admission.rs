//! The admission rules in a server of this process.

use std::borrow::Cow;
use std::sync::Arc;

use capstan_apiserver::admission::{
    Admission, AdmissionAttributes, GroupVersionKind, Operation, Representations,
};
use capstan_apiserver::auth::{Attributes, Authorizer, ObjectSource, User, key};
use capstan_apiserver::status::{Result, Status};
use capstan_capi_types::conversion::Converter;
use capstan_controller::KindName;
use capstan_object::{Key, Kind};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::rules::{RelatedObjects, Rules, Subject};

/// In-process admission.
pub(crate) struct InProcess {
    rules: Rules,
    stored: Arc<dyn ObjectSource>,
    authorizer: Arc<dyn Authorizer>,
}

impl InProcess {
    pub(crate) fn new(rules: Rules, stored: Arc<dyn ObjectSource>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { rules, stored, authorizer }
    }

    /// The kind of a request, if there are rules for it and the request writes.
    fn kind_with_rules(&self, attributes: &AdmissionAttributes) -> Option<Kind> {
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        let resource = &attributes.resource;
        self.rules.kind_of(&resource.group, &resource.resource).filter(|_| written)
    }

    async fn default(&self, attributes: &mut AdmissionAttributes, forms: &dyn Representations) -> Result<()> {
        let Some(kind) = self.kind_with_rules(attributes).filter(|_| attributes.subresource.is_empty())
        else {
            return Ok(());
        };
        let Some(mut object) = attributes.object.take() else { return Ok(()) };
        let hub = hub(&kind);
        let prefix = prefix(&object).to_owned();
        let old = old_in_version(attributes, &hub, forms).await?;
        let others = Stored { admission: self, user: &attributes.user, forms };
        let subject = subject(&kind, attributes, &prefix);
        if attributes.kind.version == kind.version {
            let defaulted = self.rules.apply_defaults(subject, &mut object, old.as_deref(), &others).await;
            attributes.object = Some(object);
            return defaulted.map(|_| ());
        }
        let mut in_hub = converted(object.clone(), &hub, forms).await?;
        let added = self.rules.apply_defaults(subject, &mut in_hub, old.as_deref(), &others).await?;
        // Without defaults to add, no conversion back is needed.
        attributes.object =
            Some(if added { converted(in_hub, &attributes.kind, forms).await? } else { object });
        Ok(())
    }

    async fn check(&self, attributes: &AdmissionAttributes, forms: &dyn Representations) -> Result<()> {
        if attributes.operation == Operation::Delete && attributes.subresource.is_empty() {
            return self.check_deletion(attributes, forms).await;
        }
        let (Some(kind), Some(object)) = (self.kind_with_rules(attributes), &attributes.object) else {
            return Ok(());
        };
        let subject = subject(&kind, attributes, prefix(object));
        let others = Stored { admission: self, user: &attributes.user, forms };
        match attributes.subresource.as_str() {
            "" => {
                let hub = hub(&kind);
                let object = if attributes.kind.version == kind.version {
                    Cow::Borrowed(object)
                } else {
                    Cow::Owned(converted(object.clone(), &hub, forms).await?)
                };
                let old = old_in_version(attributes, &hub, forms).await?;
                let warnings = self.rules.validate(subject, &object, old.as_deref(), &others).await?;
                for warning in warnings {
                    attributes.warnings.add(warning);
                }
                Ok(())
            }
            "scale" => {
                let result = self.rules.validate_scale(subject, object, &others).await;
                result.map_err(|problem| attributes.forbidden(problem))
            }
            _ => Ok(()),
        }
    }

    async fn check_deletion(
        &self,
        attributes: &AdmissionAttributes,
        forms: &dyn Representations,
    ) -> Result<()> {
        let resource = &attributes.resource;
        let kind = self.rules.kind_of(&resource.group, &resource.resource);
        let Some(kind) = kind.filter(|kind| self.rules.validates_deletion(kind)) else { return Ok(()) };
        let others = Stored { admission: self, user: &attributes.user, forms };
        self.rules.validate_deletion(subject(&kind, attributes, ""), &others).await
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
        Box::pin(self.check(attributes, forms))
    }
}

/// The subject of a request; `prefix` replaces a name that is yet to be generated.
fn subject<'a>(kind: &Kind, attributes: &'a AdmissionAttributes, prefix: &'a str) -> Subject<'a> {
    let name = if attributes.name.is_empty() { prefix } else { &attributes.name };
    Subject { group: kind.group, kind: kind.kind, namespace: &attributes.namespace, name }
}

fn prefix(object: &Value) -> &str {
    object["metadata"]["generateName"].as_str().unwrap_or_default()
}

/// The version of the rules.
fn hub(kind: &Kind) -> GroupVersionKind {
    GroupVersionKind::new(kind.group, kind.version, kind.kind)
}

/// The stored object in the version of the rules; not copied if it is in that version.
async fn old_in_version(
    attributes: &AdmissionAttributes,
    hub: &GroupVersionKind,
    forms: &dyn Representations,
) -> Result<Option<Arc<Value>>> {
    match &attributes.old_object {
        Some(old) if attributes.kind.version != hub.version => {
            Ok(Some(Arc::new(converted((**old).clone(), hub, forms).await?)))
        }
        old => Ok(old.clone()),
    }
}

async fn converted(object: Value, kind: &GroupVersionKind, forms: &dyn Representations) -> Result<Value> {
    if GroupVersionKind::of(&object) == *kind {
        return Ok(object);
    }
    forms.convert(object, kind).await
}

fn group_version_kind(kind: &KindName) -> GroupVersionKind {
    GroupVersionKind::new(&*kind.group, &*kind.version, &*kind.kind)
}

/// Reads other objects directly from the store.
struct Stored<'r> {
    admission: &'r InProcess,
    user: &'r Arc<User>,
    forms: &'r dyn Representations,
}

impl RelatedObjects for Stored<'_> {
    fn get<'a>(&'a self, kind: &'a Kind, of: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        let bucket = format!("{}/{}", kind.group, kind.plural);
        let found = self.admission.stored.get(&bucket, &key(&of.namespace, &of.name));
        let hub = found.map(|found| match kind.group {
            "" => Ok(Arc::unwrap_or_clone(found)),
            _ => Converter::default().convert(Arc::unwrap_or_clone(found), kind.version),
        });
        Box::pin(std::future::ready(hub.transpose().map_err(|error| Status::internal(error.to_string()))))
    }

    fn find<'a>(&'a self, kind: &'a KindName, key: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        Box::pin(async move {
            let found =
                self.forms.objects(&group_version_kind(kind), &key.namespace, Some(&key.name)).await?;
            Ok(found.into_iter().next())
        })
    }

    fn list<'a>(
        &'a self,
        kind: &'a KindName,
        namespace: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        Box::pin(async move {
            let mut found = self.forms.objects(&group_version_kind(kind), namespace, None).await?;
            let has = |object: &Value, name: &str, value: &str| object["metadata"]["labels"][name] == value;
            found.retain(|object| labels.iter().all(|(name, value)| has(object, name, value)));
            Ok(found)
        })
    }

    fn may_get<'a>(&'a self, kind: &'a Kind, of: &'a Key) -> BoxFuture<'a, Result<bool, Status>> {
        let decision = self.admission.authorizer.authorize(&Attributes {
            user: self.user.clone(),
            verb: "get".into(),
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            resource: kind.plural.to_owned(),
            namespace: of.namespace.clone(),
            name: of.name.clone(),
            ..Attributes::default()
        });
        Box::pin(std::future::ready(Ok(decision.allowed())))
    }
}
