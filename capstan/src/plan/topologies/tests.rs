use capstan_rehearsal::{MachineEventKind, MachineInfo};

use super::*;

const OLD: &str = "one-md-old";
const NEW: &str = "one-md-new";

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let labels = json!({label::CLUSTER_NAME: "one", label::TOPOLOGY_OWNED: ""});
    json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": "n", "labels": labels}, "spec": spec})
}

fn cluster(name: &str, class: Value, reconciled: (&str, &str)) -> Value {
    let mut cluster = object(
        "Cluster",
        name,
        json!({
            "topology": {"classRef": class, "version": "v1.36.0"},
            "controlPlaneRef": {"kind": "KubeadmControlPlane", "name": format!("{name}-cp")},
        }),
    );
    cluster["status"]["conditions"] =
        json!([{"type": "TopologyReconciled", "status": reconciled.0, "message": reconciled.1}]);
    cluster
}

fn deployment(template: &str, version: &str) -> Value {
    object(
        "MachineDeployment",
        "one-md",
        json!({"template": {"spec": {
            "version": version,
            "infrastructureRef": {"kind": "SimMachineTemplate", "name": template},
            "bootstrap": {"configRef": {"kind": "KubeadmConfigTemplate", "name": "same"}},
        }}}),
    )
}

fn step(what: MachineEventKind, of: &str) -> MachineEvent {
    let machine = MachineInfo {
        namespace: "n".to_owned(),
        name: "m".to_owned(),
        cluster: "one".to_owned(),
        of: of.to_owned(),
        ..MachineInfo::default()
    };
    MachineEvent { seconds: 0, what, machine, why: String::new() }
}

fn class() -> Value {
    let reference =
        |kind: &str| json!({"templateRef": {"apiVersion": "x/v1", "kind": kind, "name": "quick"}});
    object(
        "ClusterClass",
        "quick",
        json!({"infrastructure": reference("SimClusterTemplate"), "controlPlane": reference("ControlPlaneTemplate")}),
    )
}

fn named(kind: &str, name: &str) -> Vec<Named> {
    vec![(kind.to_owned(), Key::new("n", name))]
}

#[test]
fn rotated_templates_and_replaced_machines_are_listed_by_cluster() {
    let quick = || json!({"name": "quick"});
    let check = |name: &str| object("MachineHealthCheck", name, json!({}));
    let course = Preview {
        objects_before: vec![
            class(),
            cluster("one", quick(), ("True", "")),
            cluster("two", quick(), ("True", "")),
            deployment(OLD, "v1.36.0"),
            check("gone"),
        ],
        objects: vec![
            class(),
            cluster("one", quick(), ("True", "")),
            cluster("two", quick(), ("False", "spec.topology.variables: x is required")),
            cluster("other", json!({"name": "another"}), ("True", "")),
            deployment(NEW, "v1.36.1"),
            check("new"),
        ],
        steps: vec![
            step(MachineEventKind::Created, "MachineDeployment/one-md"),
            step(MachineEventKind::Deleted, "MachineDeployment/one-md"),
        ],
        ..Preview::default()
    };
    let plans = of(&named("ClusterClass", "quick"), &course);
    assert_eq!(
        lines(&plans),
        [
            "Cluster/one (ClusterClass/quick): 1 machine replaced",
            "  MachineDeployment/one-md: SimMachineTemplate rotated, spec.template.spec.version: v1.36.0 → v1.36.1, 1 machine \
             replaced",
            "  MachineHealthCheck/gone: deleted",
            "  MachineHealthCheck/new: created",
            "Cluster/two (ClusterClass/quick): not reconciled: spec.topology.variables: x is required",
        ]
    );
    // By a template of the class.
    assert_eq!(of(&named("ControlPlaneTemplate", "quick"), &course), plans);
    // Not named, and changed nevertheless.
    let changed = of(&named("ControlPlaneTemplate", "other"), &course);
    assert_eq!(changed, plans[..1]);
}

#[test]
fn a_cluster_that_a_change_of_its_class_does_not_touch_is_listed_as_such() {
    let class_elsewhere = json!({"name": "quick", "namespace": "shared"});
    let objects = vec![cluster("one", class_elsewhere, ("True", "")), deployment(OLD, "v1.36.0")];
    let course = Preview { objects_before: objects.clone(), objects, ..Preview::default() };
    let class = vec![("ClusterClass".to_owned(), Key::new("shared", "quick"))];
    assert_eq!(lines(&of(&class, &course)), ["Cluster/one (ClusterClass/shared/quick): no change"]);
    assert_eq!(of(&named("ClusterClass", "quick"), &course), []);
    assert_eq!(of(&named("Cluster", "one"), &course).len(), 1, "it is named itself");
}

#[test]
fn what_providers_write_is_no_change() {
    let pool = |ids: Value, replicas: i32| {
        object(
            "MachinePool",
            "one-mp",
            json!({"replicas": replicas, "providerIDList": ids, "template": {"spec": {
                "bootstrap": {"dataSecretName": ids.to_string(), "configRef": {"kind": "KubeadmConfig", "name": "one-mp"}},
                "infrastructureRef": {"kind": "SimMachinePool", "name": "one-mp"},
            }}}),
        )
    };
    let with = |pool: Value| vec![cluster("one", json!({"name": "quick"}), ("True", "")), pool];
    let course = |after: Value| Preview {
        objects_before: with(pool(json!(["a"]), 1)),
        objects: with(after),
        ..Preview::default()
    };
    assert_eq!(of(&[], &course(pool(json!(["a", "b"]), 1))), []);
    let scaled = of(&[], &course(pool(json!(["a", "b"]), 2)));
    assert_eq!(lines(&scaled)[1], "  MachinePool/one-mp: spec.replicas: 1 → 2");
}
