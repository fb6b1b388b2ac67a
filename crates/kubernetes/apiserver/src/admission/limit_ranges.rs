//! LimitRanges: resources that containers get by default, and bounds for containers, Pods and claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_builtin::quantity::Quantity;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::service_accounts::creates_pod;
use super::{Admission, AdmissionAttributes, Operation, Representations};
use crate::auth::ObjectSource;
use crate::quota::{Amounts, amounts, total_of_containers};
use crate::status::Result;

const BUCKET: &str = "/limitranges";
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Larger values are compared as whole numbers.
const MOST_MILLI: i64 = i64::MAX / 1000;

/// Upstream's plugin of this name.
pub struct LimitRanger {
    objects: Arc<dyn ObjectSource>,
}

impl LimitRanger {
    pub fn new(objects: Arc<dyn ObjectSource>) -> Arc<Self> {
        Arc::new(Self { objects })
    }

    fn ranges(&self, namespace: &str) -> Vec<Arc<Value>> {
        let mut all = self.objects.list(BUCKET);
        all.retain(|range| range["metadata"]["namespace"] == namespace);
        all
    }

    fn check(&self, attributes: &AdmissionAttributes) -> Result<()> {
        let claim = attributes.operation != Operation::Delete
            && attributes.resource.group.is_empty()
            && attributes.resource.resource == "persistentvolumeclaims"
            && attributes.subresource.is_empty();
        let Some(object) = attributes.object.as_ref().filter(|_| claim || creates_pod(attributes)) else {
            return Ok(());
        };
        for range in self.ranges(&attributes.namespace) {
            let limits = range["spec"]["limits"].as_array().map_or(&[][..], Vec::as_slice);
            let errors: Vec<String> = limits
                .iter()
                .flat_map(|limit| if claim { of_claim(limit, object) } else { of_pod(limit, object) })
                .collect();
            match errors.as_slice() {
                [] => {}
                [one] => return Err(attributes.forbidden(one)),
                several => return Err(attributes.forbidden(format!("[{}]", several.join(", ")))),
            }
        }
        Ok(())
    }
}

impl Admission for LimitRanger {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        if creates_pod(attributes) {
            let ranges = self.ranges(&attributes.namespace);
            if let Some(pod) = attributes.object.as_mut() {
                ranges.iter().for_each(|range| set_defaults(range, pod));
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(self.check(attributes)))
    }
}

/// Sets what containers do not name, and records it in an annotation.
fn set_defaults(range: &Value, pod: &mut Value) {
    let mut defaults: BTreeMap<&str, BTreeMap<String, Value>> = BTreeMap::new();
    for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
        if limit["type"] != "Container" {
            continue;
        }
        for (field, from) in [("requests", "defaultRequest"), ("limits", "default")] {
            let given = limit[from].as_object().into_iter().flatten();
            defaults
                .entry(field)
                .or_default()
                .extend(given.map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    let mut done = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (field, word) in [("requests", "request"), ("limits", "limit")] {
                let mut set = Vec::new();
                for (resource, amount) in defaults.get(field).into_iter().flatten() {
                    if container["resources"][field][resource].is_null() {
                        container["resources"][field][resource] = amount.clone();
                        set.push(resource.as_str());
                    }
                }
                if !set.is_empty() {
                    done.push(format!("{} {word} for {what} {name}", set.join(", ")));
                } else if container["resources"][field].is_null()
                    && let Some(resources) = container["resources"].as_object_mut()
                {
                    resources.remove(field);
                }
            }
        }
    }
    if !done.is_empty() {
        let text = format!("LimitRanger plugin set: {}", done.join("; "));
        if !pod["metadata"]["annotations"].is_object() {
            pod["metadata"]["annotations"] = json!({});
        }
        pod["metadata"]["annotations"][ANNOTATION] = text.into();
    }
}

