//! Resource usage of an object, by kind.

use capstan_builtin::quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value;

use super::{Amounts, pods};
use crate::parts::ServerParts;
use crate::registry::{Registry, Resource};

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIM_AMOUNTS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// Core kinds whose plain plural is an older name of their count.
const COUNTED_BY_NAME: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// How the usage of one resource's objects is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measure {
    kind: Kind,
    /// `count/deployments.apps`.
    count: String,
    bucket: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Pods,
    Services,
    Claims,
    /// Everything else is only counted. Has the other name of the count, if any.
    Counted(Option<&'static str>),
}

impl Measure {
    /// How objects of a resource are measured; `None` if quotas do not apply to them.
    pub fn of(resource: &Resource) -> Option<Self> {
        if !resource.namespaced || resource.plural == "events" || !resource.verbs.contains(&"list") {
            return None;
        }
        let core = resource.group.is_empty();
        let kind = match resource.plural.as_str() {
            "pods" if core => Kind::Pods,
            "services" if core => Kind::Services,
            "persistentvolumeclaims" if core => Kind::Claims,
            plural => Kind::Counted(COUNTED_BY_NAME.into_iter().find(|name| core && *name == plural)),
        };
        let count = format!("count/{}", crate::status::qualified(&resource.group, &resource.plural));
        Some(Self { kind, count, bucket: resource.bucket.to_string() })
    }

    /// The measure of a quota entry; `None` if its resource is not served.
    pub fn knowing(name: &str, registry: &Registry) -> Option<Self> {
        let (group, plural) = match name.strip_prefix("count/") {
            Some(counted) => {
                let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
                (group, plural)
            }
            None if COUNTED_BY_NAME.contains(&name) => ("", name),
            None if claims_count(name) => ("", "persistentvolumeclaims"),
            None if services_count(name) => ("", "services"),
            None if pods::counts(name) => ("", "pods"),
            None => return None,
        };
        Self::of(registry.find_bucket(&format!("{group}/{plural}"))?)
    }

    /// Whether a quota entry applies to these objects.
    pub fn counts(&self, name: &str) -> bool {
        name == self.count
            || match self.kind {
                Kind::Pods => pods::counts(name),
                Kind::Services => services_count(name),
                Kind::Claims => claims_count(name),
                Kind::Counted(other) => other == Some(name),
            }
    }

    pub fn usage(&self, object: &Value, now: Timestamp) -> Amounts {
        let one = || Quantity::from_integer(1);
        let mut out = match self.kind {
            Kind::Pods => pods::usage(object, now),
            Kind::Services => services(object),
            Kind::Claims => claims(object),
            Kind::Counted(other) => other.map(|name| (name.to_owned(), one())).into_iter().collect(),
        };
        out.insert(self.count.clone(), one());
        out
    }

    /// Whether a quota with these scopes applies to an object. Only Pods have scopes.
    pub fn in_scope(&self, scopes: &Scopes, object: &Value) -> bool {
        scopes.0.is_empty()
            || (self.kind == Kind::Pods && scopes.0.iter().all(|scope| pods::in_scope(scope, object)))
    }

    /// What a quota requires of an object in addition to its usage.
    pub fn constraints(&self, limited: &Amounts, object: &Value) -> Result<(), String> {
        if self.kind == Kind::Pods { pods::constraints(limited, object) } else { Ok(()) }
    }

    /// Usage of the objects of a namespace, for some quota entries.
    pub fn used<'a>(
        &self,
        parts: &ServerParts,
        namespace: &str,
        scopes: &Scopes,
        names: impl Iterator<Item = &'a String>,
        now: Timestamp,
    ) -> Amounts {
        let snapshot = parts.store.snapshot(&self.bucket);
        let prefix = format!("{namespace}/");
        let mut out: Amounts = names.map(|name| (name.clone(), Quantity::from_integer(0))).collect();
        let only_counted = |name: &String| *name == self.count || matches!(self.kind, Kind::Counted(_));
        if scopes.0.is_empty() && out.keys().all(only_counted) {
            let count = i64::try_from(snapshot.count(&prefix)).unwrap_or(i64::MAX);
            out.values_mut().for_each(|amount| *amount = Quantity::from_integer(count));
            return out;
        }
        let objects = snapshot.range(&prefix, None);
        let objects = objects.filter_map(|entry| serde_json::from_slice(&entry.value).ok());
        for object in objects.filter(|object| self.in_scope(scopes, object)) {
            for (name, amount) in self.usage(&object, now) {
                if let Some(sum) = out.get_mut(&name) {
                    *sum = sum.plus(&amount);
                }
            }
        }
        out
    }
}

/// The scopes of a quota; all must match.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes(Vec<Value>);

impl Scopes {
    /// Reads `scopes` and `scopeSelector`.
    pub fn read(spec: &Value) -> Self {
        let listed = spec["scopes"].as_array().into_iter().flatten();
        let mut all: Vec<Value> =
            listed.map(|name| serde_json::json!({"scopeName": name, "operator": "Exists"})).collect();
        all.extend(spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten().cloned());
        Self(all)
    }
}

fn services_count(name: &str) -> bool {
    matches!(name, "services" | "services.nodeports" | "services.loadbalancers")
}

fn services(service: &Value) -> Amounts {
    let ports = service["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let explicit = ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|n| n != 0)).count();
    let (node_ports, balancers) = match service["spec"]["type"].as_str() {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if service["spec"]["allocateLoadBalancerNodePorts"] == false => (explicit, 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    let amounts =
        [("services", 1), ("services.nodeports", node_ports), ("services.loadbalancers", balancers)];
    amounts
        .into_iter()
        .map(|(name, n)| (name.to_owned(), Quantity::from_integer(i64::try_from(n).unwrap_or(i64::MAX))))
        .collect()
}

fn claims_count(name: &str) -> bool {
    let of_class = name.rsplit_once(STORAGE_CLASS).map(|(_, amount)| amount);
    CLAIM_AMOUNTS.contains(&of_class.unwrap_or(name))
}

fn claims(claim: &Value) -> Amounts {
    let older = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    let class = older.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default();
    let quantity = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
    let asked = quantity(&claim["spec"]["resources"]["requests"]["storage"]);
    let allocated = quantity(&claim["status"]["allocatedResources"]["storage"]);
    let storage = match (asked, allocated) {
        (Some(asked), Some(allocated)) if allocated > asked => Some(allocated),
        (asked, _) => asked,
    };
    let mut out = Amounts::new();
    let mut put = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            out.insert(format!("{class}{STORAGE_CLASS}{name}"), amount.clone());
        }
        out.insert(name.to_owned(), amount);
    };
    put("persistentvolumeclaims", Quantity::from_integer(1));
    if let Some(storage) = storage {
        put("requests.storage", storage);
    }
    out
}
