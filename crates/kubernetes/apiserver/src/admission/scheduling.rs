//! Priorities and runtime classes of Pods, and how long they stay on nodes that fail.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::service_accounts::{creates_pod, is_pod, push};
use super::{Admission, AdmissionAttributes, Operation, Representations};
use crate::auth::ObjectSource;
use crate::status::Result;

const RUNTIME_CLASSES: &str = "node.k8s.io/runtimeclasses";
const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
/// Taints of nodes that stopped to report or cannot be reached.
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: u32 = 300;

/// Adds the tolerations with which Pods leave a failed node after five minutes.
pub struct DefaultTolerationSeconds;

fn tolerate(pod: &mut Value) {
    for taint in TAINTS {
        let tolerations = pod["spec"]["tolerations"].as_array().into_iter().flatten();
        let tolerated = tolerations.into_iter().any(|toleration| {
            let text = |field: &str| toleration[field].as_str().unwrap_or_default();
            ["", taint].contains(&text("key")) && ["", "NoExecute"].contains(&text("effect"))
        });
        if !tolerated {
            let toleration = json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
            });
            push(&mut pod["spec"]["tolerations"], toleration);
        }
    }
}

impl Admission for DefaultTolerationSeconds {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        if is_pod(attributes)
            && let Some(pod) = attributes.object.as_mut()
        {
            tolerate(pod);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Resolves the priority class of Pods; there is at most one default class.
pub struct Priority {
    objects: Arc<dyn ObjectSource>,
}

impl Priority {
    pub fn new(objects: Arc<dyn ObjectSource>) -> Arc<Self> {
        Arc::new(Self { objects })
    }

    /// The default class with the lowest value.
    fn default_class(&self) -> Option<Arc<Value>> {
        let classes = self.objects.list(CLASSES);
        let defaults = classes.into_iter().filter(|class| class["globalDefault"] == true);
        defaults.min_by_key(|class| class["value"].as_i64())
    }

    fn resolve(&self, attributes: &mut AdmissionAttributes) -> Result<()> {
        let Some(mut pod) = attributes.object.take() else { return Ok(()) };
        let resolved = match (&attributes.operation, &attributes.old_object) {
            (Operation::Update, Some(old)) => {
                for field in ["priority", "preemptionPolicy"] {
                    if pod["spec"][field].is_null() && !old["spec"][field].is_null() {
                        pod["spec"][field] = old["spec"][field].clone();
                    }
                }
                Ok(())
            }
            (Operation::Create, _) => self.set(&mut pod),
            _ => Ok(()),
        };
        attributes.object = Some(pod);
        resolved.map_err(|why| attributes.forbidden(why))
    }

    fn set(&self, pod: &mut Value) -> Result<(), String> {
        let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default();
        let class = match name {
            "" => self.default_class(),
            name => {
                let found = self.objects.get(CLASSES, name);
                Some(found.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
            }
        };
        let value = class.as_ref().and_then(|class| class["value"].as_i64()).unwrap_or(0);
        let policy = class.as_ref().and_then(|class| class["preemptionPolicy"].as_str());
        let policy = policy.unwrap_or("PreemptLowerPriority").to_owned();
        if let Some(class) = class.as_ref().filter(|_| name.is_empty()) {
            pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
        }
        let given = pod["spec"]["priority"].as_i64().filter(|given| *given != value);
        if let Some(given) = given {
            return Err(format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {value} from the given PriorityClass name"
            ));
        }
        let given = pod["spec"]["preemptionPolicy"].as_str().filter(|given| *given != policy);
        if let Some(given) = given {
            return Err(format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
                 admission controller computed {policy} from the given PriorityClass name"
            ));
        }
        pod["spec"]["priority"] = value.into();
        pod["spec"]["preemptionPolicy"] = policy.into();
        Ok(())
    }

    fn check_class(&self, attributes: &AdmissionAttributes) -> Result<()> {
        let about_classes = attributes.resource.group == "scheduling.k8s.io"
            && attributes.resource.resource == "priorityclasses"
            && matches!(attributes.operation, Operation::Create | Operation::Update);
        let class = attributes.object.as_ref().filter(|_| about_classes);
        if class.is_none_or(|class| class["globalDefault"] != true) {
            return Ok(());
        }
        match self.default_class() {
            Some(other)
                if attributes.operation == Operation::Create
                    || other["metadata"]["name"] != attributes.name.as_str() =>
            {
                let name = other["metadata"]["name"].as_str().unwrap_or_default();
                Err(attributes.forbidden(format!(
                    "PriorityClass {name} is already marked as default. Only one default can exist"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Admission for Priority {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        let resolved = if is_pod(attributes) { self.resolve(attributes) } else { Ok(()) };
        Box::pin(std::future::ready(resolved))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(self.check_class(attributes)))
    }
}

/// Gives Pods the overhead and the placement of their runtime class.
pub struct RuntimeClasses {
    objects: Arc<dyn ObjectSource>,
}

impl RuntimeClasses {
    pub fn new(objects: Arc<dyn ObjectSource>) -> Arc<Self> {
        Arc::new(Self { objects })
    }

    fn class(&self, pod: &Value) -> Result<Option<Arc<Value>>, String> {
        let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
        let found = self.objects.get(RUNTIME_CLASSES, name);
        found.map(Some).ok_or_else(|| format!("pod rejected: RuntimeClass \"{name}\" not found"))
    }

    fn complete(&self, pod: &mut Value) -> Result<(), String> {
        let Some(class) = self.class(pod)? else { return Ok(()) };
        let overhead = &class["overhead"]["podFixed"];
        if overhead.is_object() {
            let given = crate::quota::amounts(&pod["spec"]["overhead"]);
            if !given.is_empty() && given != crate::quota::amounts(overhead) {
                return Err(OTHER_OVERHEAD.to_owned());
            }
            pod["spec"]["overhead"] = overhead.clone();
        }
        for (key, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            match pod["spec"]["nodeSelector"][key].as_str() {
                Some(own) if own != value => {
                    return Err(format!(
                        "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                         pod.spec.nodeSelector[{key}] = {own}"
                    ));
                }
                _ => pod["spec"]["nodeSelector"][key] = value.into(),
            }
        }
        for toleration in class["scheduling"]["tolerations"].as_array().into_iter().flatten() {
            let own = pod["spec"]["tolerations"].as_array();
            if own.is_none_or(|all| !all.contains(toleration)) {
                push(&mut pod["spec"]["tolerations"], toleration.clone());
            }
        }
        Ok(())
    }

    fn check(&self, pod: &Value) -> Result<(), String> {
        let class = self.class(pod)?;
        let defined = class.as_ref().map(|class| &class["overhead"]["podFixed"]).filter(|it| it.is_object());
        let given = &pod["spec"]["overhead"];
        match defined {
            Some(defined) if crate::quota::amounts(defined) != crate::quota::amounts(given) => {
                Err(OTHER_OVERHEAD.to_owned())
            }
            None if !given.is_null() => {
                let why =
                    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(why.to_owned())
            }
            _ => Ok(()),
        }
    }
}

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

impl Admission for RuntimeClasses {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        let creates = creates_pod(attributes);
        let pod = attributes.object.as_mut().filter(|_| creates);
        let completed = pod.map_or(Ok(()), |pod| self.complete(pod));
        Box::pin(std::future::ready(completed.map_err(|why| attributes.forbidden(why))))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        let pod = attributes.object.as_ref().filter(|_| creates_pod(attributes));
        let checked = pod.map_or(Ok(()), |pod| self.check(pod));
        Box::pin(std::future::ready(checked.map_err(|why| attributes.forbidden(why))))
    }
}
