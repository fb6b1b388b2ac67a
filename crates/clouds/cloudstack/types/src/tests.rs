//! Claims about the kinds.

use capstan_capi_types::admission::Features;
use serde_json::{Value, json};

use crate::admission::rules;
use crate::conversion::convert;
use crate::definitions::definitions;
use crate::v1beta3::{CloudStackCluster, CloudStackMachine};
use crate::{GROUP, v1beta2};

fn verdict(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let rules = rules(GROUP, kind).unwrap();
    let errors = (rules.validate)(new, old, &Features::default()).unwrap();
    errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect()
}

fn domain(name: &str) -> Value {
    json!({
        "name": name,
        "zone": { "name": "z", "network": { "name": "n" } },
        "acsEndpoint": { "name": "s", "namespace": "ns" },
    })
}

/// A provisioned cluster with these failure domains.
fn cluster(domains: Value, endpoint: Value) -> Value {
    let status = json!({ "ready": true, "initialization": { "provisioned": true } });
    json!({ "spec": { "failureDomains": domains, "controlPlaneEndpoint": endpoint }, "status": status })
}

/// The same cluster before it was provisioned.
fn unprovisioned(mut cluster: Value) -> Value {
    cluster["status"] = json!({ "ready": false });
    cluster
}

fn with(mut value: Value, pointer: &str, to: Value) -> Value {
    *value.pointer_mut(pointer).unwrap() = to;
    value
}

#[test]
fn a_new_cluster_has_failure_domains_with_name_network_and_keys() {
    let none = json!({ "host": "", "port": 0 });
    let table = [
        (json!([domain("fd-1"), domain("fd-2")]), vec![]),
        (json!([]), vec!["spec.FailureDomains: Required value: FailureDomains"]),
        (
            json!([with(domain("a"), "/zone/network", json!({ "name": "" }))]),
            vec![
                "spec.failureDomains.Zone.Network: Required value: each Zone requires a Network specification",
            ],
        ),
        (json!([with(domain("a"), "/zone/network", json!({ "name": "", "id": "i" }))]), vec![]),
        (
            json!([with(domain("a"), "/acsEndpoint", json!({ "name": "s" }))]),
            vec!["spec.failureDomains.ACSEndpoint: Required value: Name and Namespace are required"],
        ),
    ];
    for (domains, errors) in table {
        assert_eq!(verdict("CloudStackCluster", &cluster(domains, none.clone()), None), errors);
    }
    let bad = verdict("CloudStackCluster", &cluster(json!([domain("Not_A_Name")]), none), None);
    assert_eq!(bad.len(), 1);
    assert!(
        bad[0].starts_with("spec.failureDomains.name: Invalid value: \"Not_A_Name\": a lowercase RFC 1123")
    );
}

#[test]
fn the_secrets_of_failure_domains_are_known_to_admission() {
    let other = with(domain("b"), "/acsEndpoint", json!({ "name": "t", "namespace": "operators" }));
    let cluster = cluster(json!([domain("a"), other]), json!({ "host": "", "port": 0 }));
    let uses = (rules(GROUP, "CloudStackCluster").unwrap().secrets)(&cluster).unwrap();
    let uses: Vec<_> = uses.iter().map(|used| (used.path.as_str(), used.secret.to_string())).collect();
    let path = |at: usize| format!("spec.failureDomains[{at}].acsEndpoint");
    assert_eq!(uses, [(path(0).as_str(), "ns/s".to_owned()), (path(1).as_str(), "operators/t".to_owned())]);
    let domain = json!({ "spec": domain("a") });
    let uses = (rules(GROUP, "CloudStackFailureDomain").unwrap().secrets)(&domain).unwrap();
    assert_eq!((uses[0].path.as_str(), uses[0].secret.name.as_str()), ("spec.acsEndpoint", "s"));
}

