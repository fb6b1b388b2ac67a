//! The object of a request in the version that a webhook or a policy needs.

use std::borrow::Cow;
use std::sync::Arc;

use capstan_schema::selector::LabelSelector;
use serde_json::Value;

use crate::admission::{AdmissionAttributes, GroupVersionKind, Representations};
use crate::status::{Result, Status};

/// New and old object in one version.
pub(super) struct VersionedObjects<'a> {
    pub(super) kind: GroupVersionKind,
    object: Option<Cow<'a, Value>>,
    old_object: Option<Arc<Value>>,
    /// The object in the version of the request, if this is another version of it.
    original: Option<Cow<'a, Value>>,
}

impl<'a> VersionedObjects<'a> {
    /// In the version of the request.
    pub(super) fn of_request(attributes: &'a AdmissionAttributes) -> Self {
        Self {
            kind: attributes.kind.clone(),
            object: attributes.object.as_ref().map(Cow::Borrowed),
            old_object: attributes.old_object.clone(),
            original: None,
        }
    }

    /// In the version of the request, moved out of the attributes until [`VersionedObjects::give_back`].
    pub(super) fn taken_from(attributes: &mut AdmissionAttributes) -> VersionedObjects<'static> {
        VersionedObjects {
            kind: attributes.kind.clone(),
            object: attributes.object.take().map(Cow::Owned),
            old_object: attributes.old_object.clone(),
            original: None,
        }
    }

    pub(super) fn object(&self) -> Option<&Value> {
        self.object.as_deref()
    }

    pub(super) fn old_object(&self) -> Option<&Value> {
        self.old_object.as_deref()
    }

    /// Replaces the new object.
    pub(super) fn replace(&mut self, object: Value) {
        self.object = Some(Cow::Owned(object));
        self.original = None;
    }

    /// Whether the labels of the new or of the old object match the selector.
    pub(super) fn selected(&self, selector: &Result<LabelSelector, String>) -> Result<bool> {
        let selector = selector.as_ref().map_err(Status::internal)?;
        let selects = |object: &Value| selector.matches_labels(object["metadata"]["labels"].as_object());
        Ok(selector.is_empty()
            || self.object().is_some_and(selects)
            || self.old_object().is_some_and(selects))
    }

    /// Converts the objects to another version.
    pub(super) async fn converted(
        &self,
        kind: &GroupVersionKind,
        attributes: &AdmissionAttributes,
        representations: &dyn Representations,
    ) -> Result<VersionedObjects<'static>> {
        let mut other =
            VersionedObjects { kind: kind.clone(), object: None, old_object: None, original: None };
        if let Some(object) = self.object() {
            // By way of the request's own version, as upstream: fields that do not survive there are lost here too.
            let own = match &self.original {
                Some(original) => original.clone().into_owned(),
                None => converted(object.clone(), &attributes.kind, representations).await?,
            };
            other.object = Some(Cow::Owned(converted(own.clone(), kind, representations).await?));
            other.original = (*kind != attributes.kind).then_some(Cow::Owned(own));
        }
        if let Some(old) = &attributes.old_object {
            other.old_object = Some(Arc::new(converted((**old).clone(), kind, representations).await?));
        }
        Ok(other)
    }

    /// Moves the object back into the attributes, changed or not.
    pub(super) async fn give_back(
        self,
        attributes: &mut AdmissionAttributes,
        representations: &dyn Representations,
    ) -> Result<()> {
        let Some(object) = self.original.or(self.object) else { return Ok(()) };
        attributes.object = Some(converted(object.into_owned(), &attributes.kind, representations).await?);
        Ok(())
    }
}

async fn converted(
    object: Value,
    kind: &GroupVersionKind,
    representations: &dyn Representations,
) -> Result<Value> {
    if GroupVersionKind::of(&object) == *kind {
        return Ok(object);
    }
    representations.convert(object, kind).await.map_err(|status| Status::internal(status.message))
}
