//! What can be created and changed, case by case: those that CAPO checks against a real API server, and some more.

use serde_json::{Value, json};

use super::Api;

const UUID: &str = "6aa02f56-c595-4d2f-9f8e-3c6296a4bed9";

fn with(mut base: Value, fields: Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        match value.is_null() {
            true => drop(base.as_object_mut().unwrap().remove(key)),
            false => base[key] = value.clone(),
        }
    }
    base
}

fn cluster(fields: Value) -> Value {
    with(json!({ "identityRef": { "name": "creds", "cloudName": "openstack" } }), fields)
}

fn machine(fields: Value) -> Value {
    let base = json!({ "flavor": { "filter": { "name": "f" } }, "image": { "filter": { "name": "i" } } });
    with(base, fields)
}

fn server(fields: Value) -> Value {
    let base = json!({
        "flavor": "f", "image": { "filter": { "name": "i" } }, "sshKeyName": "k",
        "identityRef": { "name": "creds", "cloudName": "openstack" },
        "ports": [{ "network": { "filter": { "name": "n" } } }],
    });
    with(base, fields)
}

/// Creates each and compares with what is expected.
fn check(api: &Api, cases: &[(&str, Value, bool)]) {
    for (claim, spec, accepted) in cases {
        let outcome = api.create(spec);
        assert_eq!(outcome.is_ok(), *accepted, "{} {claim}: {outcome:?}", api.kind);
    }
}

/// The cases of a reference by id or filter, with a filter that is good.
fn reference_cases(put: &dyn Fn(Value) -> Value, uuid_only: bool) -> Vec<(&'static str, Value, bool)> {
    let filter = json!({ "name": "foo" });
    vec![
        ("an id", put(json!({ "id": UUID })), true),
        ("a filter", put(json!({ "filter": filter })), true),
        ("neither id nor filter", put(json!({})), false),
        ("an id that is not a UUID", put(json!({ "id": "foo" })), !uuid_only),
        ("an empty filter", put(json!({ "filter": {} })), false),
        ("both id and filter", put(json!({ "id": UUID, "filter": filter })), false),
    ]
}

#[test]
fn things_are_named_by_id_or_by_filter() {
    let (clusters, machines) = (Api::of("OpenStackCluster"), Api::of("OpenStackMachine"));
    for key in ["network", "externalNetwork", "router", "primarySubnet"] {
        check(&clusters, &reference_cases(&|it| cluster(json!({ key: it })), true));
    }
    check(&clusters, &reference_cases(&|it| cluster(json!({ "subnets": [it] })), true));
    let managed = |it| cluster(json!({ "managedRouter": { "externalIPs": [{ "subnet": it }] } }));
    check(&clusters, &reference_cases(&managed, true));
    let balancer = |it| cluster(json!({ "apiServer": { "managedLoadBalancer": { "network": it } } }));
    check(&clusters, &reference_cases(&balancer, true));
    check(&machines, &reference_cases(&|it| machine(json!({ "flavor": it })), false));
    for key in ["image", "serverGroup"] {
        check(&machines, &reference_cases(&|it| machine(json!({ key: it })), true));
    }
    check(&machines, &reference_cases(&|it| machine(json!({ "securityGroups": [it] })), true));
    check(&machines, &reference_cases(&|it| machine(json!({ "ports": [{ "network": it }] })), true));
    let fixed = |it| machine(json!({ "ports": [{ "fixedIPs": [{ "subnet": it }] }] }));
    check(&machines, &reference_cases(&fixed, true));
    let guarded = |it| machine(json!({ "ports": [{ "securityGroups": [it] }] }));
    check(&machines, &reference_cases(&guarded, true));
    let image = |it: Value| machine(json!({ "image": it }));
    check(
        &machines,
        &[
            (
                "an image by name and tags",
                image(json!({ "filter": { "name": "i", "tags": ["a", "b"] } })),
                true,
            ),
            ("an image by id and tags", image(json!({ "id": UUID, "filter": { "tags": ["a"] } })), false),
            ("an image of the resource controller", image(json!({ "imageRef": { "name": "orc" } })), true),
            ("an image of the resource controller without a name", image(json!({ "imageRef": {} })), false),
            (
                "an image by id and by reference",
                image(json!({ "id": UUID, "imageRef": { "name": "orc" } })),
                false,
            ),
        ],
    );
}

