//! What a manifest may ask for beyond machines: hosts together and apart, disks, ways in, other people's accounts. And
//! what all of it costs in calls.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_capi_types::core::label;
use capstan_cloudstack_client::commands::{
    AssignToLoadBalancerRule, AssociateIpAddress, AttachVolume, CreateLoadBalancerRule, CreateVolume,
    ListDiskOfferings, ListLoadBalancerRules, ListNetworks, ListPortForwardingRules, ListVirtualMachines,
    ListVolumes, Owner, Scope,
};
use capstan_cloudstack_client::model::VirtualMachine;
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{self, NAMESPACE, Shape};
use crate::sites::isolated_network;
use crate::story::Act::{Check, Create, Delete};
use crate::story::CheckResult;
use crate::story::{self, Script, failed};

fn goes_well(story: &Script) {
    let report = run(&story.clone().expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("feature", what)
}

/// The machines of the tenant, as the operator sees them: with their hosts.
async fn vms(cloud: &Cloud) -> Result<Vec<VirtualMachine>, Violation> {
    let question = ListVirtualMachines { scope: Scope::all(), ..ListVirtualMachines::default() };
    cloud.client("admin").list(&question).await.map_err(failed)
}

fn hosts<'a>(vms: &'a [VirtualMachine], role: &str) -> Vec<&'a str> {
    let of_role = vms
        .iter()
        .filter(|vm| vm.name.as_deref().is_some_and(|name| name.contains("workers") == (role == "workers")));
    of_role.filter_map(|vm| vm.hostid.as_ref()).map(|host| host.as_str()).collect()
}

fn with_features(body: &mut Value) {
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match body["kind"].as_str() {
        Some("CloudStackCluster") => {
            body["metadata"]["annotations"] = json!({"capstan.dev/ssh-port-forwarding": "true"});
        }
        Some("CloudStackMachineTemplate") if name.ends_with("workers") => {
            let spec = &mut body["spec"]["template"]["spec"];
            spec["affinity"] = "pro".into();
            spec["diskOffering"] = json!({
                "name": "Custom", "customSizeInGB": 7,
                "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data",
            });
        }
        Some("CloudStackMachineTemplate") => body["spec"]["template"]["spec"]["affinity"] = "anti".into(),
        _ => {}
    }
}

fn features_are_there<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let vms = vms(cloud).await?;
        let (apart, together) = (hosts(&vms, "control plane"), hosts(&vms, "workers"));
        if apart.len() != 3 || apart.iter().collect::<BTreeSet<_>>().len() != 3 {
            return Err(wrong(format!("control planes are not apart: {apart:?}")));
        }
        if together.len() != 2 || together.iter().collect::<BTreeSet<_>>().len() != 1 {
            return Err(wrong(format!("workers are not together: {together:?}")));
        }
        if let Some(alone) = vms.iter().find(|vm| vm.affinitygroup.len() != 1) {
            return Err(wrong(format!("{:?} is in no group", alone.name)));
        }
        let tenant = cloud.client("capstan");
        let volumes = tenant.list(&ListVolumes::default()).await.map_err(failed)?;
        let disks = volumes
            .iter()
            .filter(|volume| volume.name.as_deref().is_some_and(|name| name.starts_with("DATA-")));
        if disks.count() != 2 {
            return Err(wrong(format!("every worker shall have a data disk: {volumes:?}")));
        }
        let rules = tenant.list(&ListPortForwardingRules::default()).await.map_err(failed)?;
        let ports: BTreeSet<u16> = rules.iter().filter_map(|rule| rule.publicport).collect();
        if ports != (2222..2227).collect() {
            return Err(wrong(format!("five machines are reached by {ports:?}")));
        }
        for machine in world.objects()?.list(&KindName::of::<CloudStackMachine>()) {
            let reported = machine["status"]["conditions"].as_array().into_iter().flatten();
            let reported =
                reported.into_iter().find(|one| one["type"] == "SSHForwarded").cloned().unwrap_or_default();
            let reported = reported["message"]
                .as_str()
                .and_then(|message| message.rsplit(':').next()?.parse::<u16>().ok());
            if reported.is_none_or(|port| !ports.contains(&port)) {
                return Err(wrong(format!("where it is reached is not reported: {}", machine["status"])));
            }
        }
        the_role_is_enough(cloud.calls().into_keys())
    })
}

