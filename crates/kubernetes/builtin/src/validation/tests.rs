//! Recorded responses of kube-apiserver 1.36.3 to a corpus of valid and invalid objects; ours must be equal. A case
//! creates an object and may then replace it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::validate;
use crate::{decode, defaults, kinds, strategy, table};

struct Case {
    group: String,
    version: String,
    kind: String,
    recorded: Value,
}

/// Our result for an object: what would be stored, or the errors.
enum Answer {
    Stored(Value),
    Refused(BTreeSet<String>),
    Undecodable(String),
}

impl Case {
    fn settle(&self, object: &Value) -> Result<Value, String> {
        let id = table::table().kind(&self.group, &self.version, &self.kind).unwrap();
        let decoded = decode::from_slice(id, object.to_string().as_bytes())
            .map_err(|e| decode::bad_request(e, &self.version, &self.kind))?;
        let mut object = decoded.object;
        defaults::apply(&self.group, &self.version, &self.kind, &mut object);
        Ok(object)
    }

    fn create(&self) -> Answer {
        let mut object = match self.settle(&self.recorded["given"]) {
            Ok(object) => object,
            Err(message) => return Answer::Undecodable(message),
        };
        // The server sets name, uid and creation time before strategies run.
        let stored = &self.recorded["create"]["object"]["metadata"];
        for field in ["uid", "creationTimestamp"] {
            let known = stored.get(field).cloned();
            object["metadata"][field] = known.unwrap_or_else(|| match field {
                "uid" => json!(NO_UID),
                _ => json!("2024-01-01T00:00:00Z"),
            });
        }
        strategy::prepare_create(&self.group, &self.kind, &mut object);
        self.judge("", object, None)
    }

    fn update(&self) -> Answer {
        let old = self.recorded["old"].clone();
        let mut new = match self.settle(&self.recorded["new"]) {
            Ok(object) => object,
            Err(message) => return Answer::Undecodable(message),
        };
        let subresource = self.recorded["subresource"].as_str().unwrap();
        strategy::prepare_update(&self.group, &self.kind, subresource, &mut new, &old);
        self.judge(subresource, new, Some(&old))
    }

    fn judge(&self, subresource: &str, mut object: Value, old: Option<&Value>) -> Answer {
        // Recorded without resource versions: set one that never conflicts.
        let mut old = old.cloned();
        if object["metadata"].get("resourceVersion").is_none() && old.is_some() {
            object["metadata"]["resourceVersion"] = json!("1");
        }
        if let Some(old) = &mut old {
            old["metadata"]["resourceVersion"] = json!("1");
        }
        let errors = validate(&self.group, &self.kind, subresource, &object, old.as_ref());
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        if errors.is_empty() {
            Answer::Stored(object)
        } else {
            let cause = |field: &str, reason: &str, body: &str| format!("{field} {reason} {body}");
            Answer::Refused(errors.iter().map(|e| cause(&e.field, e.kind.reason(), &e.body())).collect())
        }
    }
}

fn causes(recorded: &Value) -> BTreeSet<String> {
    let text = |c: &Value, key: &str| c[key].as_str().unwrap_or_default().to_owned();
    // Some upstream messages end with a diff of Go structs, which is not compared.
    let first_line = |t: String| t.lines().next().unwrap_or_default().to_owned();
    let list = recorded["causes"].as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|c| format!("{} {} {}", text(c, "field"), text(c, "reason"), first_line(text(c, "message"))))
        .map(|cause| without_uids(&cause))
        .collect()
}

/// Rejected objects have unknown uids.
fn without_uids(text: &str) -> String {
    const LENGTH: usize = 36;
    let is_uid = |t: &str| {
        t.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
    };
    let mut out = text.to_owned();
    let mut at = 0;
    while at + LENGTH <= out.len() {
        if out.get(at..at + LENGTH).is_some_and(is_uid) {
            out.replace_range(at..at + LENGTH, NO_UID);
        }
        at += 1;
    }
    out
}

const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Fields that other parts of the server set: allocators, admission plugins, controllers.
fn foreign(kind: &str, mut object: Value) -> Value {
    let mut drop = |pointer: &str, key: &str| {
        if let Some(Value::Object(parent)) = object.pointer_mut(pointer) {
            parent.remove(key);
        }
    };
    match kind {
        "Service" => {
            for key in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
                drop("/spec", key);
            }
            for index in 0..10 {
                drop(&format!("/spec/ports/{index}"), "nodePort");
            }
        }
        "Pod" => {
            for key in ["tolerations", "priority", "preemptionPolicy", "serviceAccount", "serviceAccountName"]
            {
                drop("/spec", key);
            }
        }
        "Node" => {
            drop("/metadata", "annotations");
            drop("/spec", "taints");
        }
        // The server records the requester.
        "CertificateSigningRequest" => {
            for key in ["username", "groups", "uid", "extra"] {
                drop("/spec", key);
            }
        }
        "PersistentVolume" | "PersistentVolumeClaim" => drop("/metadata", "finalizers"),
        _ => {}
    }
    object
}

fn difference(path: &str, ours: &Value, theirs: &Value, out: &mut String) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let missing = Value::String("<absent>".into());
                let (a, b) = (a.get(key).unwrap_or(&missing), b.get(key).unwrap_or(&missing));
                difference(&format!("{path}.{key}"), a, b, out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                difference(&format!("{path}[{index}]"), a, b, out);
            }
        }
        _ if ours == theirs => {}
        _ => _ = writeln!(out, "    {path}: ours {ours}, theirs {theirs}"),
    }
}

