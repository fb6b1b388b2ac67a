//! The default class of Ingresses, and the taint of new nodes.

use std::cmp::Reverse;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::json;

use super::service_accounts::push;
use super::{Admission, AdmissionAttributes, Operation, Representations};
use crate::auth::ObjectSource;
use crate::object::Meta;
use crate::status::Result;

const INGRESS_CLASSES: &str = "networking.k8s.io/ingressclasses";
const INGRESS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The newest class that is annotated as default.
pub(super) fn default_class(
    objects: &dyn ObjectSource,
    bucket: &str,
    annotations: &[&str],
) -> Option<String> {
    let is_default = |class: &serde_json::Value| {
        annotations.iter().any(|annotation| class["metadata"]["annotations"][*annotation] == "true")
    };
    let classes = objects.list(bucket).into_iter().filter(|class| is_default(class));
    let newest = classes.min_by_key(|class| {
        (Reverse(class.meta_str("creationTimestamp").to_owned()), class.name().to_owned())
    });
    newest.map(|class| class.name().to_owned())
}

/// Gives Ingresses without a class the default one.
pub struct DefaultIngressClass {
    objects: Arc<dyn ObjectSource>,
}

impl DefaultIngressClass {
    pub fn new(objects: Arc<dyn ObjectSource>) -> Arc<Self> {
        Arc::new(Self { objects })
    }
}

fn creates(attributes: &AdmissionAttributes, group: &str, resource: &str) -> bool {
    attributes.operation == Operation::Create
        && attributes.subresource.is_empty()
        && attributes.resource.group == group
        && attributes.resource.resource == resource
}

impl Admission for DefaultIngressClass {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        if creates(attributes, "networking.k8s.io", "ingresses")
            && let Some(ingress) = attributes.object.as_mut()
            && ingress["spec"]["ingressClassName"].is_null()
            && ingress["metadata"]["annotations"][INGRESS_ANNOTATION].is_null()
            && let Some(name) = default_class(&*self.objects, INGRESS_CLASSES, &[IS_DEFAULT])
        {
            ingress["spec"]["ingressClassName"] = name.into();
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Nothing is scheduled to a new node until it is ready.
pub struct TaintNodes;

impl Admission for TaintNodes {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        if creates(attributes, "", "nodes")
            && let Some(node) = attributes.object.as_mut()
        {
            let taints = &mut node["spec"]["taints"];
            let known = taints.as_array().into_iter().flatten();
            let mut known =
                known.filter(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule");
            if known.next().is_none() {
                push(taints, json!({"key": NOT_READY, "effect": "NoSchedule"}));
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