/// The role that the documentation describes is enough.
fn the_role_is_enough(calls: impl Iterator<Item = String>) -> Result<(), Violation> {
    let documented = include_str!("../../../../../../docs/cloudstack.md");
    match calls.into_iter().find(|command| !documented.contains(command.as_str())) {
        Some(command) => {
            Err(wrong(format!("{command} is not in the role that docs/cloudstack.md describes")))
        }
        None => Ok(()),
    }
}

/// Somebody's CSI driver attaches a volume to a worker.
fn a_volume_is_attached<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let tenant = cloud.client("capstan");
        let vms = vms(cloud).await?;
        let worker = vms.iter().find(|vm| vm.name.as_deref().is_some_and(|name| name.contains("workers")));
        let worker = worker.ok_or_else(|| wrong("no worker"))?;
        let offerings = tenant.list(&ListDiskOfferings::default()).await.map_err(failed)?;
        let small =
            offerings.iter().find(|offering| offering.name == "Small").ok_or_else(|| wrong("no offering"))?;
        let zone = worker.zoneid.clone().ok_or_else(|| wrong("no zone"))?;
        let request = CreateVolume {
            name: Some("pvc-1".to_owned()),
            diskofferingid: small.id.clone(),
            size: None,
            zoneid: zone,
            owner: Owner::default(),
        };
        let volume = tenant.run(&request).await.map_err(failed)?;
        let request = AttachVolume { id: volume.id, virtualmachineid: worker.id.clone(), deviceid: None };
        tenant.run(&request).await.map(drop).map_err(failed)
    })
}

/// Only that volume is left.
fn the_volume_is_left<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let leaks = cloud.simulator.leaks(Some("capstan"));
        match leaks.as_slice() {
            [volume] if volume.name == "pvc-1" => Ok(()),
            other => Err(Violation::new("L3", format!("left: {other:?}"))),
        }
    })
}

#[test]
fn machines_are_kept_together_and_apart_have_disks_and_are_reached_by_ssh() {
    let shape = Shape { control_plane: 3, workers: 2, ..Shape::EXAMPLE };
    let acts = [Create, Check(features_are_there), Delete];
    goes_well(&Script { shape, bare: true, change: Some(with_features), ..Script::of(&acts) });
}

#[test]
fn volumes_that_somebody_attached_survive_their_machines() {
    let acts = [Create, Check(a_volume_is_attached)];
    let story = Script { bare: true, change: Some(with_features), delete_at_end: true, ..Script::of(&acts) };
    goes_well(&Script { mishap_at_end: Some(the_volume_is_left), ..story });
}

/// Takes an address, and makes a rule that leads to machines.
async fn balance(cloud: &Cloud, name: &str, members: &[VirtualMachine]) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
    let network = networks.first().ok_or_else(|| wrong("no network"))?.id.clone();
    let request = AssociateIpAddress { networkid: Some(network.clone()), ..AssociateIpAddress::default() };
    let address = tenant.run(&request).await.map_err(failed)?;
    let request = CreateLoadBalancerRule {
        algorithm: "roundrobin".to_owned(),
        name: name.to_owned(),
        description: None,
        publicport: 80,
        privateport: 30080,
        publicipid: Some(address.id),
        networkid: Some(network),
        protocol: Some("tcp".to_owned()),
        cidrlist: Vec::new(),
        openfirewall: Some(true),
    };
    let rule = tenant.run(&request).await.map_err(failed)?;
    if members.is_empty() {
        return Ok(());
    }
    let virtualmachineids = members.iter().map(|vm| vm.id.clone()).collect();
    let request = AssignToLoadBalancerRule { id: rule.id, virtualmachineids };
    tenant.run(&request).await.map(drop).map_err(failed)
}