#[test]
fn tags_of_filters_hold_no_comma() {
    let (clusters, machines) = (Api::of("OpenStackCluster"), Api::of("OpenStackMachine"));
    let lists: [(&str, bool, Value); 9] = [
        ("one", true, json!({ "tags": ["foo"] })),
        (
            "several",
            true,
            json!({ "tags": ["a", "b"], "tagsAny": ["a"], "notTags": ["a"], "notTagsAny": ["a"] }),
        ),
        ("a comma in front", false, json!({ "tags": [",foo"] })),
        ("a comma behind", false, json!({ "tags": ["foo,"] })),
        ("a comma within", false, json!({ "tagsAny": ["foo,bar"] })),
        ("commas", false, json!({ "notTags": ["foo,,bar"] })),
        ("an empty one", false, json!({ "notTagsAny": [""] })),
        ("a bad second one", false, json!({ "tags": ["foo", ""] })),
        ("the same twice", false, json!({ "tags": ["foo", "foo"] })),
    ];
    for (claim, accepted, filter) in lists {
        let it = json!({ "filter": filter });
        check(
            &clusters,
            &[
                (claim, cluster(json!({ "network": it })), accepted),
                (claim, cluster(json!({ "externalNetwork": it })), accepted),
                (claim, cluster(json!({ "router": it })), accepted),
                (claim, cluster(json!({ "subnets": [it] })), accepted),
            ],
        );
        check(
            &machines,
            &[
                (claim, machine(json!({ "securityGroups": [it] })), accepted),
                (claim, machine(json!({ "ports": [{ "network": it }] })), accepted),
                (claim, machine(json!({ "ports": [{ "fixedIPs": [{ "subnet": it }] }] })), accepted),
                (claim, machine(json!({ "ports": [{ "securityGroups": [it] }] })), accepted),
            ],
        );
    }
}

