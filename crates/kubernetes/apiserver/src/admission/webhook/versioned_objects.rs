//! The object of a request in the version a webhook wants.

use std::borrow::Cow;
use std::sync::Arc;

use capstan_schema::selector::LabelSelector;
use serde_json::Value;

use crate::admission::{AdmissionAttributes, GroupVersionKind, Representations};
use crate::status::{Result, Status};

/// New and old object in one version.
pub(super) struct Form<'a> {
    pub(super) kind: GroupVersionKind,
    object: Option<Cow<'a, Value>>,
    old_object: Option<Arc<Value>>,
    /// The object as the request has it, while this form is another one of the same.
    original: Option<Cow<'a, Value>>,
}

impl<'a> Form<'a> {
    /// As the client sent it.
    pub(super) fn of_request(attributes: &'a AdmissionAttributes) -> Self {
        Self {
            kind: attributes.kind.clone(),
            object: attributes.object.as_ref().map(Cow::Borrowed),
            old_object: attributes.old_object.clone(),
            original: None,
        }
    }

    /// As the client sent it, taken out of the request until [`Form::give_back`].
    pub(super) fn taken_from(attributes: &mut AdmissionAttributes) -> Form<'static> {
        Form {
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

    /// Puts a changed object in place of the present one.
    pub(super) fn replace(&mut self, object: Value) {
        self.object = Some(Cow::Owned(object));
        self.original = None;
    }

    /// Whether the labels of the new or of the old object are selected.
    pub(super) fn selected(&self, selector: &Result<LabelSelector, String>) -> Result<bool> {
        let selector = selector.as_ref().map_err(Status::internal)?;
        let selects = |object: &Value| selector.matches_labels(object["metadata"]["labels"].as_object());
        Ok(selector.is_empty()
            || self.object().is_some_and(selects)
            || self.old_object().is_some_and(selects))
    }

    /// The same objects in another form.
    pub(super) async fn converted(
        &self,
        kind: &GroupVersionKind,
        attributes: &AdmissionAttributes,
        forms: &dyn Representations,
    ) -> Result<Form<'static>> {
        let mut other = Form { kind: kind.clone(), object: None, old_object: None, original: None };
        if let Some(object) = self.object() {
            // By way of the request's own version, as upstream goes: what does not survive there is lost
            // here too.
            let own = match &self.original {
                Some(original) => original.clone().into_owned(),
                None => converted(object.clone(), &attributes.kind, forms).await?,
            };
            other.object = Some(Cow::Owned(converted(own.clone(), kind, forms).await?));
            other.original = (*kind != attributes.kind).then_some(Cow::Owned(own));
        }
        if let Some(old) = &attributes.old_object {
            other.old_object = Some(Arc::new(converted((**old).clone(), kind, forms).await?));
        }
        Ok(other)
    }

    /// Gives the object back to the request, changed or not.
    pub(super) async fn give_back(
        self,
        attributes: &mut AdmissionAttributes,
        forms: &dyn Representations,
    ) -> Result<()> {
        let Some(object) = self.original.or(self.object) else { return Ok(()) };
        attributes.object = Some(converted(object.into_owned(), &attributes.kind, forms).await?);
        Ok(())
    }
}

async fn converted(object: Value, kind: &GroupVersionKind, forms: &dyn Representations) -> Result<Value> {
    if GroupVersionKind::of(&object) == *kind {
        return Ok(object);
    }
    forms.convert(object, kind).await.map_err(|status| Status::internal(status.message))
}
