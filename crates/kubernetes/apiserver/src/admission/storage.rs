//! Volumes and claims: default storage class, protection of what is in use, growth.

use std::sync::Arc;

use capstan_builtin::quantity::Quantity;
use futures::future::BoxFuture;
use serde_json::Value;

use super::service_accounts::push;
use super::{Admission, AdmissionAttributes, Operation, Representations, default_class};
use crate::auth::ObjectSource;
use crate::status::Result;

const CLASSES: &str = "storage.k8s.io/storageclasses";
/// The class of a claim before it was a field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const DEFAULT_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// Finalizer of claims. `controllers/volume_protection.rs` removes it.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Finalizer of classes of volume attributes.
pub(crate) const CLASS_PROTECTION: &str = "kubernetes.io/vac-protection";
/// Finalizer of volumes.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// Completes claims and volumes, and decides which claims may grow: upstream's DefaultStorageClass,
/// StorageObjectInUseProtection and PersistentVolumeClaimResize.
pub struct Storage {
    objects: Arc<dyn ObjectSource>,
}

impl Storage {
    pub fn new(objects: Arc<dyn ObjectSource>) -> Arc<Self> {
        Arc::new(Self { objects })
    }

    fn complete(&self, attributes: &mut AdmissionAttributes) {
        let creates = attributes.operation == Operation::Create;
        let finalizer = match (attributes.resource.group.as_str(), attributes.resource.resource.as_str()) {
            _ if !attributes.subresource.is_empty() => return,
            ("", "persistentvolumeclaims") => CLAIM_PROTECTION,
            ("", "persistentvolumes") => VOLUME_PROTECTION,
            ("storage.k8s.io", "volumeattributesclasses") => CLASS_PROTECTION,
            _ => return,
        };
        let Some(object) = attributes.object.as_mut().filter(|_| creates) else { return };
        if finalizer == CLAIM_PROTECTION && class_of(object).is_none() {
            let default = default_class(&*self.objects, CLASSES, &DEFAULT_ANNOTATIONS);
            if let Some(name) = default {
                object["spec"]["storageClassName"] = name.into();
            }
        }
        let finalizers = &mut object["metadata"]["finalizers"];
        if !finalizers.as_array().is_some_and(|all| all.iter().any(|known| known == finalizer)) {
            push(finalizers, finalizer.into());
        }
    }

    fn check_growth(&self, attributes: &AdmissionAttributes) -> Result<()> {
        let (Some(new), Some(old)) = (&attributes.object, &attributes.old_object) else { return Ok(()) };
        if resource(attributes) != Some("persistentvolumeclaims") || size(new) <= size(old) {
            return Ok(());
        }
        if old["status"]["phase"] != "Bound" {
            return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
        }
        let class = class_of(new).filter(|class| !class.is_empty() && Some(*class) == class_of(old));
        let class = class.and_then(|class| self.objects.get(CLASSES, class));
        if class.is_some_and(|class| class["allowVolumeExpansion"] == true) {
            return Ok(());
        }
        Err(attributes.forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
             support resize",
        ))
    }
}

/// The core resource that a request is for, unless it is for a subresource.
fn resource(attributes: &AdmissionAttributes) -> Option<&str> {
    let whole = attributes.resource.group.is_empty() && attributes.subresource.is_empty();
    whole.then_some(attributes.resource.resource.as_str())
}

/// The class that a claim asks for; an empty one is none, but asked for.
fn class_of(claim: &Value) -> Option<&str> {
    let annotated = claim["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    annotated.or_else(|| claim["spec"]["storageClassName"].as_str())
}

fn size(claim: &Value) -> Option<Quantity> {
    let text = claim["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or("0");
    Quantity::parse(text).ok()
}

impl Admission for Storage {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        self.complete(attributes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(self.check_growth(attributes)))
    }
}