#[test]
fn clusters_are_checked_when_they_are_created() {
    let api = Api::of("OpenStackCluster");
    let spec = machine(json!({}));
    let bastion = |fields: Value| cluster(json!({ "bastion": fields }));
    let port = |port: i64| cluster(json!({ "apiServer": { "port": port } }));
    let identity = |it: Value| cluster(json!({ "identityRef": it }));
    let rule = |fields: Value| with(json!({ "name": "r", "direction": "ingress" }), fields);
    let groups = |list: &str, rules: Value| cluster(json!({ "managedSecurityGroups": { list: rules } }));
    check(
        &api,
        &[
            ("the smallest", cluster(json!({})), true),
            ("an empty definition of groups", cluster(json!({ "managedSecurityGroups": {} })), true),
            ("a bastion with a spec", bastion(json!({ "enabled": true, "spec": spec })), true),
            ("a bastion that is enabled by default", bastion(json!({ "spec": spec })), true),
            ("a bastion without a spec", bastion(json!({ "enabled": true })), false),
            ("a disabled bastion without a spec", bastion(json!({ "enabled": false })), true),
            ("an empty bastion", bastion(json!({})), false),
            ("an address of the bastion", bastion(json!({ "spec": spec, "floatingIP": "10.0.0.0" })), true),
            ("no address of the bastion", bastion(json!({ "spec": spec, "floatingIP": "foobar" })), false),
            (
                "an address of the bastion without an external network",
                cluster(json!({
                    "bastion": { "spec": spec, "floatingIP": "10.0.0.0" }, "enableExternalNetwork": false,
                    "apiServer": { "enableFloatingIP": false },
                })),
                false,
            ),
            (
                "a floating IP without an external network",
                cluster(json!({ "apiServer": { "enableFloatingIP": true }, "enableExternalNetwork": false })),
                false,
            ),
            (
                "no external network and nothing said",
                cluster(json!({ "enableExternalNetwork": false })),
                false,
            ),
            (
                "no external network and no floating IP",
                cluster(
                    json!({ "apiServer": { "enableFloatingIP": false }, "enableExternalNetwork": false }),
                ),
                true,
            ),
            ("port -1", port(-1), false),
            ("port 0", port(0), true),
            ("port 65535", port(65535), true),
            ("port 65536", port(65536), false),
            ("no identity", cluster(json!({ "identityRef": null })), false),
            ("an identity without a name", identity(json!({ "cloudName": "openstack" })), false),
            ("an identity without a cloud", identity(json!({ "name": "creds" })), false),
            ("an identity with an empty name", identity(json!({ "name": "", "cloudName": "o" })), false),
            ("an identity with an empty cloud", identity(json!({ "name": "creds", "cloudName": "" })), false),
            ("another type", identity(json!({ "type": "Other", "name": "creds", "cloudName": "o" })), false),
            (
                "a shared identity",
                identity(json!({ "type": "ClusterIdentity", "name": "p", "cloudName": "o" })),
                true,
            ),
            ("an empty managed network", cluster(json!({ "managedNetwork": {} })), false),
            ("a managed network with an MTU", cluster(json!({ "managedNetwork": { "mtu": 1400 } })), true),
            ("an empty managed router", cluster(json!({ "managedRouter": {} })), false),
            (
                "no address of a managed router",
                cluster(json!({ "managedRouter": { "externalIPs": [] } })),
                false,
            ),
            (
                "two managed subnets",
                cluster(json!({ "managedSubnets": [{ "cidr": "10.0.0.0/24" }, { "cidr": "10.0.1.0/24" }] })),
                false,
            ),
            ("a managed subnet without a range", cluster(json!({ "managedSubnets": [{}] })), false),
            ("the same tag twice", cluster(json!({ "tags": ["a", "a"] })), false),
            (
                "a rule for one group",
                groups(
                    "clusterNodesSecurityGroupRules",
                    json!([rule(json!({ "remoteManagedGroups": ["worker"] }))]),
                ),
                true,
            ),
            (
                "a rule for another group",
                groups(
                    "clusterNodesSecurityGroupRules",
                    json!([rule(json!({ "remoteManagedGroups": ["others"] }))]),
                ),
                false,
            ),
            (
                "a rule in another direction",
                groups("workerNodesSecurityGroupRules", json!([rule(json!({ "direction": "up" }))])),
                false,
            ),
            (
                "two rules of one name",
                groups("workerNodesSecurityGroupRules", json!([rule(json!({})), rule(json!({}))])),
                false,
            ),
            (
                "a rule for a group and a range",
                groups(
                    "controlPlaneNodesSecurityGroupRules",
                    json!([rule(json!({ "remoteGroupID": "g", "remoteIPPrefix": "10.0.0.0/8" }))]),
                ),
                false,
            ),
            (
                "a rule for a managed group and another",
                groups(
                    "workerNodesSecurityGroupRules",
                    json!([rule(json!({ "remoteManagedGroups": ["worker"], "remoteGroupID": "g" }))]),
                ),
                false,
            ),
            (
                "too many retries",
                cluster(
                    json!({ "apiServer": { "managedLoadBalancer": { "monitor": { "maxRetries": 11 } } } }),
                ),
                false,
            ),
        ],
    );
}

#[test]
fn defaults_are_filled_in_where_there_is_something_to_fill() {
    let api = Api::of("OpenStackCluster");
    let made = |fields: Value| api.create(&cluster(fields)).unwrap()["spec"].clone();
    assert_eq!(made(json!({}))["identityRef"]["type"], "Secret");
    assert_eq!(made(json!({})).get("apiServer"), None);
    let balancer = made(json!({ "apiServer": { "managedLoadBalancer": {} } }));
    assert_eq!(balancer["apiServer"]["managedLoadBalancer"]["enabled"], true);
    assert_eq!(made(json!({ "bastion": { "spec": machine(json!({})) } }))["bastion"]["enabled"], true);
    assert_eq!(
        made(json!({ "managedSecurityGroups": {} }))["managedSecurityGroups"]["allowAllInClusterTraffic"],
        false
    );
}

