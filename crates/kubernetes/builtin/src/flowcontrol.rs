//! The priority levels and flow schemas that every server has.
//!
//! Mandatory objects are restored whenever they differ. Suggested ones are updated as long as their annotation
//! [`AUTO_UPDATE`] is `true`.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// API version of the kinds.
pub const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// The annotation of objects that the server keeps up to date.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// An object that every server has.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    pub kind: &'static str,
    pub name: &'static str,
    pub mandatory: bool,
    pub spec: Value,
}

impl Bootstrap {
    /// The object to create.
    pub fn object(&self) -> Value {
        json!({
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": {"name": self.name, "annotations": {AUTO_UPDATE: "true"}},
            "spec": self.spec,
        })
    }
}

/// All of them: priority levels before the flow schemas that refer to them.
pub fn bootstrap() -> &'static [Bootstrap] {
    static OBJECTS: LazyLock<Vec<Bootstrap>> = LazyLock::new(|| {
        let mut objects = levels();
        objects.extend(schemas());
        objects
    });
    &OBJECTS
}

/// The mandatory spec of an object, if it has one.
pub fn mandatory(kind: &str, name: &str) -> Option<&'static Value> {
    let found = bootstrap().iter().find(|object| object.kind == kind && object.name == name);
    found.filter(|object| object.mandatory).map(|object| &object.spec)
}

fn levels() -> Vec<Bootstrap> {
    let level =
        |name, mandatory, spec| Bootstrap { kind: "PriorityLevelConfiguration", name, mandatory, spec };
    let queued = |name, shares: u32, lendable: u32, queues: u32, hand: u32| {
        let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 50});
        let limited = json!({
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": queuing},
        });
        level(name, false, json!({"type": "Limited", "limited": limited}))
    };
    let exempt = json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
    let catch_all = json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
    }});
    vec![
        level("exempt", true, exempt),
        level("catch-all", true, catch_all),
        queued("system", 30, 33, 64, 6),
        queued("node-high", 40, 25, 64, 6),
        queued("leader-election", 10, 0, 16, 4),
        queued("workload-high", 40, 50, 128, 6),
        queued("workload-low", 100, 90, 128, 6),
        queued("global-default", 20, 50, 128, 6),
    ]
}

/// Who and what a flow schema matches.
struct Matched {
    subjects: Vec<Value>,
    resources: Vec<Value>,
    paths: Vec<Value>,
}

fn schemas() -> Vec<Bootstrap> {
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let user = |name: &str| json!({"kind": "User", "user": {"name": name}});
    let kube_system =
        || json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}});
    let everyone = || vec![group("system:unauthenticated"), group("system:authenticated")];
    let resources = |verbs: &[&str], groups: &[&str], resources: &[&str], cluster: bool| {
        let mut rule =
            json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "namespaces": ["*"]});
        if cluster {
            rule["clusterScope"] = json!(true);
        }
        rule
    };
    let paths = |verbs: &[&str], urls: &[&str]| json!({"verbs": verbs, "nonResourceURLs": urls});
    let everything = |subjects| Matched {
        subjects,
        resources: vec![resources(&["*"], &["*"], &["*"], true)],
        paths: vec![paths(&["*"], &["*"])],
    };
    let leases = |verbs: &[&str]| resources(verbs, &["coordination.k8s.io"], &["leases"], false);
    let (by_user, by_namespace) = (Some("ByUser"), Some("ByNamespace"));
    let schema = |name, level, precedence, method, matched| {
        let mandatory = matches!(name, "exempt" | "catch-all");
        Bootstrap {
            kind: "FlowSchema",
            name,
            mandatory,
            spec: schema_spec(level, precedence, method, matched),
        }
    };
    vec![
        schema("exempt", "exempt", 1, None, everything(vec![group("system:masters")])),
        schema("catch-all", "catch-all", 10_000, by_user, everything(everyone())),
        schema("system-nodes", "system", 500, by_user, everything(vec![group("system:nodes")])),
        schema(
            "system-node-high",
            "node-high",
            400,
            by_user,
            Matched {
                subjects: vec![group("system:nodes")],
                resources: vec![resources(&["*"], &[""], &["nodes", "nodes/status"], true), leases(&["*"])],
                paths: Vec::new(),
            },
        ),
        schema(
            "probes",
            "exempt",
            2,
            None,
            Matched {
                subjects: everyone(),
                resources: Vec::new(),
                paths: vec![paths(&["get"], &["/healthz", "/readyz", "/livez"])],
            },
        ),
        schema(
            "system-leader-election",
            "leader-election",
            100,
            by_user,
            Matched {
                subjects: vec![
                    user("system:kube-controller-manager"),
                    user("system:kube-scheduler"),
                    kube_system(),
                ],
                resources: vec![leases(&["get", "create", "update"])],
                paths: Vec::new(),
            },
        ),
        schema(
            "kube-controller-manager",
            "workload-high",
            800,
            by_namespace,
            everything(vec![user("system:kube-controller-manager")]),
        ),
        schema(
            "kube-scheduler",
            "workload-high",
            800,
            by_namespace,
            everything(vec![user("system:kube-scheduler")]),
        ),
        schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            by_namespace,
            everything(vec![kube_system()]),
        ),
        schema(
            "service-accounts",
            "workload-low",
            9_000,
            by_user,
            everything(vec![group("system:serviceaccounts")]),
        ),
        schema("global-default", "global-default", 9_900, by_user, everything(everyone())),
    ]
}

fn schema_spec(level: &str, precedence: u32, method: Option<&str>, matched: Matched) -> Value {
    let mut rule = json!({"subjects": matched.subjects});
    if !matched.resources.is_empty() {
        rule["resourceRules"] = matched.resources.into();
    }
    if !matched.paths.is_empty() {
        rule["nonResourceRules"] = matched.paths.into();
    }
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
    });
    if let Some(method) = method {
        spec["distinguisherMethod"] = json!({"type": method});
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{defaults, validation};

    #[test]
    fn every_object_is_valid_and_complete() {
        for bootstrap in bootstrap() {
            let mut object = bootstrap.object();
            object["metadata"]["uid"] = "x".into();
            let errors =
                validation::validate("flowcontrol.apiserver.k8s.io", bootstrap.kind, "", &object, None);
            assert!(errors.is_empty(), "{}: {errors:?}", bootstrap.name);
            let before = object.clone();
            defaults::apply("flowcontrol.apiserver.k8s.io", "v1", bootstrap.kind, &mut object);
            assert_eq!(
                object, before,
                "{}: defaults would make the object differ from its spec",
                bootstrap.name
            );
        }
    }

    #[test]
    fn every_schema_refers_to_a_level_that_comes_before_it() {
        let mut levels = Vec::new();
        for bootstrap in bootstrap() {
            match bootstrap.kind {
                "FlowSchema" => {
                    let level = bootstrap.spec["priorityLevelConfiguration"]["name"].as_str().unwrap();
                    assert!(levels.contains(&level), "{} refers to {level}", bootstrap.name);
                }
                _ => levels.push(bootstrap.name),
            }
        }
        assert_eq!(levels.len(), 8);
    }
}