/// A rule as a cloud controller names them, of the cluster.
const SERVICES: &str = "a4f1c0de00000000000000000000000a-tcp-80";

/// The cloud controller inside the cluster serves a Service.
fn a_service_is_balanced<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move { balance(cloud, SERVICES, &vms(cloud).await?).await })
}

#[test]
fn what_the_cloud_controller_made_on_a_network_of_ours_goes_with_it() {
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(a_service_is_balanced), Delete]) });
}

/// A rule as a cloud controller names them, of somebody else.
const SOMEBODYS: &str = "a000000000000000000000000000000b-tcp-80";

/// It is still there, and on an address.
fn the_other_rule_is_left<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let rules = cloud.client("capstan").list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
        match rules.as_slice() {
            [rule] if rule.name.as_deref() == Some(SOMEBODYS) && rule.publicipid.is_some() => Ok(()),
            other => Err(Violation::new("S3", format!("left are {other:?}"))),
        }
    })
}

/// A network of the tenant's own, on which somebody balances something else.
pub fn a_network_is_there<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        isolated_network(cloud).await?;
        balance(cloud, SOMEBODYS, &[]).await?;
        cloud.simulator.forgive();
        Ok(())
    })
}

#[test]
fn what_the_cloud_controller_made_on_a_network_that_stays_goes_and_what_others_made_stays() {
    let acts = [Check(a_network_is_there), Create, Check(a_service_is_balanced), Delete];
    let story = Script { bare: true, ..Script::of(&acts) };
    goes_well(&Script { mishap_at_end: Some(the_other_rule_is_left), ..story });
}

fn keeping_balancers(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        body["metadata"]["annotations"] = json!({"capstan.dev/keep-load-balancers": "true"});
    }
}

/// The rule of the cluster's Service is there, and an event names its address.
fn the_service_is_still_balanced<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let rules = cloud.client("capstan").list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
        let rule = rules.iter().find(|rule| rule.name.as_deref() == Some(SERVICES));
        let rule = rule.ok_or_else(|| wrong(format!("left are {rules:?}")))?;
        let names: Vec<_> = rules.iter().filter_map(|rule| rule.name.as_deref()).collect();
        if names.len() != 2 || !names.contains(&SOMEBODYS) {
            return Err(wrong(format!("left are {names:?}")));
        }
        let events = KindName::namespaced("", "v1", "Event", "events");
        let reported = world.objects()?.list(&events);
        let reported = reported.iter().filter(|event| event["reason"] == "LoadBalancerKept");
        let reported: Vec<_> = reported.filter_map(|event| event["message"].as_str()).collect();
        let address = rule.publicip.map(|address| format!("{address}:80")).unwrap_or_default();
        match reported.as_slice() {
            [one] if one.contains(rule.id.as_str()) && one.contains(&address) && !one.contains(SOMEBODYS) => {
                Ok(())
            }
            other => Err(wrong(format!("events were {other:?}, and {} is on {address}", rule.id))),
        }
    })
}

#[test]
fn load_balancers_that_are_to_be_kept_are_kept_and_listed_by_id_and_address() {
    let acts = [Check(a_network_is_there), Create, Check(a_service_is_balanced)];
    let story =
        Script { bare: true, delete_at_end: true, change: Some(keeping_balancers), ..Script::of(&acts) };
    goes_well(&Script { mishap_at_end: Some(the_service_is_still_balanced), ..story });
}

/// An operator's keys, and a tenant's account.
fn in_an_account(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        let domain = &mut body["spec"]["failureDomains"][0];
        domain["account"] = "capstan".into();
        domain["domain"] = "ROOT/tenants".into();
    }
}