/// Cases of servers and machines alike: disks, ports, hints.
fn machine_cases(base: &dyn Fn(Value) -> Value) -> Vec<(String, Value, bool)> {
    let long = "a".repeat(256);
    let mut cases: Vec<(String, Value, bool)> = vec![
        ("the smallest".to_owned(), base(json!({})), true),
        ("a long key".to_owned(), base(json!({ "serverMetadata": [{ "key": long, "value": "v" }] })), false),
        (
            "a long value".to_owned(),
            base(json!({ "serverMetadata": [{ "key": "k", "value": long }] })),
            false,
        ),
        (
            "a key and a value of 255 characters".to_owned(),
            base(json!({ "serverMetadata": [{ "key": "a".repeat(255), "value": "b".repeat(255) }] })),
            true,
        ),
        ("no flavor".to_owned(), base(json!({ "flavor": null })), false),
        ("no image".to_owned(), base(json!({ "image": null })), false),
        ("a root volume of no size".to_owned(), base(json!({ "rootVolume": { "sizeGiB": 0 } })), false),
        (
            "unguarded with groups".to_owned(),
            base(json!({ "ports": [{ "enablePortSecurity": false, "securityGroups": [{ "id": UUID }] }] })),
            false,
        ),
        (
            "guarded with groups".to_owned(),
            base(json!({ "ports": [{ "enablePortSecurity": true, "securityGroups": [{ "id": UUID }] }] })),
            true,
        ),
        (
            "an address pair without an address".to_owned(),
            base(json!({ "ports": [{ "allowedAddressPairs": [{ "macAddress": "fa:16:3e:00:00:01" }] }] })),
            false,
        ),
    ];
    let device =
        |name: &str, size: i64, storage: Value| json!({ "name": name, "sizeGiB": size, "storage": storage });
    let local = || json!({ "type": "Local" });
    let root = json!({ "sizeGiB": 50 });
    for (claim, devices, with_root, accepted) in [
        ("a device", json!([device("user", 30, local())]), true, true),
        ("a device called root beside a root volume", json!([device("root", 30, local())]), true, false),
        ("a device called root alone", json!([device("root", 30, local())]), false, true),
        ("a device of no size", json!([device("user", 0, local())]), false, false),
        ("a device without a name", json!([device("", 1, local())]), false, false),
        ("two devices of one name", json!([device("a", 1, local()), device("a", 2, local())]), false, false),
        ("a device kept elsewhere", json!([device("a", 1, json!({ "type": "Tape" }))]), false, false),
    ] {
        let mut fields = json!({ "additionalBlockDevices": devices });
        if with_root {
            fields["rootVolume"] = root.clone();
        }
        cases.push((claim.to_owned(), base(fields), accepted));
    }
    for (claim, zone, accepted) in [
        ("a zone by name, by default", json!({ "name": "az" }), true),
        ("a zone by name", json!({ "from": "Name", "name": "az" }), true),
        ("the zone of the machine", json!({ "from": "Machine" }), true),
        ("a zone from elsewhere", json!({ "from": "invalid" }), false),
        ("no zone", json!({}), false),
        ("a zone without its name", json!({ "from": "Name" }), false),
        ("the zone of the machine with a name", json!({ "from": "Machine", "name": "az" }), false),
        ("a zone with an empty name", json!({ "from": "Name", "name": "" }), false),
        ("a zone with a space", json!({ "from": "Name", "name": "a z" }), false),
    ] {
        let volume = json!({ "type": "Volume", "volume": { "availabilityZone": zone } });
        let devices = json!({ "additionalBlockDevices": [device("v", 1, volume)] });
        cases.push((format!("{claim}, of a device"), base(devices), accepted));
        let root = json!({ "rootVolume": { "sizeGiB": 1, "availabilityZone": zone } });
        cases.push((format!("{claim}, of the root volume"), base(root), accepted));
    }
    for (claim, hint, accepted) in [
        ("a hint without a name", json!({ "name": "", "value": { "type": "Bool", "bool": true } }), false),
        ("a hint without a value", json!({ "name": "h" }), false),
        ("a hint with an empty value", json!({ "name": "h", "value": {} }), false),
        ("a truth", json!({ "name": "h", "value": { "type": "Bool", "bool": false } }), true),
        ("a text", json!({ "name": "h", "value": { "type": "String", "string": "s" } }), true),
        ("a number", json!({ "name": "h", "value": { "type": "Number", "number": 0 } }), true),
        ("a truth as text", json!({ "name": "h", "value": { "type": "Bool", "string": "s" } }), false),
        ("a text as number", json!({ "name": "h", "value": { "type": "String", "number": 1 } }), false),
        ("a number as truth", json!({ "name": "h", "value": { "type": "Number", "bool": true } }), false),
        ("two values", json!({ "name": "h", "value": { "type": "Bool", "bool": true, "number": 1 } }), false),
        ("an empty text", json!({ "name": "h", "value": { "type": "String", "string": "" } }), false),
        ("another type", json!({ "name": "h", "value": { "type": "Float" } }), false),
    ] {
        cases.push((
            claim.to_owned(),
            base(json!({ "schedulerHintAdditionalProperties": [hint] })),
            accepted,
        ));
    }
    cases.push(("no hints".to_owned(), base(json!({ "schedulerHintAdditionalProperties": [] })), true));
    cases
}