#[test]
fn the_template_of_clusters_is_immutable_and_names_secrets_as_its_clusters_do() {
    let template = |spec: Value, labels: Value| json!({ "spec": { "template": { "metadata": { "labels": labels }, "spec": spec } } });
    let spec =
        json!({ "failureDomains": [domain("a")], "controlPlaneEndpoint": { "host": "", "port": 6443 } });
    let old = template(spec.clone(), json!({}));
    let immutable = "spec.template.spec: Forbidden: CloudStackClusterTemplate spec.template.spec field is immutable. \
                     Please create a new resource instead.";
    for (new, errors) in [
        (old.clone(), vec![]),
        (template(spec.clone(), json!({ "team": "a" })), vec![]),
        (template(with(spec, "/controlPlaneEndpoint/port", json!(443)), json!({})), vec![immutable]),
    ] {
        assert_eq!(verdict("CloudStackClusterTemplate", &new, Some(&old)), errors);
    }
    // A patch of the class may complete it.
    let incomplete = template(json!({ "failureDomains": [] }), json!({}));
    assert_eq!(verdict("CloudStackClusterTemplate", &incomplete, None), [""; 0]);
    let labelled = template(json!({}), json!({ "-": "a" }));
    assert_eq!(verdict("CloudStackClusterTemplate", &labelled, None).len(), 1);

    let uses = (rules(GROUP, "CloudStackClusterTemplate").unwrap().secrets)(&old).unwrap();
    assert_eq!((uses.len(), uses[0].path.as_str()), (1, "spec.template.spec.failureDomains[0].acsEndpoint"));
}