fn of_claim(limit: &Value, claim: &Value) -> Vec<String> {
    if limit["type"] != "PersistentVolumeClaim" {
        return Vec::new();
    }
    let requests = amounts(&claim["spec"]["resources"]["requests"]);
    let least = amounts(&limit["min"]).into_iter().filter_map(|(name, bound)| {
        Bound { kind: "PersistentVolumeClaim", name: &name, bound: &bound }.least(&requests, &Amounts::new())
    });
    let most = amounts(&limit["max"]).into_iter().filter_map(|(name, bound)| {
        let rule = Bound { kind: "PersistentVolumeClaim", name: &name, bound: &bound };
        rule.most_of("request", requests.get(&name))
    });
    least.chain(most).collect()
}

fn of_pod(limit: &Value, pod: &Value) -> Vec<String> {
    let resources = |container: &Value, field: &str| amounts(&container["resources"][field]);
    let containers = |list: &str| pod["spec"][list].as_array().cloned().unwrap_or_default();
    match limit["type"].as_str() {
        Some("Container") => {
            let all = [containers("containers"), containers("initContainers")].concat();
            let checked = all.iter().flat_map(|container| {
                check(limit, "Container", &resources(container, "requests"), &resources(container, "limits"))
            });
            checked.collect()
        }
        Some("Pod") => {
            let total = |side: &str| total_of_containers(pod, side);
            check(limit, "Pod", &total("requests"), &total("limits"))
        }
        _ => Vec::new(),
    }
}

fn check(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut errors = Vec::new();
    for (name, bound) in &amounts(&limit["min"]) {
        errors.extend(Bound { kind, name, bound }.least(requests, limits));
    }
    for (name, bound) in &amounts(&limit["max"]) {
        errors.extend(Bound { kind, name, bound }.most(requests, limits));
    }
    for (name, bound) in &amounts(&limit["maxLimitRequestRatio"]) {
        errors.extend(Bound { kind, name, bound }.ratio(requests, limits));
    }
    errors
}

/// A bound of one resource.
struct Bound<'a> {
    kind: &'a str,
    name: &'a str,
    bound: &'a Quantity,
}

impl Bound<'_> {
    fn least(&self, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let Self { kind, name, bound } = self;
        let why = match (requests.get(*name), limits.get(*name)) {
            (None, _) => ".  No request is specified".to_owned(),
            (Some(request), _) if request < bound => format!(", but request is {request}"),
            (_, Some(limit)) if limit < bound => format!(", but limit is {limit}"),
            _ => return None,
        };
        Some(format!("minimum {name} usage per {kind} is {bound}{why}"))
    }

    fn most(&self, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let request = requests.get(self.name).filter(|request| *request > self.bound);
        self.most_of("limit", limits.get(self.name))
            .or_else(|| request.and_then(|request| self.most_of("request", Some(request))))
    }

    fn most_of(&self, what: &str, given: Option<&Quantity>) -> Option<String> {
        let Self { kind, name, bound } = self;
        let why = match given {
            None => format!(".  No {what} is specified"),
            Some(given) if given > bound => format!(", but {what} is {given}"),
            Some(_) => return None,
        };
        Some(format!("maximum {name} usage per {kind} is {bound}{why}"))
    }

    fn ratio(&self, requests: &Amounts, limits: &Amounts) -> Option<String> {
        let Self { kind, name, bound } = self;
        let given = |all: &Amounts| all.get(*name).filter(|amount| !amount.is_zero()).cloned();
        let missing = |what: &str| format!("but no {what} is specified or {what} is 0");
        let why = match (given(requests), given(limits)) {
            (None, _) => missing("request"),
            (_, None) => missing("limit"),
            (Some(request), Some(limit)) => {
                let ratio = number(&limit) / number(&request);
                if ratio <= number(bound) {
                    return None;
                }
                format!("but provided ratio is {ratio:.6}")
            }
        };
        Some(format!("{name} max limit to request ratio per {kind} is {bound}, {why}"))
    }
}

#[expect(clippy::cast_precision_loss, reason = "ratios are approximate, there too")]
fn number(quantity: &Quantity) -> f64 {
    if quantity.value() <= MOST_MILLI { quantity.milli() as f64 / 1000.0 } else { quantity.value() as f64 }
}
