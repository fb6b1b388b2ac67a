//! Orders: what a release before this one journaled is still resolved, calls for SSH and disks survive faults, and what
//! all of it costs in calls.

use capstan_capi_types::core::Machine;
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::{INTENTS, KindName};
use capstan_harness::{Fault, Violation, World, run};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::NAMESPACE;
use crate::stories::first;
use crate::story::Act::{Check, Create, Delete};
use crate::story::CheckResult;
use crate::story::{Script, failed, patch};

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("order", what)
}

fn worker(world: &World<'_>) -> Result<Value, Violation> {
    let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
    let is_worker =
        |machine: &&Value| machine["metadata"]["name"].as_str().is_some_and(|name| name.contains("workers"));
    machines.iter().find(is_worker).cloned().ok_or_else(|| failed("no worker"))
}

/// The process died after the order of a worker was taken and before that was written down.
async fn forget_order(world: &mut World<'_>, cloud: &Cloud, call: Value) -> Result<(), Violation> {
    let before = worker(world)?;
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    let intent = json!([{"key": name, "call": call, "at": "2026-01-01T00:00:00Z"}]).to_string();
    let annotation = format!("{INTENTS}cloudstackmachine");
    let change =
        json!({"metadata": {"annotations": {annotation.as_str(): intent}}, "spec": {"instanceID": null}});
    let running = cloud.names("virtualmachine");
    patch::<CloudStackMachine>(world, name, change).await?;
    world.run_until_idle().await?;
    let after = worker(world)?;
    if after["spec"]["instanceID"] != before["spec"]["instanceID"] {
        return Err(wrong(format!("{} became {}", before["spec"], after["spec"])));
    }
    if after["metadata"]["annotations"].get(&annotation).is_some() {
        return Err(wrong(format!("an intent is open: {}", after["metadata"])));
    }
    match cloud.names("virtualmachine") == running {
        true => Ok(()),
        false => Err(wrong(format!("there were {running:?}, and now {:?}", cloud.names("virtualmachine")))),
    }
}

fn the_release_before_ordered<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let name = worker(world)?["metadata"]["name"].clone();
        forget_order(world, cloud, json!({"verb": "deploy", "name": name, "attempt": 0})).await
    })
}

/// As after `clusterctl move`: the boot data is the same, its Secret another.
fn another_plane_ordered<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let worker = worker(world)?;
        let name = worker["metadata"]["name"].as_str().unwrap_or_default();
        let machine = world.objects()?.get(&KindName::of::<Machine>(), &Key::new(NAMESPACE, name));
        let machine = machine.ok_or_else(|| failed("no Machine"))?;
        let order = json!({
            "v": 1, "cluster": machine["spec"]["clusterName"],
            "failureDomain": worker["spec"]["failureDomainName"], "zone": "z", "offering": "o", "template": "t",
            "networks": [], "displayName": name, "gzip": true,
            "bootData": {
                "secret": machine["spec"]["bootstrap"]["dataSecretName"], "key": "value",
                "uid": "another", "resourceVersion": "1",
            },
        });
        let call = json!({"verb": "deploy", "name": name, "attempt": 0, "order": order});
        forget_order(world, cloud, call).await
    })
}

#[test]
fn an_order_that_another_release_or_plane_made_is_found_and_not_made_again() {
    let acts = [Create, Check(the_release_before_ordered), Check(another_plane_ordered), Delete];
    let report = run(&Script { bare: true, ..Script::of(&acts) }.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Calls for a cluster of one and one without the two polls a minute: 19 until it is Available, and two for its tags ten
/// minutes later.
const CALLS: [(&str, u64); 14] = [
    ("assignToLoadBalancerRule", 1),
    ("associateIpAddress", 1),
    ("createEgressFirewallRule", 1),
    ("createLoadBalancerRule", 1),
    ("createNetwork", 1),
    ("createTags", 1),
    ("deployVirtualMachine", 2),
    ("listAccounts", 1),
    ("listNetworkOfferings", 1),
    ("listNetworks", 1),
    ("listServiceOfferings", 1),
    ("listTemplates", 1),
    ("listZones", 1),
    ("queryAsyncJobResult", 7),
];

fn the_calls_are_these<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let mut calls = cloud.calls();
        calls.retain(|command, _| !matches!(command.as_str(), "listVirtualMachines" | "listEvents"));
        match calls.iter().map(|(command, count)| (command.as_str(), *count)).eq(CALLS) {
            true => Ok(()),
            false => Err(wrong(format!("{calls:?}"))),
        }
    })
}

#[test]
fn a_cluster_asks_for_what_it_names_once_and_makes_each_thing_with_one_call() {
    let report = run(&Script::of(&[Create, Check(the_calls_are_these)]), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Machines with a disk that some may reach by SSH.
fn with_disk_and_ssh(body: &mut Value) {
    match body["kind"].as_str() {
        Some("CloudStackCluster") => {
            body["metadata"]["annotations"] = json!({
                "capstan.dev/ssh-port-forwarding": "true", "capstan.dev/api-server-cidrs": "0.0.0.0/1,128.0.0.0/1",
            });
        }
        Some("CloudStackMachineTemplate") => {
            body["spec"]["template"]["spec"]["diskOffering"] = json!({
                "name": "Custom", "customSizeInGB": 7,
                "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data",
            });
        }
        _ => {}
    }
}

#[test]
fn ports_for_ssh_and_disks_are_made_once_and_removed_when_the_process_dies_or_an_answer_is_lost() {
    let story = Script { bare: true, change: Some(with_disk_and_ssh), ..Script::of(&[Create, Delete]) };
    let story = story.expunging_soon();
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let number = |verb| first(&reference.trace.text(), verb);
    for fault in [
        Fault::CrashAfter(number("forward-ssh")),
        Fault::LoseReply(number("forward-ssh")),
        Fault::CrashAfter(number("open-firewall")),
        Fault::LoseReply(number("add-member")),
        Fault::LoseReply(number("close-firewall")),
        Fault::CrashAfter(number("unforward-ssh")),
        Fault::CrashAfter(number("destroy-vm")),
    ] {
        let report = run(&story, 1, &[fault]);
        assert!(report.violation.is_none(), "{}", report.transcript());
    }
}
