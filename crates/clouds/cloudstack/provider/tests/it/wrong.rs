//! What a manifest may get wrong, or a cloud may lack: the cases of CAPC's own e2e suite and some more. Each is reported in a
//! condition by code and field, and goes without a trace when it is deleted.

use std::time::Duration;

use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_cloudstack_provider::code;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachine};
use capstan_controller::{Code, Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::{Key, Object};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::failures::says;
use crate::manifests::{self, NAME, NAMESPACE, Shape};
use crate::story::CheckResult;
use crate::story::{Script, failed};

/// The kind whose condition reports it.
#[derive(Clone, Copy)]
enum Where {
    Cluster,
    Machine,
}

use Where::{Cluster as InCluster, Machine as InMachine};

struct Case {
    name: &'static str,
    /// Kind of the document that is wrong, where in it, and what is there.
    wrong: (&'static str, &'static str, Value),
    reported_in: Where,
    code: Code,
    /// What the message names.
    names: &'static str,
}

const DOMAIN: &str = "/spec/failureDomains/0";

fn case(
    name: &'static str,
    wrong: (&'static str, &'static str, Value),
    reported_in: Where,
    code: Code,
    names: &'static str,
) -> Case {
    Case { name, wrong, reported_in, code, names }
}

fn disk(fields: Value) -> Value {
    let mut disk = json!({"mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data"});
    if let (Some(disk), Value::Object(fields)) = (disk.as_object_mut(), fields) {
        disk.extend(fields);
    }
    disk
}

fn cases() -> Vec<Case> {
    let (cluster, machine) = ("CloudStackCluster", "CloudStackMachine");
    vec![
        case(
            "account",
            (cluster, DOMAIN, json!({"account": "nobody", "domain": "ROOT/tenants"})),
            InCluster,
            code::NOT_FOUND,
            "could not find account \"nobody\"",
        ),
        case(
            "domain",
            (cluster, DOMAIN, json!({"account": "capstan", "domain": "ROOT/elsewhere"})),
            InCluster,
            code::NOT_FOUND,
            "in domain \"ROOT/elsewhere\"",
        ),
        case("project", (cluster, DOMAIN, json!({"project": "none"})), InCluster, code::NOT_FOUND, "project"),
        case(
            "secret",
            (cluster, DOMAIN, json!({"acsEndpoint": {"name": "no-secret", "namespace": NAMESPACE}})),
            InCluster,
            code::SECRET,
            "default/no-secret",
        ),
        case(
            "zone",
            (cluster, "/spec/failureDomains/0/zone", json!({"name": "zone-9"})),
            InCluster,
            code::NOT_FOUND,
            "zone named \"zone-9\"",
        ),
        case(
            "network-id",
            (
                cluster,
                "/spec/failureDomains/0/zone/network",
                json!({"id": "6d1fc8ae-11a8-4d9c-a6d1-4c32bd0cb4a3"}),
            ),
            InCluster,
            code::NOT_FOUND,
            "network of failure domain fd-1",
        ),
        case(
            "network-offering",
            (cluster, "/spec/failureDomains/0/zone/network", json!({"offering": "no-such-offering"})),
            InCluster,
            code::NOT_FOUND,
            "network.offering of failure domain fd-1",
        ),
        case(
            "vpc",
            (cluster, "/spec/failureDomains/0/zone/network", json!({"vpc": {"name": "somewhere"}})),
            InCluster,
            code::REFUSED,
            "cidr in network.vpc of failure domain fd-1",
        ),
        case(
            "address",
            (cluster, "/spec/controlPlaneEndpoint", json!({"host": "192.0.2.77"})),
            InCluster,
            code::CAPACITY,
            "spec.controlPlaneEndpoint.host asks for 192.0.2.77",
        ),
        case(
            "template",
            (machine, "/spec", json!({"template": {"name": "no-such-image"}})),
            InMachine,
            code::NOT_FOUND,
            "template \"no-such-image\"",
        ),
        case(
            "version",
            (machine, "/spec", json!({"template": {"name": "ubuntu-2404-kube-v1.35.0"}})),
            InMachine,
            code::TEMPLATE,
            "has Kubernetes v1.35.0 in its name",
        ),
        case(
            "boot-type",
            (machine, "/spec", json!({"details": {"UEFI": "SECURE"}})),
            InMachine,
            code::TEMPLATE,
            "spec.details",
        ),
        case(
            "offering",
            (machine, "/spec", json!({"offering": {"name": "no-such-offering"}})),
            InMachine,
            code::NOT_FOUND,
            "service offering \"no-such-offering\"",
        ),
        case(
            "disk-offering",
            (machine, "/spec", json!({"diskOffering": disk(json!({"name": "no-such-disk"}))})),
            InMachine,
            code::NOT_FOUND,
            "disk offering \"no-such-disk\"",
        ),
        case(
            "disk-size-of-its-own",
            (machine, "/spec", json!({"diskOffering": disk(json!({"name": "Small", "customSizeInGB": 3}))})),
            InMachine,
            code::REFUSED,
            "remove spec.diskOffering.customSizeInGB",
        ),
        case(
            "disk-without-size",
            (machine, "/spec", json!({"diskOffering": disk(json!({"name": "Custom"}))})),
            InMachine,
            code::REFUSED,
            "set spec.diskOffering.customSizeInGB",
        ),
        case(
            "ssh-key",
            (machine, "/spec", json!({"sshKey": "no-such-key"})),
            InMachine,
            code::NOT_FOUND,
            "correct spec.sshKey",
        ),
        case(
            "too-big",
            (machine, "/spec", json!({"offering": {"name": "Huge Instance"}})),
            InMachine,
            code::QUOTA,
            "processors needed: 64",
        ),
    ]
}

/// Changes what is wrong in a document.
fn spoil(case: &Case, body: &mut Value) {
    let (kind, at, change) = &case.wrong;
    if body["kind"] == *kind
        && let (Some(Value::Object(place)), Value::Object(change)) = (body.pointer_mut(at), change)
    {
        place.extend(change.clone());
    }
}

/// A cluster of nothing but its infrastructure.
fn infrastructure(name: &str) -> Vec<(KindName, Value)> {
    let mut all = manifests::renamed(Shape::EXAMPLE, name);
    all.retain(|(_, body)| matches!(body["kind"].as_str(), Some("Cluster" | "CloudStackCluster")));
    for (_, body) in &mut all {
        if let Some(spec) = body["spec"].as_object_mut() {
            spec.remove("controlPlaneRef");
        }
    }
    all
}

/// A machine of the cluster that is right, with boot data of its own.
fn machine(name: &str) -> Vec<(KindName, Value)> {
    let meta = json!({
        "name": name, "namespace": NAMESPACE, "labels": {label::CLUSTER_NAME: NAME},
    });
    let infrastructure = CloudStackMachine::KIND;
    vec![
        (
            KindName::of::<CloudStackMachine>(),
            json!({
                "apiVersion": infrastructure.api_version(), "kind": infrastructure.kind, "metadata": meta,
                "spec": {
                    "offering": {"name": "Small Instance"},
                    "template": {"name": "ubuntu-2404-kube-v1.36.0"},
                },
            }),
        ),
        (
            KindName::of::<Machine>(),
            json!({
                "apiVersion": Machine::KIND.api_version(), "kind": "Machine", "metadata": meta,
                "spec": {
                    "clusterName": NAME, "version": "v1.36.0", "bootstrap": {"dataSecretName": "boot"},
                    "infrastructureRef": {
                        "apiGroup": infrastructure.group, "kind": infrastructure.kind, "name": name,
                    },
                },
            }),
        ),
    ]
}

/// Everything that a case is made of.
fn manifests_of(case: &Case) -> Vec<(KindName, Value)> {
    let mut all = match case.reported_in {
        InCluster => infrastructure(case.name),
        InMachine => machine(case.name),
    };
    for (_, body) in &mut all {
        spoil(case, body);
    }
    all
}

fn shown(case: &Case, world: &World<'_>) -> Result<Value, Violation> {
    let kind = match case.reported_in {
        InCluster => KindName::of::<CloudStackCluster>(),
        InMachine => KindName::of::<CloudStackMachine>(),
    };
    let found = world.objects()?.get(&kind, &Key::new(NAMESPACE, case.name));
    found.ok_or_else(|| failed(format!("{}: nothing to read a condition of", case.name)))
}

fn all_are_reported<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let keys = cloud.simulator.credentials("capstan").map_err(failed)?;
        let secret = manifests::keys(&keys);
        world.user()?.create(&manifests::secrets(), NAMESPACE, &secret).await.map_err(failed)?;
        let boot = json!({
            "metadata": {"name": "boot", "namespace": NAMESPACE},
            "stringData": {"value": "#cloud-config\n{}\n", "format": "cloud-config"},
        });
        world.user()?.create(&manifests::secrets(), NAMESPACE, &boot).await.map_err(failed)?;
        for (kind, body) in infrastructure(NAME) {
            world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
        }
        let cases = cases();
        for case in &cases {
            for (kind, body) in manifests_of(case) {
                let made = world.user()?.create(&kind, NAMESPACE, &body).await;
                made.map_err(|error| failed(format!("{}: {error}", case.name)))?;
            }
        }
        world.pass(Duration::from_secs(60)).await?;
        for case in &cases {
            let code = case.code.id();
            let reported = says(&shown(case, world)?, &["False", code, case.names]);
            reported.map_err(|violation| failed(format!("{}: {violation}", case.name)))?;
        }
        let clusters =
            cases.iter().filter(|case| matches!(case.reported_in, InCluster)).map(|case| case.name);
        for name in clusters.chain([NAME]) {
            let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, name));
            world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
        }
        // Machines that only their server may expunge take minutes.
        world.pass(Duration::from_secs(1800)).await?;
        let left = world.objects()?.list(&KindName::of::<Cluster>());
        let leaks = cloud.simulator.leaks(Some("capstan"));
        match left.is_empty() && leaks.is_empty() {
            true => Ok(()),
            false => {
                let left: Vec<_> = left.iter().map(|cluster| &cluster["metadata"]["name"]).collect();
                Err(Violation::new("L3", format!("clusters {left:?} and {leaks:?} are left")))
            }
        }
    })
}

#[test]
fn everything_that_is_wrong_with_a_manifest_is_reported_by_code_and_field_and_can_be_deleted() {
    let report = run(&Script { mishap_at_end: Some(all_are_reported), ..Script::of(&[]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