fn the_account_has_it<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let all = cloud.simulator.leaks(None);
        match all.iter().find(|one| one.account != "capstan") {
            None if all.iter().any(|one| one.kind == "virtualmachine") => Ok(()),
            other => Err(wrong(format!("{other:?} of {all:?}"))),
        }
    })
}

#[test]
fn an_operators_keys_make_everything_in_the_account_that_the_manifest_names() {
    let acts = [Create, Check(the_account_has_it), Delete];
    goes_well(&Script { bare: true, change: Some(in_an_account), account: "admin", ..Script::of(&acts) });
}

const SECOND: &str = "second";

/// Another cluster comes and goes beside the first.
fn another_comes_and_goes<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let before = cloud.simulator.leaks(Some("capstan"));
        for (kind, body) in manifests::renamed(Shape::EXAMPLE, SECOND) {
            world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
        }
        world.run_until_idle().await?;
        let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
        let second =
            machines.iter().filter(|machine| machine["metadata"]["labels"][label::CLUSTER_NAME] == SECOND);
        if second.filter(|machine| machine["status"]["ready"] == true).count() != 2 {
            return Err(wrong("the second cluster did not come up"));
        }
        story::delete_cluster(world, cloud, SECOND).await?;
        let after = cloud.simulator.leaks(Some("capstan"));
        match before == after {
            true => Ok(()),
            false => Err(Violation::new("S3", format!("before {before:?}, after {after:?}"))),
        }
    })
}

#[test]
fn a_cluster_that_goes_leaves_the_one_beside_it_alone() {
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(another_comes_and_goes), Delete]) });
}

/// Calls of an hour in which nothing happens.
fn an_hour_passes<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let before = cloud.calls();
        world.pass(Duration::from_secs(3600)).await?;
        let after = cloud.calls();
        let spent: u64 = after.values().sum::<u64>() - before.values().sum::<u64>();
        match spent {
            // A minute: one list for all machines of the account, and one of what was removed from its networks.
            0..=120 => Ok(()),
            more => Err(wrong(format!("{more} calls in an hour of nothing: {before:?} and then {after:?}"))),
        }
    })
}

/// What it took from the manifest to running machines.
fn it_was_cheap<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let mut calls = cloud.calls();
        // The story rests for twenty minutes.
        calls.retain(|command, _| !matches!(command.as_str(), "listVirtualMachines" | "listEvents"));
        match calls.values().sum::<u64>() {
            // CAPC needs 116 to the first machine alone.
            0..=23 => Ok(()),
            more => Err(wrong(format!("{more} calls: {calls:?}"))),
        }
    })
}

#[test]
fn a_cluster_costs_few_calls_and_an_idle_one_two_a_minute() {
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(it_was_cheap), Check(an_hour_passes)]) });
}

/// CloudStack finds names in any case, and manifests rely on it.
fn in_another_case(body: &mut Value) {
    match body["kind"].as_str() {
        Some("CloudStackCluster") => {
            let name = &mut body["spec"]["failureDomains"][0]["zone"]["network"]["name"];
            *name = name.as_str().unwrap_or_default().to_uppercase().into();
        }
        Some("CloudStackMachineTemplate") => {
            for field in ["offering", "template"] {
                let name = &mut body["spec"]["template"]["spec"][field]["name"];
                *name = name.as_str().unwrap_or_default().to_uppercase().into();
            }
        }
        _ => {}
    }
}

fn an_empty_network_is_there<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        isolated_network(cloud).await?;
        cloud.simulator.forgive();
        Ok(())
    })
}

fn there_is_one_network<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let networks = cloud.client("capstan").list(&ListNetworks::default()).await.map_err(failed)?;
        match networks.len() {
            1 => Ok(()),
            _ => Err(wrong(format!("networks {networks:?}"))),
        }
    })
}

#[test]
fn names_in_another_case_mean_what_cloudstack_finds_by_them() {
    let acts = [Check(an_empty_network_is_there), Create, Check(there_is_one_network)];
    goes_well(&Script { bare: true, change: Some(in_another_case), ..Script::of(&acts) });
}
