//! What may change.

use serde_json::{Value, json};

use super::Api;
use crate::GROUP;
use crate::admission::rules;

fn patched(mut base: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = base.pointer_mut(parent).unwrap();
        match value.is_null() {
            true => drop(parent.as_object_mut().unwrap().remove(key)),
            false => parent[key] = value.clone(),
        }
    }
    base
}

/// Claim, changes by path, whether they are accepted.
type Case<'a> = (&'a str, &'a [(&'a str, Value)], bool);

/// Changes one object after another, each from the same beginning.
fn check(api: &Api, old: &Value, status: Value, cases: &[Case<'_>]) {
    let mut stored = api.create(old).unwrap();
    stored["metadata"]["resourceVersion"] = "1".into();
    if !status.is_null() {
        stored["status"] = status;
    }
    for (claim, changes, accepted) in cases {
        let outcome = api.update(&stored, &patched(old.clone(), changes));
        assert_eq!(outcome.is_ok(), *accepted, "{} {claim}: {outcome:?}", api.kind);
    }
}

const UUID: &str = "6aa02f56-c595-4d2f-9f8e-3c6296a4bed9";

fn cluster() -> Value {
    json!({
        "identityRef": { "name": "creds", "cloudName": "openstack" },
        "managedSubnets": [{ "cidr": "10.0.0.0/24", "dnsNameservers": ["192.0.2.1"] }],
        "managedSecurityGroups": { "allowAllInClusterTraffic": false },
        "apiServer": { "managedLoadBalancer": { "allowedCIDRs": ["10.0.0.0/8"] } },
        "bastion": { "enabled": false },
        "tags": ["a"],
    })
}

#[test]
fn most_of_a_cluster_is_fixed_and_the_rest_is_listed() {
    let api = Api::of("OpenStackCluster");
    let machine = json!({ "flavor": { "id": UUID }, "image": { "id": UUID } });
    check(
        &api,
        &cluster(),
        Value::Null,
        &[
            ("nothing", &[], true),
            (
                "credentials",
                &[("/identityRef/name", json!("other")), ("/identityRef/cloudName", json!("x"))],
                true,
            ),
            ("the region", &[("/identityRef/region", json!("r"))], false),
            ("tags", &[("/tags", json!(["b"]))], false),
            ("name servers", &[("/managedSubnets", json!([{ "cidr": "10.0.0.0/24" }]))], true),
            ("the range of a subnet", &[("/managedSubnets", json!([{ "cidr": "10.1.0.0/24" }]))], false),
            ("the subnets", &[("/managedSubnets", Value::Null)], false),
            (
                "pools of a subnet",
                &[(
                    "/managedSubnets",
                    json!([{ "cidr": "10.0.0.0/24", "allocationPools": [{ "start": "10.0.0.9", "end": "10.0.0.19" }] }]),
                )],
                false,
            ),
            ("traffic within", &[("/managedSecurityGroups/allowAllInClusterTraffic", json!(true))], true),
            (
                "rules",
                &[(
                    "/managedSecurityGroups/workerNodesSecurityGroupRules",
                    json!([{ "name": "r", "direction": "egress" }]),
                )],
                true,
            ),
            (
                "rules that say two things",
                &[(
                    "/managedSecurityGroups/workerNodesSecurityGroupRules",
                    json!([{ "name": "r", "direction": "egress", "remoteGroupID": "g", "remoteIPPrefix": "10.0.0.0/8" }]),
                )],
                false,
            ),
            ("no groups any more", &[("/managedSecurityGroups", Value::Null)], false),
            (
                "who may connect",
                &[("/apiServer/managedLoadBalancer/allowedCIDRs", json!(["192.0.2.0/24"]))],
                true,
            ),
            ("the monitor", &[("/apiServer/managedLoadBalancer/monitor", json!({ "delay": 3 }))], true),
            (
                "the load balancer's provider",
                &[("/apiServer/managedLoadBalancer/provider", json!("ovn"))],
                false,
            ),
            ("no load balancer", &[("/apiServer/managedLoadBalancer/enabled", json!(false))], false),
            ("the port", &[("/apiServer/port", json!(443))], false),
            ("zones", &[("/controlPlaneAvailabilityZones", json!(["z"]))], true),
            ("no zones", &[("/controlPlaneOmitAvailabilityZone", json!(true))], true),
            ("the primary subnet", &[("/primarySubnet", json!({ "id": UUID }))], true),
            ("the network", &[("/network", json!({ "id": UUID }))], false),
            ("a bastion", &[("/bastion", json!({ "enabled": true, "spec": machine }))], true),
            ("no bastion", &[("/bastion", Value::Null)], true),
            ("an endpoint", &[("/controlPlaneEndpoint", json!({ "host": "h", "port": 6443 }))], true),
        ],
    );
}

#[test]
fn what_is_chosen_later_is_chosen_once() {
    let api = Api::of("OpenStackCluster");
    let old = patched(cluster(), &[("/controlPlaneEndpoint", json!({ "host": "h", "port": 6443 }))]);
    check(
        &api,
        &old,
        Value::Null,
        &[
            ("another host", &[("/controlPlaneEndpoint/host", json!("i"))], false),
            ("another port", &[("/controlPlaneEndpoint/port", json!(443))], false),
            ("no endpoint", &[("/controlPlaneEndpoint", Value::Null)], false),
        ],
    );
    let machine = json!({ "flavor": { "id": UUID }, "image": { "id": UUID } });
    let enabled = patched(cluster(), &[("/bastion", json!({ "enabled": true, "spec": machine }))]);
    check(
        &api,
        &enabled,
        Value::Null,
        &[
            ("no bastion while it is enabled", &[("/bastion", Value::Null)], false),
            ("a disabled bastion", &[("/bastion/enabled", json!(false))], true),
        ],
    );
    let fixed = patched(cluster(), &[("/apiServer", json!({ "enableFloatingIP": false }))]);
    check(
        &api,
        &fixed,
        Value::Null,
        &[
            ("the first address", &[("/apiServer/fixedIP", json!("10.0.0.5"))], true),
            ("the first port", &[("/apiServer/port", json!(443))], true),
            ("a floating IP after all", &[("/apiServer/enableFloatingIP", json!(true))], false),
        ],
    );
    let chosen =
        patched(fixed, &[("/apiServer/fixedIP", json!("10.0.0.5")), ("/apiServer/port", json!(443))]);
    check(
        &api,
        &chosen,
        Value::Null,
        &[
            ("another address", &[("/apiServer/fixedIP", json!("10.0.0.6"))], false),
            ("another port", &[("/apiServer/port", json!(6443))], false),
        ],
    );
}

#[test]
fn what_was_found_can_be_written_down() {
    let api = Api::of("OpenStackCluster");
    let old = json!({
        "identityRef": { "name": "creds", "cloudName": "openstack" },
        "network": { "filter": { "name": "net" } },
        "subnets": [{ "filter": { "name": "sub" } }],
    });
    let other = "06c32c52-f207-4f6a-a769-bbcbe5a43f5c";
    let status = json!({
        "network": { "name": "net", "id": UUID, "subnets": [{ "name": "sub", "id": other, "cidr": "10.0.0.0/24" }] },
        "apiServerManagedLoadBalancer": { "name": "lb", "id": UUID, "ip": "203.0.113.5", "internalIP": "10.0.0.5" },
    });
    check(
        &api,
        &old,
        status.clone(),
        &[
            ("the id of the network", &[("/network", json!({ "id": UUID }))], true),
            ("another id", &[("/network", json!({ "id": other }))], false),
            ("another filter", &[("/network", json!({ "filter": { "name": "x" } }))], false),
            ("the id of the subnet", &[("/subnets", json!([{ "id": other }]))], true),
            ("another subnet", &[("/subnets", json!([{ "id": UUID }]))], false),
            (
                "a wider filter",
                &[("/subnets", json!([{ "filter": { "name": "sub", "tags": ["t"] } }]))],
                false,
            ),
            ("the address in use", &[("/apiServer", json!({ "floatingIP": "203.0.113.5" }))], true),
            ("another address", &[("/apiServer", json!({ "floatingIP": "203.0.113.6" }))], false),
        ],
    );
    let pinned = patched(old, &[("/subnets", json!([{ "id": other }]))]);
    check(
        &api,
        &pinned,
        status,
        &[("back to a filter", &[("/subnets", json!([{ "filter": { "name": "sub" } }]))], false)],
    );
}

#[test]
fn references_are_corrected_until_something_is_found() {
    let api = Api::of("OpenStackCluster");
    let by_name = |name: &str| json!({ "filter": { "name": name } });
    let reference = |name: &str| json!({ "name": name, "id": UUID });
    let existing = json!({
        "identityRef": { "name": "creds", "cloudName": "openstack" },
        "network": by_name("n"), "subnets": [by_name("s")], "externalNetwork": by_name("e"),
    });
    let managed = json!({
        "identityRef": { "name": "creds", "cloudName": "openstack" },
        "managedSubnets": [{ "cidr": "10.0.0.0/24" }], "router": by_name("r"), "externalNetwork": by_name("e"),
    });
    let table: [(&str, &Value, Value, [bool; 4]); 7] = [
        ("nothing is found yet", &existing, json!({}), [true, true, true, false]),
        (
            "the external network is found",
            &existing,
            json!({ "externalNetwork": reference("e") }),
            [true, true, false, false],
        ),
        (
            "the network is found",
            &existing,
            json!({ "network": { "name": "n", "id": UUID, "subnets": [] } }),
            [false, false, true, false],
        ),
        (
            "the cluster is provisioned",
            &existing,
            json!({ "initialization": { "provisioned": true } }),
            [false; 4],
        ),
        ("the router is not found yet", &managed, json!({}), [false, false, true, true]),
        (
            "the managed network is made, the router is not found",
            &managed,
            json!({ "network": { "name": "n", "id": UUID, "subnets": [] } }),
            [false, false, true, true],
        ),
        (
            "the router is found",
            &managed,
            json!({ "router": { "name": "r", "id": UUID, "ips": [] } }),
            [false; 4],
        ),
    ];
    for (when, old, status, [network, subnets, external, router]) in table {
        let claims = ["network", "subnet", "external network", "router", "tag"]
            .map(|it| format!("{when}: another {it}"));
        check(
            &api,
            old,
            status,
            &[
                (claims[0].as_str(), &[("/network", by_name("m"))], network),
                (claims[1].as_str(), &[("/subnets", json!([by_name("t")]))], subnets),
                (claims[2].as_str(), &[("/externalNetwork", by_name("f"))], external),
                (claims[3].as_str(), &[("/router", by_name("q"))], router),
                (claims[4].as_str(), &[("/tags", json!(["b"]))], false),
            ],
        );
    }
}

#[test]
fn machines_templates_and_servers_are_fixed() {
    let machine = json!({
        "flavor": { "filter": { "name": "f" } }, "image": { "filter": { "name": "i" } },
        "identityRef": { "name": "c", "cloudName": "o" }, "ports": [{ "nameSuffix": "a" }],
    });
    let pairs = json!([{ "ipAddress": "10.0.0.0/24" }]);
    check(
        &Api::of("OpenStackMachine"),
        &machine,
        Value::Null,
        &[
            ("the provider id", &[("/providerID", json!("openstack:///x"))], true),
            ("credentials", &[("/identityRef/name", json!("d"))], true),
            ("no credentials", &[("/identityRef", Value::Null)], true),
            ("the region", &[("/identityRef/region", json!("r"))], false),
            ("address pairs", &[("/ports/0/allowedAddressPairs", pairs.clone())], true),
            ("a port", &[("/ports/0/nameSuffix", json!("b"))], false),
            ("the flavor", &[("/flavor", json!({ "filter": { "name": "g" } }))], false),
            ("the flavor's id", &[("/flavor", json!({ "id": UUID }))], false),
        ],
    );
    let template = json!({ "template": { "spec": machine } });
    check(
        &Api::of("OpenStackMachineTemplate"),
        &template,
        Value::Null,
        &[
            ("address pairs", &[("/template/spec/ports/0/allowedAddressPairs", pairs)], true),
            ("the flavor", &[("/template/spec/flavor", json!({ "id": UUID }))], false),
            ("credentials", &[("/template/spec/identityRef/name", json!("d"))], false),
        ],
    );
    let of_cluster = json!({ "template": { "spec": cluster() } });
    check(
        &Api::of("OpenStackClusterTemplate"),
        &of_cluster,
        Value::Null,
        &[
            ("nothing", &[], true),
            ("labels", &[("/template/metadata", json!({ "labels": { "a": "b" } }))], true),
            ("zones", &[("/template/spec/controlPlaneAvailabilityZones", json!(["z"]))], false),
        ],
    );
    let server = json!({
        "flavor": "f", "image": { "id": UUID }, "sshKeyName": "k", "ports": [],
        "identityRef": { "name": "c", "cloudName": "o" },
    });
    check(
        &Api::of("OpenStackServer"),
        &server,
        Value::Null,
        &[
            ("nothing", &[], true),
            ("credentials", &[("/identityRef/name", json!("d"))], false),
            ("the flavor", &[("/flavor", json!("g"))], false),
        ],
    );
}

#[test]
fn the_secrets_of_identities_are_known_to_admission() {
    let uses = |kind: &str, spec: Value| {
        let object = json!({ "metadata": { "namespace": "ns" }, "spec": spec });
        let uses = (rules(GROUP, kind).unwrap().secrets)(&object).unwrap();
        uses.iter().map(|used| format!("{} {}", used.path, used.secret)).collect::<Vec<_>>()
    };
    let identity = json!({ "identityRef": { "name": "creds", "cloudName": "o" } });
    assert_eq!(uses("OpenStackCluster", identity.clone()), ["spec.identityRef ns/creds"]);
    assert_eq!(uses("OpenStackMachine", identity.clone()), ["spec.identityRef ns/creds"]);
    assert_eq!(uses("OpenStackFloatingIPPool", identity.clone()), ["spec.identityRef ns/creds"]);
    let template = json!({ "template": { "spec": identity } });
    assert_eq!(uses("OpenStackMachineTemplate", template), ["spec.template.spec.identityRef ns/creds"]);
    let shared = json!({ "identityRef": { "type": "ClusterIdentity", "name": "p", "cloudName": "o" } });
    assert_eq!(uses("OpenStackCluster", shared), Vec::<String>::new());
    let elsewhere = json!({ "secretRef": { "name": "s", "namespace": "operators" } });
    assert_eq!(uses("OpenStackClusterIdentity", elsewhere), ["spec.secretRef operators/s"]);
    let server = json!({ "identityRef": { "name": "creds" }, "userDataRef": { "name": "boot" } });
    assert_eq!(uses("OpenStackServer", server), ["spec.identityRef ns/creds", "spec.userDataRef ns/boot"]);
}