#[test]
fn failure_domains_come_and_go_but_do_not_change_and_one_stays() {
    let none = json!({ "host": "", "port": 0 });
    let old = cluster(json!([domain("a"), domain("b")]), none.clone());
    let changed = "spec.FailureDomains: Forbidden: Cannot change FailureDomain a";
    let mut in_project = domain("a");
    in_project["project"] = json!("p");
    in_project["zone"]["network"]["offering"] = json!("o");
    let table = [
        (json!([domain("a"), domain("b")]), None),
        (json!([domain("b")]), None),
        (json!([domain("b"), domain("c")]), None),
        (json!([in_project]), None),
        (json!([with(domain("a"), "/zone/name", json!("other"))]), Some(changed)),
        (json!([with(domain("a"), "/zone/network/name", json!("other"))]), Some(changed)),
        (json!([with(domain("a"), "/acsEndpoint/name", json!("other"))]), Some(changed)),
        (
            json!([domain("c")]),
            Some("spec.FailureDomains: Forbidden: At least one FailureDomain must be unchanged on update."),
        ),
    ];
    for (domains, error) in table {
        let errors = verdict("CloudStackCluster", &cluster(domains, none.clone()), Some(&old));
        assert_eq!(errors, error.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn typos_are_corrected_until_the_cluster_is_provisioned() {
    let at = |zone: &str, host: &str| {
        let domains = json!([with(domain("a"), "/zone/name", json!(zone))]);
        cluster(domains, json!({ "host": host, "port": 6443 }))
    };
    let old = at("typo", "1.2.3.4");
    assert_eq!(verdict("CloudStackCluster", &at("z", ""), Some(&unprovisioned(old.clone()))), [""; 0]);
    assert_eq!(verdict("CloudStackCluster", &at("z", ""), Some(&old)).len(), 2);
    let empty = cluster(json!([]), json!({ "host": "", "port": 0 }));
    let errors = verdict("CloudStackCluster", &empty, Some(&unprovisioned(old)));
    assert_eq!(errors, ["spec.FailureDomains: Required value: FailureDomains"]);
}

#[test]
fn an_endpoint_is_written_once() {
    let domains = json!([domain("a")]);
    let at = |host: &str, port: i32| cluster(domains.clone(), json!({ "host": host, "port": port }));
    let (host, port) = (
        "spec.controlplaneendpoint.host: Forbidden: controlplaneendpoint.host",
        "spec.controlplaneendpoint.port: Forbidden: controlplaneendpoint.port",
    );
    let table = [
        (at("", 0), at("1.2.3.4", 6443), vec![]),
        (at("", 6443), at("1.2.3.4", 443), vec![]),
        (at("1.2.3.4", 6443), at("1.2.3.4", 6443), vec![]),
        (at("1.2.3.4", 6443), at("4.3.2.1", 6443), vec![host]),
        (at("1.2.3.4", 6443), at("1.2.3.4", 443), vec![port]),
        // CAPC compares ports as letters, and these two are none.
        (at("1.2.3.4", 55296), at("1.2.3.4", 55297), vec![port]),
    ];
    for (old, new, errors) in table {
        assert_eq!(verdict("CloudStackCluster", &new, Some(&old)), errors);
    }
}

#[test]
fn a_manifest_that_leaves_the_endpoint_open_can_be_applied_again() {
    let domains = json!([domain("a")]);
    let at = |host: &str| cluster(domains.clone(), json!({ "host": host, "port": 6443 }));
    let rules = rules(GROUP, "CloudStackCluster").unwrap();
    for (old, new, host) in [("1.2.3.4", "", "1.2.3.4"), ("", "", ""), ("1.2.3.4", "4.3.2.1", "4.3.2.1")] {
        let mut again = at(new);
        (rules.default)(&mut again, Some(&at(old))).unwrap();
        assert_eq!(again["spec"]["controlPlaneEndpoint"]["host"], host);
    }
}

fn machine() -> Value {
    json!({
        "offering": { "name": "o" },
        "template": { "id": "t" },
        "diskOffering": { "name": "d", "customSizeInGB": 5, "mountPath": "/m", "device": "/dev/vdb", "filesystem": "ext4", "label": "l" },
        "sshKey": "k",
        "details": { "memory": "4096" },
        "affinity": "pro",
    })
}

#[test]
fn machines_and_templates_name_what_they_are_made_from_and_keep_it() {
    let whole = |spec: Value| json!({ "spec": spec });
    let template = |spec: Value| json!({ "spec": { "template": { "spec": spec } } });
    assert_eq!(verdict("CloudStackMachine", &whole(machine()), None), [""; 0]);
    assert_eq!(verdict("CloudStackMachineTemplate", &template(machine()), None), [""; 0]);
    let missing = ["spec.Offering: Required value: Offering", "spec.Template: Required value: Template"];
    let empty = json!({ "offering": {}, "template": {} });
    assert_eq!(verdict("CloudStackMachine", &whole(empty.clone()), None), missing);
    assert_eq!(verdict("CloudStackMachineTemplate", &template(empty), None), missing);
    let negative = with(machine(), "/diskOffering/customSizeInGB", json!(-1));
    let error = "spec.customSizeInGB: Forbidden: customSizeInGB";
    assert_eq!(verdict("CloudStackMachine", &whole(negative), None), [error]);

    // What changes, what a machine says to it, what a template says to it.
    let table = [
        ("/offering/name", json!("x"), "offering", true, true),
        ("/template/id", json!("x"), "template", true, true),
        ("/diskOffering/name", json!("x"), "diskOffering", true, true),
        ("/diskOffering/customSizeInGB", json!(7), "", false, false),
        ("/diskOffering/customSizeInGB", json!(-7), "customSizeInGB", true, false),
        ("/diskOffering/mountPath", json!("/x"), "mountPath", true, false),
        ("/diskOffering/device", json!("/x"), "device", true, false),
        ("/diskOffering/filesystem", json!("x"), "filesystem", true, false),
        ("/diskOffering/label", json!("x"), "label", true, false),
        ("/sshKey", json!("x"), "sshkey", true, true),
        ("/details", json!({}), "details", true, true),
        ("/affinity", json!("anti"), "affinity", true, true),
    ];
    for (pointer, to, field, of_machine, of_template) in table {
        let changed = with(machine(), pointer, to);
        let error = format!("spec.{field}: Forbidden: {field}");
        let expected = |refused: bool| if refused { vec![error.clone()] } else { Vec::new() };
        let errors = verdict("CloudStackMachine", &whole(changed.clone()), Some(&whole(machine())));
        assert_eq!(errors, expected(of_machine), "{pointer}");
        let errors = verdict("CloudStackMachineTemplate", &template(changed), Some(&template(machine())));
        assert_eq!(errors, expected(of_template), "{pointer}");
    }
    let mut grouped = machine();
    grouped["affinityGroupIDs"] = json!(["g"]);
    let error = "spec.AffinityGroupIDs: Forbidden: AffinityGroupIDs";
    assert_eq!(verdict("CloudStackMachine", &whole(grouped.clone()), Some(&whole(machine()))), [error]);
    assert_eq!(
        verdict("CloudStackMachineTemplate", &template(grouped), None),
        [
            "spec.AffinityGroupIDs: Forbidden: AffinityGroupIDs cannot be specified when Affinity is specified as \
          anything but `no`"
        ]
    );
    let odd = with(machine(), "/affinity", json!("sometimes"));
    assert_eq!(
        verdict("CloudStackMachineTemplate", &template(odd), None),
        [
            "spec.Affinity: Invalid value: \"sometimes\": Affinity must be \"no\", \"pro\", \"anti\", or unspecified."
        ]
    );
    let loud = with(machine(), "/affinity", json!("ANTI"));
    assert_eq!(verdict("CloudStackMachineTemplate", &template(loud), None), [""; 0]);
}

fn of(version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"),
        "kind": kind,
        "metadata": { "name": "c", "namespace": "ns" },
        "spec": spec,
        "status": status,
    })
}

#[test]
fn a_cluster_of_zones_becomes_one_of_failure_domains_and_back() {
    let zones = json!([
        { "id": "76472a84", "network": { "name": "network1" } },
        { "name": "Zone Two", "network": { "id": "n2", "type": "Shared" } },
    ]);
    let old = of(
        "v1beta1",
        "CloudStackCluster",
        json!({
            "zones": zones,
            "account": "account1",
            "domain": "domain1",
            "controlPlaneEndpoint": { "host": "endpoint1", "port": 443 },
            "identityRef": { "kind": "Secret", "name": "other" },
        }),
        json!({ "ready": true, "failureDomains": { "76472a84": { "controlPlane": true } }, "publicIPID": "p" }),
    );
    let new = convert(old.clone(), "v1beta3").unwrap();
    assert_eq!(new["apiVersion"], format!("{GROUP}/v1beta3"));
    let secret = json!({ "name": "global", "namespace": "ns" });
    assert_eq!(
        new["spec"]["failureDomains"],
        json!([
            {
                "name": "76472a84",
                "zone": { "id": "76472a84", "network": { "name": "network1" } },
                "account": "account1",
                "domain": "domain1",
                "acsEndpoint": secret,
            },
            {
                "name": "zone-two",
                "zone": { "name": "Zone Two", "network": { "name": "", "id": "n2", "type": "Shared" } },
                "account": "account1",
                "domain": "domain1",
                "acsEndpoint": secret,
            },
        ])
    );
    assert_eq!(new["status"]["failureDomains"], json!([{ "name": "76472a84", "controlPlane": true }]));
    assert_eq!(convert(new, "v1beta1").unwrap(), old);
}

#[test]
fn what_earlier_versions_cannot_say_survives_them() {
    let mut fd = domain("a");
    fd["project"] = json!("p");
    fd["zone"]["network"]["vpc"] = json!({ "name": "v", "cidr": "10.0.0.0/8" });
    let stored = [
        of(
            "v1beta3",
            "CloudStackCluster",
            json!({ "failureDomains": [fd.clone()], "controlPlaneEndpoint": { "host": "h", "port": 1 }, "syncWithACS": true }),
            json!({
                "ready": true,
                "initialization": { "provisioned": true },
                "failureDomains": [{ "name": "a", "controlPlane": true, "attributes": { "MetaHashName": "x" } }],
            }),
        ),
        of(
            "v1beta3",
            "CloudStackFailureDomain",
            fd,
            json!({ "ready": false, "initialization": { "provisioned": false } }),
        ),
        of(
            "v1beta3",
            "CloudStackMachine",
            json!({
                "offering": { "name": "o" },
                "template": { "name": "t" },
                "affinityGroupIDs": ["g"],
                "failureDomainName": "a",
                "networks": [{ "name": "n", "ip": "10.0.0.1" }],
                "uncompressedUserData": true,
            }),
            json!({ "ready": true, "failureDomain": "a", "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] }),
        ),
        of(
            "v1beta3",
            "CloudStackMachineTemplate",
            json!({ "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "offering": { "name": "o" }, "template": { "name": "t" }, "networks": [{ "name": "n" }] },
            }}),
            json!({ "capacity": { "cpu": "2" } }),
        ),
        of(
            "v1beta3",
            "CloudStackIsolatedNetwork",
            json!({ "controlPlaneEndpoint": { "host": "", "port": 0 }, "failureDomainName": "a", "offering": "o" }),
            json!({ "ready": true, "routingMode": "Static", "publicIPID": "p" }),
        ),
        of(
            "v1beta3",
            "CloudStackAffinityGroup",
            json!({ "name": "g", "failureDomainName": "a" }),
            json!({ "ready": true }),
        ),
    ];
    for object in stored {
        for version in ["v1beta1", "v1beta2"] {
            let kind = object["kind"].as_str().unwrap();
            if (kind, version) == ("CloudStackFailureDomain", "v1beta1") {
                assert!(convert(object.clone(), version).is_err(), "there was none");
                continue;
            }
            let earlier = convert(object.clone(), version).unwrap();
            assert_eq!(earlier["apiVersion"], format!("{GROUP}/{version}"));
            assert_eq!(convert(earlier, "v1beta3").unwrap(), object, "{kind} {version}");
        }
    }
}

#[test]
fn a_change_made_in_an_earlier_version_arrives_and_destroys_nothing() {
    let object = of(
        "v1beta3",
        "CloudStackMachine",
        json!({ "offering": { "name": "o" }, "template": { "name": "t" }, "affinityGroupIDs": ["g"], "networks": [{ "name": "n" }] }),
        json!({ "ready": false, "failureDomain": "a" }),
    );
    let mut earlier = convert(object, "v1beta1").unwrap();
    assert_eq!(earlier["spec"]["affinitygroupids"], json!(["g"]));
    earlier["spec"]["affinitygroupids"] = json!(["g", "h"]);
    earlier["spec"]["sshKey"] = json!("k");
    let new = convert(earlier, "v1beta3").unwrap();
    assert_eq!(new["spec"]["affinityGroupIDs"], json!(["g", "h"]));
    assert_eq!(new["spec"]["sshKey"], "k");
    assert_eq!(new["spec"]["networks"], json!([{ "name": "n" }]));
    assert_eq!(new["status"]["failureDomain"], "a");
}

#[test]
fn earlier_versions_are_converted_into_each_other_through_the_stored_one() {
    let spec = json!({ "offering": { "name": "o" }, "template": { "name": "t" }, "affinitygroupids": ["g"], "zoneID": "z" });
    let old = of("v1beta1", "CloudStackMachine", spec, json!({ "ready": true }));
    let newer = convert(old.clone(), "v1beta2").unwrap();
    assert_eq!(newer["spec"]["affinityGroupIDs"], json!(["g"]));
    serde_json::from_value::<v1beta2::CloudStackMachine>(newer.clone()).unwrap();
    assert_eq!(convert(newer, "v1beta1").unwrap(), old);
}

#[test]
fn a_template_may_say_in_v1beta2_that_it_has_no_metadata() {
    let spec = json!({ "template": { "metadata": null, "spec": { "offering": {}, "template": {} } } });
    let template = of("v1beta2", "CloudStackMachineTemplate", spec, json!({}));
    let stored = convert(template.clone(), "v1beta3").unwrap();
    assert_eq!(stored["spec"]["template"]["metadata"], Value::Null);
    assert_eq!(convert(stored, "v1beta2").unwrap()["spec"], template["spec"]);
}

#[test]
fn failure_domains_in_status_are_read_as_capc_wrote_them_and_written_as_the_contract_wants() {
    let map =
        json!({ "status": { "ready": true, "failureDomains": { "b": { "controlPlane": true }, "a": {} } } });
    let cluster: CloudStackCluster = serde_json::from_value(map).unwrap();
    assert_eq!(
        serde_json::to_value(&cluster).unwrap()["status"]["failureDomains"],
        json!([{ "name": "a" }, { "name": "b", "controlPlane": true }])
    );
}

#[test]
fn what_the_schema_requires_is_written_even_when_it_is_empty() {
    let cluster: CloudStackCluster =
        serde_json::from_value(json!({ "spec": { "syncWithACS": false } })).unwrap();
    assert_eq!(
        serde_json::to_value(&cluster).unwrap()["spec"],
        json!({ "failureDomains": [], "controlPlaneEndpoint": { "host": "", "port": 0 }, "syncWithACS": false })
    );
    let machine: CloudStackMachine =
        serde_json::from_value(json!({ "status": { "instanceState": "Starting" } })).unwrap();
    assert_eq!(
        serde_json::to_value(&machine).unwrap()["status"],
        json!({ "ready": false, "instanceState": "Starting" })
    );
}

#[test]
fn definitions_serve_every_version_and_lead_each_contract_to_its_own() {
    let definitions = definitions();
    assert_eq!(definitions.len(), 8);
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap();
        assert!(name.ends_with(GROUP));
        assert_eq!(definition["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"], "v1beta3");
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let names: Vec<&str> = versions.iter().map(|version| version["name"].as_str().unwrap()).collect();
        let labelled = &definition["metadata"]["labels"]["cluster.x-k8s.io/v1beta1"];
        if name.starts_with("cloudstackclustertemplates") {
            // CAPC has no such kind.
            assert_eq!((names, labelled), (vec!["v1beta3"], &Value::Null));
            continue;
        }
        assert_eq!(labelled, "v1beta1_v1beta2");
        match name.starts_with("cloudstackfailuredomains") {
            true => assert_eq!(names, ["v1beta2", "v1beta3"]),
            false => assert_eq!(names, ["v1beta1", "v1beta2", "v1beta3"]),
        }
        for version in versions {
            assert_eq!(version["storage"], version["name"] == "v1beta3");
            assert_eq!(version["subresources"]["status"], json!({}), "{name}");
        }
    }
}
