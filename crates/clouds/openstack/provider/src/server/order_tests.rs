//! Orders of ports, volumes and servers, as tables: spec and observed state in, journaled call and request out.

use capstan_controller::{Call as _, Intent};
use capstan_openstack_types::v1alpha1::{OpenStackServer, ResolvedServerSpec};
use capstan_openstack_types::v1beta1::ResolvedPortSpec;
use serde_json::{Value, json};

use super::ServerCall;
use super::decide::decide;
use super::observed::{Seen, ServerState};
use super::order::PortOrder;
use super::tests::{at, calls, object, prepared, read, resolved, seen, volume};

/// The object with a spec of these fields, its two ports and boot data.
fn wanting(spec: Value) -> OpenStackServer {
    let mut object = object();
    let mut whole = serde_json::to_value(&object.spec).expect("JSON");
    whole.as_object_mut().expect("an object").extend(spec.as_object().expect("an object").clone());
    object.spec = read(whole);
    object
}

fn decided(object: OpenStackServer, seen: Seen) -> Vec<ServerCall> {
    calls(&decide(&at(object, seen)))
}

/// The only call.
fn one(object: OpenStackServer, state: ServerState) -> ServerCall {
    let mut all = decided(object, seen(state));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn written(call: &ServerCall) -> Value {
    let written = serde_json::to_value(call).expect("JSON");
    assert_eq!(&read::<ServerCall>(written.clone()), call, "it reads back as it was written");
    written
}

/// What the journal has of a server without options, and with a change.
fn server(change: Value) -> Value {
    let mut order = json!({
        "v": 1, "image": "i1", "flavor": "f1", "zone": null, "ports": ["p0", "p1"], "tags": [],
        "metadata": {"capstan-mark": "u"}, "configDrive": null, "key": null, "disks": [], "group": null,
        "hints": {},
        "bootData": {"secret": "m-data", "key": "value", "uid": "su", "resourceVersion": "7"},
    });
    order.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
    json!({"verb": "createServer", "name": "m", "order": order})
}

fn disk(source: &str, id: Option<&str>, size: Option<u64>, tag: Option<&str>) -> Value {
    json!({"source": source, "id": id, "size": size, "tag": tag, "root": tag.is_none()})
}

#[test]
fn the_order_of_a_server_says_everything_that_the_manifest_and_the_cloud_say() {
    let holding = |names: &[&str]| ServerState {
        volumes: names.iter().map(|name| volume(name, "available")).collect(),
        ..prepared()
    };
    let grouped = ResolvedServerSpec { server_group_id: "g1".to_owned(), ..resolved() };
    let root = json!({"sizeGiB": 20});
    let devices = json!([
        {"name": "etcd", "sizeGiB": 5, "storage": {"type": "Local"}},
        {"name": "data", "sizeGiB": 50, "storage": {"type": "Volume"}},
    ]);
    let more =
        [disk("blank", None, Some(5), Some("etcd")), disk("volume", Some("id-m-data"), None, Some("data"))];
    let after = |first: Value| {
        let all: Vec<Value> = std::iter::once(first).chain(more.iter().cloned()).collect();
        json!(all)
    };
    let boot_volume = disk("volume", Some("id-m-root"), None, None);
    let rows: Vec<(&str, Value, ServerState, Value)> = vec![
        ("no options", json!({}), prepared(), json!({})),
        (
            "a boot volume",
            json!({"rootVolume": root.clone()}),
            holding(&["m-root"]),
            json!({"image": null, "disks": [boot_volume.clone()]}),
        ),
        (
            "more disks",
            json!({"additionalBlockDevices": devices.clone()}),
            holding(&["m-data"]),
            json!({"disks": after(disk("image", Some("i1"), None, None))}),
        ),
        (
            "a boot volume and more disks",
            json!({"rootVolume": root, "additionalBlockDevices": devices}),
            holding(&["m-root", "m-data"]),
            json!({"image": null, "disks": after(boot_volume)}),
        ),
        (
            "scheduler hints",
            json!({"schedulerHintAdditionalProperties": [
                {"name": "reserved", "value": {"type": "Bool", "bool": true}},
                {"name": "rack", "value": {"type": "Number", "number": 7}},
                {"name": "row", "value": {"type": "String", "string": "b"}},
            ]}),
            prepared(),
            json!({"hints": {"reserved": true, "rack": 7, "row": "b"}}),
        ),
        ("a config drive", json!({"configDrive": true}), prepared(), json!({"configDrive": true})),
        (
            "a server group",
            json!({"serverGroup": {"filter": {"name": "apart"}}}),
            ServerState { resolved: Some(Ok(grouped)), ..prepared() },
            json!({"group": "g1"}),
        ),
        (
            "a zone, a key, tags and metadata",
            json!({
                "availabilityZone": "az1", "sshKeyName": "k", "tags": ["blue"],
                "serverMetadata": [{"key": "team", "value": "a"}],
            }),
            prepared(),
            json!({
                "zone": "az1", "key": "k", "tags": ["blue"], "metadata": {"capstan-mark": "u", "team": "a"},
            }),
        ),
    ];
    for (says, spec, state, change) in rows {
        assert_eq!(written(&one(wanting(spec), state)), server(change), "{says}");
    }
}

#[test]
fn a_server_without_boot_data_is_ordered_without() {
    let mut object = object();
    object.spec.user_data_ref = None;
    let all = decided(object, Seen { boot_data: None, ..seen(prepared()) });
    assert_eq!(all.iter().map(written).collect::<Vec<_>>(), [server(json!({"bootData": null}))]);
}

#[test]
fn the_order_of_a_volume_is_the_whole_request() {
    let volumes = json!({
        "availabilityZone": "az1",
        "rootVolume": {"sizeGiB": 20, "type": "ssd", "availabilityZone": {"from": "Machine"}},
        "additionalBlockDevices": [
            {"name": "etcd", "sizeGiB": 5, "storage": {"type": "Local"}},
            {"name": "data", "sizeGiB": 50, "storage": {
                "type": "Volume", "volume": {"availabilityZone": {"from": "Name", "name": "az2"}},
            }},
            {"name": "logs", "sizeGiB": 7, "storage": {"type": "Volume"}},
        ],
    });
    let order = |name: &str, size: u64, image: Option<&str>, kind: Option<&str>, zone: Option<&str>| {
        let order = json!({
            "v": 2, "name": name, "size": size, "image": image, "kind": kind, "zone": zone,
            "description": "Volume of server m capstan-mark=u",
        });
        json!({"verb": "createVolume", "name": name, "order": order})
    };
    let all = decided(wanting(volumes), seen(prepared()));
    let wanted = [
        order("m-root", 20, Some("i1"), Some("ssd"), Some("az1")),
        order("m-data", 50, None, None, Some("az2")),
        order("m-logs", 7, None, None, None),
    ];
    assert_eq!(all.iter().map(written).collect::<Vec<_>>(), wanted);
    let ServerCall::CreateVolume { order: Some(order), .. } = &all[0] else { panic!("a volume") };
    let request = serde_json::to_value(order.request()).expect("JSON");
    assert_eq!(request["description"], "Volume of server m capstan-mark=u");
    assert_eq!((&request["size"], &request["volume_type"]), (&json!(20), &json!("ssd")));
}

#[test]
fn the_order_of_a_trunk_has_its_description() {
    let mut resolved = resolved();
    resolved.ports[1].trunk = Some(true);
    let call = one(object(), ServerState { resolved: Some(Ok(resolved)), ..prepared() });
    let wanted = json!({
        "verb": "createTrunk", "name": "m-1", "port": "p1",
        "description": "Created by cluster-api-provider-openstack capstan-mark=u",
    });
    assert_eq!(written(&call), wanted);
}

#[test]
fn the_order_of_a_port_is_its_resolved_spec_and_the_mark() {
    let plain = json!({
        "network_id": "n1", "name": "m-0", "description": "a port capstan-mark=u",
    });
    let rows = [
        ("no options", json!({}), json!({})),
        (
            "fixed addresses",
            json!({"fixedIPs": [{"subnet": "s1", "ipAddress": "10.6.0.9"}]}),
            json!({"fixed_ips": [{"subnet_id": "s1", "ip_address": "10.6.0.9"}]}),
        ),
        ("groups", json!({"securityGroups": ["g1", "g2"]}), json!({"security_groups": ["g1", "g2"]})),
        (
            "not guarded: no group, not even the default one",
            json!({"disablePortSecurity": true}),
            json!({"security_groups": [], "port_security_enabled": false}),
        ),
        (
            "not guarded: no address pairs either, which CAPO leaves out too",
            json!({"disablePortSecurity": true, "allowedAddressPairs": [{"ipAddress": "10.6.0.100"}]}),
            json!({"security_groups": [], "port_security_enabled": false}),
        ),
        (
            "hardware offloading",
            json!({"vnicType": "direct", "profile": {"ovsHWOffload": true, "trustedVF": true}}),
            json!({
                "binding:vnic_type": "direct", "binding:profile": {"capabilities": ["switchdev"]},
                "trusted": true,
            }),
        ),
        (
            "settings of an extension",
            json!({"valueSpecs": [{"name": "a", "key": "qos", "value": "gold"}]}),
            json!({"qos": "gold"}),
        ),
    ];
    for (says, change, wanted) in rows {
        let mut spec = json!({"name": "m-0", "description": "a port", "networkID": "n1"});
        spec.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        let spec: ResolvedPortSpec = read(spec);
        let order = PortOrder { spec: spec.clone(), mark: "u".to_owned() };
        let request = serde_json::to_value(order.request()).expect("JSON");
        let mut expected = plain.clone();
        expected.as_object_mut().expect("an object").extend(wanted.as_object().expect("an object").clone());
        assert_eq!(request, expected, "{says}");
        let resolved = ResolvedServerSpec { ports: vec![spec], ..resolved() };
        let state = ServerState { resolved: Some(Ok(resolved)), ports: vec![None], ..prepared() };
        let ServerCall::CreatePort { order: Some(decided), .. } = one(object(), state) else {
            panic!("a port")
        };
        assert_eq!(*decided, order, "{says}");
    }
}

#[test]
fn the_request_for_a_server_is_the_order_and_its_boot_data() {
    let holding = ServerState { volumes: vec![volume("m-root", "available")], ..prepared() };
    let spec = json!({"rootVolume": {"sizeGiB": 20}, "configDrive": true});
    let ServerCall::CreateServer { order: Some(order), .. } = one(wanting(spec), holding) else {
        panic!("a server")
    };
    let request = serde_json::to_value(order.request("m", Some(b"boot"))).expect("JSON");
    let wanted = json!({
        "name": "m", "flavorRef": "f1", "networks": [{"port": "p0"}, {"port": "p1"}],
        "user_data": "Ym9vdA==", "metadata": {"capstan-mark": "u"}, "config_drive": true,
        "block_device_mapping_v2": [{
            "boot_index": 0, "uuid": "id-m-root", "source_type": "volume", "destination_type": "volume",
            "delete_on_termination": true,
        }],
    });
    assert_eq!(request, wanted);
}

#[test]
fn intents_of_releases_before_are_still_read() {
    let volume = json!({
        "v": 1, "name": "m-root", "size": 20, "image": "i1", "kind": null, "zone": null, "mark": "u",
    });
    for (written, key) in [
        (json!({"verb": "createVolume", "name": "m-root", "order": volume}), "volume/m-root"),
        (json!({"verb": "createTrunk", "name": "m-0", "port": "p0"}), "trunk/m-0"),
        (json!({"verb": "createServer", "name": "m"}), "server/m"),
        (json!({"verb": "deleteTrunk", "id": "t0"}), "t0"),
        (json!({"verb": "deletePort", "id": "p0"}), "p0"),
        (json!({"verb": "deleteVolume", "id": "v0"}), "v0"),
    ] {
        let intent = json!([{"key": key, "call": written, "at": "2026-01-01T00:00:00Z"}]);
        let intents: Vec<Intent<ServerCall>> = read(intent);
        assert_eq!(intents[0].call.idempotency_key(), key);
        let has_order = match &intents[0].call {
            ServerCall::CreateVolume { order, .. } => order.is_some(),
            ServerCall::CreateServer { order, .. } => order.is_some(),
            ServerCall::CreateTrunk { description, .. } => description.is_some(),
            _ => false,
        };
        assert!(!has_order, "{key}: resolved, and decided again");
    }
}