fn compare(case: &Case, step: &str, ours: Answer, theirs: &Value, out: &mut String) {
    let name = case.recorded["name"].as_str().unwrap();
    let mut found = String::new();
    match (&ours, theirs.get("object"), theirs["message"].as_str()) {
        (Answer::Stored(object), Some(stored), _) => {
            let (ours, theirs) = (foreign(&case.kind, object.clone()), foreign(&case.kind, stored.clone()));
            difference("", &ours, &theirs, &mut found);
        }
        (Answer::Refused(ours), None, None) => {
            let theirs = causes(theirs);
            for cause in ours.difference(&theirs) {
                _ = writeln!(found, "    only ours:   {cause}");
            }
            for cause in theirs.difference(ours) {
                _ = writeln!(found, "    only theirs: {cause}");
            }
        }
        (Answer::Undecodable(ours), None, Some(theirs)) if ours == theirs => {}
        (Answer::Stored(_), _, _) => _ = writeln!(found, "    ours stored, theirs {theirs}"),
        (Answer::Refused(ours), _, _) => _ = writeln!(found, "    ours {ours:?}, theirs {theirs}"),
        (Answer::Undecodable(ours), _, _) => _ = writeln!(found, "    ours {ours}, theirs {theirs}"),
    }
    if !found.is_empty() {
        _ = writeln!(out, "{name} ({step}):\n{found}");
    }
}

fn replay(recorded: &str) {
    let cases: Vec<Value> = serde_json::from_str(recorded).unwrap();
    let mut out = String::new();
    for recorded in cases {
        let given = &recorded["given"];
        let api_version = given["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let case = Case {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: given["kind"].as_str().unwrap().to_owned(),
            recorded: recorded.clone(),
        };
        assert!(kinds::kind(&case.group, &case.version, &case.kind).is_some());
        compare(&case, "create", case.create(), &recorded["create"], &mut out);
        if recorded.get("update").is_some() {
            compare(&case, "update", case.update(), &recorded["update"], &mut out);
        }
    }
    assert!(out.is_empty(), "kube-apiserver answers otherwise:\n{out}");
}

#[test]
fn configuration_and_events_are_validated_as_upstream() {
    replay(include_str!("recorded/core.json"));
}

#[test]
fn roles_and_bindings_are_validated_as_upstream() {
    replay(include_str!("recorded/rbac.json"));
}

#[test]
fn webhook_configurations_are_validated_as_upstream() {
    replay(include_str!("recorded/admission.json"));
}

#[test]
fn services_and_endpoints_are_validated_as_upstream() {
    replay(include_str!("recorded/service.json"));
}

#[test]
fn nodes_are_validated_as_upstream() {
    replay(include_str!("recorded/node.json"));
}

#[test]
fn quotas_and_limits_are_validated_as_upstream() {
    replay(include_str!("recorded/quota.json"));
}

#[test]
fn volumes_and_claims_are_validated_as_upstream() {
    replay(include_str!("recorded/volumes.json"));
}

#[test]
fn pods_are_validated_as_upstream() {
    replay(include_str!("recorded/pod.json"));
}

#[test]
fn workloads_are_validated_as_upstream() {
    replay(include_str!("recorded/apps.json"));
}

#[test]
fn jobs_are_validated_as_upstream() {
    replay(include_str!("recorded/batch.json"));
}

#[test]
fn budgets_classes_and_slices_are_validated_as_upstream() {
    replay(include_str!("recorded/policy.json"));
}

#[test]
fn storage_kinds_are_validated_as_upstream() {
    replay(include_str!("recorded/storage.json"));
}

#[test]
fn policies_and_ingresses_are_validated_as_upstream() {
    replay(include_str!("recorded/networking.json"));
}

#[test]
fn autoscalers_and_replication_controllers_are_validated_as_upstream() {
    replay(include_str!("recorded/scaling.json"));
}

#[test]
fn signing_requests_are_validated_as_upstream() {
    replay(include_str!("recorded/certificates.json"));
}

#[test]
fn a_megabyte_of_data_is_the_limit() {
    let big = "x".repeat(1024 * 1024 + 1);
    let config = json!({"metadata": {"name": "a", "namespace": "b"}, "data": {"a": big}});
    let found: Vec<String> =
        validate("", "ConfigMap", "", &config, None).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["[]: Too long: may not be more than 1048576 bytes"]);
}

#[test]
fn pods_name_their_resolver_system_and_sysctls_rightly() {
    let refused = |spec: Value| {
        let mut pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {
            "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always",
                "terminationMessagePolicy": "File"}],
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
        }});
        pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let errors = validate("", "Pod", "", &pod, None);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(refused(json!({})), "");
    for (spec, message) in [
        (
            json!({"dnsPolicy": "None"}),
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            json!({"os": {"name": "x"}}),
            "spec.os: Unsupported value: \"x\": supported values: \"linux\", \"windows\"",
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "a.b"}, {"name": "a/b"}]}}),
            "spec.securityContext.sysctls[1].name: Duplicate value: \"a/b\"",
        ),
    ] {
        assert_eq!(refused(spec), message);
    }
    assert!(refused(json!({"securityContext": {"sysctls": [{"name": "x y"}]}})).contains("253 characters"));
}
