//! v1beta1 and v1beta2.

use serde_json::{Value, json};

use crate::GROUP;
use crate::conversion::{convert, kinds};

fn object(kind: &str, version: &str, spec: Value, status: Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": kind,
        "metadata": { "name": "x", "namespace": "ns" }, "spec": spec,
    });
    if !status.is_null() {
        object["status"] = status;
    }
    object
}

/// Converts up and down, and compares both ways.
fn round_trip(kind: &str, old: (Value, Value), new: (Value, Value)) {
    let (old, new) = (object(kind, "v1beta1", old.0, old.1), object(kind, "v1beta2", new.0, new.1));
    assert_eq!(convert(old.clone(), "v1beta2").unwrap(), new, "{kind} up");
    assert_eq!(convert(new, "v1beta1").unwrap(), old, "{kind} down");
}

const TIME: &str = "2026-01-01T00:00:00Z";

fn identity() -> Value {
    json!({ "name": "creds", "cloudName": "openstack", "type": "Secret" })
}

#[test]
fn clusters_are_converted_without_loss() {
    let old_machine = json!({ "flavor": "f", "image": { "filter": { "name": "i" } } });
    let new_machine =
        json!({ "flavor": { "filter": { "name": "f" } }, "image": { "filter": { "name": "i" } } });
    let rule = json!({ "name": "r", "direction": "ingress" });
    let old = json!({
        "identityRef": identity(),
        "networkMTU": 1400,
        "disablePortSecurity": true,
        "disableExternalNetwork": false,
        "externalRouterIPs": [{ "subnet": { "filter": { "name": "s" } } }],
        "apiServerPort": 443,
        "apiServerFixedIP": "10.0.0.5",
        "apiServerFloatingIP": "203.0.113.5",
        "disableAPIServerFloatingIP": true,
        "apiServerLoadBalancer": { "enabled": true, "additionalPorts": [80], "monitor": { "delay": 3 } },
        "managedSecurityGroups": { "allNodesSecurityGroupRules": [rule], "allowAllInClusterTraffic": true },
        "bastion": { "enabled": true, "spec": old_machine },
    });
    let new = json!({
        "identityRef": identity(),
        "managedNetwork": { "mtu": 1400, "enablePortSecurity": false },
        "enableExternalNetwork": true,
        "managedRouter": { "externalIPs": [{ "subnet": { "filter": { "name": "s" } } }] },
        "apiServer": {
            "port": 443, "fixedIP": "10.0.0.5", "floatingIP": "203.0.113.5", "enableFloatingIP": false,
            "managedLoadBalancer": { "enabled": true, "additionalPorts": [80], "monitor": { "delay": 3 } },
        },
        "managedSecurityGroups": { "clusterNodesSecurityGroupRules": [rule], "allowAllInClusterTraffic": true },
        "bastion": { "enabled": true, "spec": new_machine },
    });
    let balancer = json!({ "name": "lb", "id": "i", "ip": "203.0.113.5", "internalIP": "10.0.0.5" });
    let old_status = json!({
        "ready": true,
        "apiServerLoadBalancer": balancer,
        "failureDomains": { "az1": { "controlPlane": true }, "az2": { "controlPlane": true } },
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": TIME }],
    });
    let new_status = json!({
        "apiServerManagedLoadBalancer": balancer,
        "failureDomains": [{ "name": "az1", "controlPlane": true }, { "name": "az2", "controlPlane": true }],
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": TIME, "reason": "Ready", "message": "" }],
    });
    round_trip("OpenStackCluster", (old.clone(), old_status), (new.clone(), new_status));
    let template = |spec: Value| json!({ "template": { "spec": spec } });
    round_trip("OpenStackClusterTemplate", (template(old), Value::Null), (template(new), Value::Null));
}

#[test]
fn machines_are_converted_without_loss() {
    for (flavor, value, new) in [
        ("flavor", "m1", json!({ "filter": { "name": "m1" } })),
        ("flavorID", "uuid", json!({ "id": "uuid" })),
    ] {
        let image = json!({ "id": "6aa02f56-c595-4d2f-9f8e-3c6296a4bed9" });
        let old = json!({ flavor: value, "image": image, "ports": [{ "disablePortSecurity": true }, { "trunk": true }] });
        let new = json!({ "flavor": new, "image": image, "ports": [{ "enablePortSecurity": false }, { "trunk": true }] });
        let resolved = |key: &str, value: bool| json!({ "ports": [{ "name": "p", "networkID": "n", "description": "d", key: value }] });
        let old_status =
            json!({ "ready": false, "instanceID": "s", "resolved": resolved("disablePortSecurity", false) });
        let new_status = json!({ "instanceID": "s", "resolved": resolved("enablePortSecurity", true) });
        round_trip("OpenStackMachine", (old.clone(), old_status), (new.clone(), new_status));
        let template = |spec: Value| json!({ "template": { "spec": spec } });
        round_trip("OpenStackMachineTemplate", (template(old), Value::Null), (template(new), Value::Null));
    }
}

#[test]
fn what_a_version_cannot_say_survives_the_other() {
    // A flavor by both, a severity, a failure: v1beta2 has none of them.
    let condition = json!({
        "type": "NetworkReady", "status": "False", "severity": "Error", "reason": "NetworkCreateFailed",
        "message": "no", "lastTransitionTime": TIME,
    });
    let old = object(
        "OpenStackMachine",
        "v1beta1",
        json!({ "flavor": "f", "flavorID": "i", "image": { "filter": { "name": "i" } } }),
        json!({ "ready": false, "conditions": [condition], "failureReason": "CreateError", "failureMessage": "no" }),
    );
    let mut stored = convert(old.clone(), "v1beta2").unwrap();
    assert_eq!(stored["spec"]["flavor"], json!({ "id": "i" }));
    assert_eq!(convert(stored.clone(), "v1beta1").unwrap(), old);
    // A change meanwhile is kept, and so is the rest.
    stored["spec"]["providerID"] = "openstack:///s".into();
    let back = convert(stored, "v1beta1").unwrap();
    assert_eq!(back["spec"]["providerID"], "openstack:///s");
    assert_eq!((&back["spec"]["flavor"], &back["spec"]["flavorID"]), (&json!("f"), &json!("i")));
    assert_eq!(back["status"]["failureReason"], "CreateError");
    // Labels of templates are new in v1beta2.
    let spec = json!({ "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "identityRef": identity() } } });
    let new = object("OpenStackClusterTemplate", "v1beta2", spec, Value::Null);
    let old = convert(new.clone(), "v1beta1").unwrap();
    assert_eq!(old["spec"]["template"].get("metadata"), None);
    assert_eq!(convert(old, "v1beta2").unwrap(), new);
}

#[test]
fn only_kinds_with_two_versions_are_converted() {
    assert_eq!(kinds().len(), 4);
    let server = object("OpenStackServer", "v1alpha1", json!({}), Value::Null);
    assert!(convert(server, "v1beta1").is_err());
    let unknown = object("OpenStackCluster", "v1beta2", json!({}), Value::Null);
    assert!(convert(unknown, "v1alpha7").is_err());
    let wrong = object("OpenStackCluster", "v1beta1", json!({ "networkMTU": "wide" }), Value::Null);
    assert!(convert(wrong, "v1beta2").is_err());
}
