use capstan_view::{Columns, Paint, event_line, table};
use serde_json::{Value, json};

use crate::cluster::{healthy, now, object, set_conditions};

fn drawn(objects: &[Value], kind: &str, wide: bool) -> Vec<String> {
    let of_kind = |kind: &str| -> Vec<Value> {
        objects.iter().filter(|object| object["kind"] == kind).cloned().collect()
    };
    let clusters = of_kind("Cluster");
    let objects = of_kind(kind);
    let columns = Columns { namespaces: false, wide, clusters: &clusters };
    let lines = table(&objects, columns, now(), Paint::Plain);
    lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn clusters_and_machines_have_columns_of_their_own() {
    let mut objects = healthy();
    objects[0]["status"]["controlPlane"] =
        json!({"desiredReplicas": 3, "readyReplicas": 2, "versions": [{"version": "v1.36.3"}]});
    objects[0]["spec"]["controlPlaneEndpoint"] = json!({"host": "10.0.0.1", "port": 6443});
    assert_eq!(
        drawn(&objects, "Cluster", false),
        ["NAME STATE CONTROL-PLANE WORKERS VERSION AGE MESSAGE", "demo Available 2/3 - v1.36.3 2m0s"]
    );
    assert_eq!(
        drawn(&objects, "Cluster", true)[1],
        "demo Available 2/3 - v1.36.3 10.0.0.1:6443 SimCluster 2m0s"
    );
    let long = "the machine boots and boots and boots and boots and boots and boots and boots";
    set_conditions(
        &mut objects,
        "Machine/demo-cp-a",
        &[("Ready", "False", "NotReady", ""), ("InfrastructureReady", "False", "Booting", long)],
    );
    let machines = drawn(&objects, "Machine", false);
    assert_eq!(machines[0], "NAME CLUSTER STATE ROLE NODE VERSION AGE MESSAGE");
    assert_eq!(
        machines[1],
        "demo-cp-a - Waiting worker - - 2m0s InfrastructureReady: the machine boots and boots and boots …"
    );
    assert!(drawn(&objects, "Machine", true)[1].ends_with(long));
    assert_eq!(drawn(&objects, "KubeadmControlPlane", false)[1], "demo-cp - Available 3/3 v1.36.3 2m0s");
}

#[test]
fn clusters_of_a_class_show_it_and_the_class_shows_them() {
    let mut objects = healthy();
    let plain = objects[0].clone();
    objects[0]["spec"]["topology"] = json!({"classRef": {"name": "quick"}, "version": "v1.37.0"});
    objects[0]["status"]["controlPlane"] = json!({"versions": [{"version": "v1.36.3"}]});
    let mut other = plain;
    other["metadata"]["name"] = "plain".into();
    let mut elsewhere = objects[0].clone();
    elsewhere["metadata"]["namespace"] = "blue".into();
    elsewhere["spec"]["topology"]["classRef"]["namespace"] = "default".into();
    objects.extend([other, elsewhere]);
    let clusters = drawn(&objects, "Cluster", false);
    assert_eq!(clusters[0], "NAME CLASS STATE CONTROL-PLANE WORKERS VERSION AGE MESSAGE");
    assert_eq!(clusters[1], "demo quick Available - - v1.36.3→v1.37.0 2m0s");
    assert_eq!(clusters[2], "plain - Available - - - 2m0s");
    assert_eq!(clusters[3], "demo default/quick Available - - v1.36.3→v1.37.0 2m0s");

    let mut class =
        object("ClusterClass", "quick", "", &[("VariablesReady", "False", "Failed", "no schema")]);
    class["spec"] =
        json!({"workers": {"machineDeployments": [{"class": "large"}], "machinePools": [{"class": "pool"}]}});
    let mut unused = object("ClusterClass", "unused", "", &[("VariablesReady", "True", "Ready", "")]);
    unused["spec"] = json!({});
    objects.extend([class, unused]);
    assert_eq!(
        drawn(&objects, "ClusterClass", false),
        [
            "NAME WORKERS CLUSTERS AGE MESSAGE",
            "quick large,pool 2 (demo,blue/demo) 2m0s VariablesReady: no schema",
            "unused - 0 2m0s",
        ]
    );
}

#[test]
fn an_empty_table_has_no_heading() {
    assert!(drawn(&[], "Cluster", false).is_empty());
}

#[test]
fn events_of_both_api_versions_are_lines() {
    let new = json!({
        "eventTime": "2026-01-01T00:00:10.000000Z", "type": "Warning", "reason": "Failed", "note": "no\nroom",
        "regarding": {"kind": "Machine", "name": "m", "uid": "u"},
        "series": {"count": 3, "lastObservedTime": "2026-01-01T00:01:30.000000Z"},
    });
    let old = json!({
        "lastTimestamp": "2026-01-01T00:01:00Z", "type": "Normal", "reason": "Made", "message": "made",
        "involvedObject": {"kind": "Machine", "name": "m", "uid": "u"},
    });
    let line = |event: &Value| {
        event_line(event, now(), Paint::Plain).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line(&new), "30s Warning Failed Machine/m: no room (×3)");
    assert_eq!(line(&old), "60s Normal Made Machine/m: made");
}

/// Clears the screen, colours, and reverses what follows.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}31m\u{202e}\ny";
const HARMLESS: &str = "x[2J31m y";

#[test]
fn cells_have_no_control_characters_of_a_server() {
    let mut objects = healthy();
    let machine = objects.iter_mut().find(|object| object["kind"] == "Machine").expect("a machine");
    machine["metadata"]["name"] = HOSTILE.into();
    machine["spec"] = json!({"clusterName": HOSTILE, "failureDomain": HOSTILE, "providerID": HOSTILE});
    machine["status"]["nodeRef"] = json!({"name": HOSTILE});
    machine["status"]["addresses"] = json!([{"type": "InternalIP", "address": HOSTILE}]);
    let lines = drawn(&objects, "Machine", true);
    let hostile = lines.iter().find(|line| line.starts_with(HARMLESS)).expect("its row");
    assert_eq!(hostile.matches(HARMLESS).count(), 6, "{hostile}");
    let mut cluster = objects[0].clone();
    cluster["spec"]["controlPlaneEndpoint"] = json!({"host": HOSTILE, "port": 6443});
    let shown = drawn(&[cluster], "Cluster", true);
    assert!(shown[1].contains(&format!("{HARMLESS}:6443")), "{shown:?}");

    let columns = Columns { namespaces: true, wide: true, clusters: &[] };
    let painted = table(&objects[..], columns, now(), Paint::Colours);
    assert!(!painted.contains("\u{1b}[2J") && painted.contains("\u{1b}[32m"), "{painted:?}");
}

#[test]
fn lines_of_events_have_no_control_characters_of_a_server() {
    let event = json!({
        "lastTimestamp": "2026-01-01T00:01:00Z", "type": HOSTILE, "reason": HOSTILE, "message": HOSTILE,
        "involvedObject": {"kind": HOSTILE, "name": HOSTILE, "uid": "u"},
    });
    let line = event_line(&event, now(), Paint::Plain);
    assert!(!line.contains(char::is_control) && !line.contains('\u{202e}'), "{line:?}");
    assert_eq!(line.matches(HARMLESS).count(), 5, "{line:?}");
}