/// Ports of servers keep to v1beta1.
fn say_disable(spec: &mut Value) {
    for port in spec["ports"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(enabled) = port.remove("enablePortSecurity") {
            port.insert("disablePortSecurity".to_owned(), (enabled == false).into());
        }
    }
}

#[test]
fn machines_and_servers_are_checked_when_they_are_created() {
    for (kind, base) in [
        ("OpenStackMachine", machine as fn(Value) -> Value),
        ("OpenStackServer", server as fn(Value) -> Value),
    ] {
        let api = Api::of(kind);
        for (claim, mut spec, accepted) in machine_cases(&base) {
            if kind == "OpenStackServer" {
                say_disable(&mut spec);
            }
            let outcome = api.create(&spec);
            assert_eq!(outcome.is_ok(), accepted, "{kind} {claim}: {outcome:?}");
        }
    }
    let servers = Api::of("OpenStackServer");
    check(
        &servers,
        &[
            ("a flavor by id", server(json!({ "flavor": null, "flavorID": UUID })), true),
            ("no ports", server(json!({ "ports": null })), false),
            ("no key", server(json!({ "sshKeyName": null })), false),
            ("no identity", server(json!({ "identityRef": null })), false),
        ],
    );
    let template = Api::of("OpenStackMachineTemplate");
    let of = |spec: Value| json!({ "template": { "spec": spec } });
    check(
        &template,
        &[
            ("a template", of(machine(json!({}))), true),
            ("a template with a provider id", of(machine(json!({ "providerID": "openstack:///x" }))), false),
        ],
    );
    let pools = Api::of("OpenStackFloatingIPPool");
    let pool =
        |policy: &str| json!({ "identityRef": { "name": "c", "cloudName": "o" }, "reclaimPolicy": policy });
    check(
        &pools,
        &[
            ("a pool that keeps", pool("Retain"), true),
            ("a pool that deletes", pool("Delete"), true),
            ("a pool that does neither", pool("Sell"), false),
        ],
    );
    let identities = Api::of("OpenStackClusterIdentity");
    check(
        &identities,
        &[
            ("no secret", json!({}), false),
            ("a secret without a namespace", json!({ "secretRef": { "name": "s" } }), false),
        ],
    );
}
