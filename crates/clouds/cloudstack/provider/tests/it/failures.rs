//! Failures of the cloud: what is reported, and that it clears.

use std::time::Duration;

use capstan_capi_types::core::{Cluster, Machine};
use capstan_cloudstack_client::Client;
use capstan_cloudstack_client::commands::{
    DeleteEgressFirewallRule, DeleteFirewallRule, DeleteLoadBalancerRule, DisassociateIpAddress,
    ListEgressFirewallRules, ListFirewallRules, ListLoadBalancerRuleInstances, ListLoadBalancerRules,
    ListPublicIpAddresses, RemoveFromLoadBalancerRule,
};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachine};
use capstan_controller::{Deletion, KindName, Patch};
use capstan_guest::vm::Phase;
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_sim_cloudstack::{Credentials, Fault};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::features::a_network_is_there;
use crate::manifests::{self, KEYS, NAME, NAMESPACE};
use crate::story::Act::{self, Check, Create, Delete, During, ScaleWorkers};
use crate::story::{CheckResult, Script, failed, patch};

fn goes_well(acts: &[Act]) {
    let report = run(&Script { bare: true, ..Script::of(acts) }.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// The `Ready` condition of an object says this.
pub fn says(object: &Value, parts: &[&str]) -> Result<(), Violation> {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"] == "Ready").cloned().unwrap_or_default();
    let text =
        ["status", "reason", "message"].map(|field| ready[field].as_str().unwrap_or_default()).join(" ");
    match parts.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(Violation::new("condition", format!("{part:?} is not in {text}"))),
        None => Ok(()),
    }
}

fn cluster(world: &World<'_>) -> Result<Value, Violation> {
    let found = world.objects()?.get(&KindName::of::<CloudStackCluster>(), &Key::new(NAMESPACE, NAME));
    Ok(found.unwrap_or_default())
}

fn machines(world: &World<'_>) -> Result<Vec<Value>, Violation> {
    Ok(world.objects()?.list(&KindName::of::<CloudStackMachine>()))
}

async fn put_keys(world: &World<'_>, keys: &Credentials) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, KEYS);
    let patch = Patch::Merge(json!({"stringData": manifests::keys(keys)["stringData"]}));
    world.user()?.patch(&manifests::secrets(), &key, None, &patch).await.map(drop).map_err(failed)
}

#[test]
fn wrong_keys_are_reported_by_secret_and_field_and_right_ones_are_used_at_once() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let right = cloud.simulator.credentials("capstan").map_err(failed)?;
            let wrong = Credentials { secret_key: "not-the-secret".to_owned(), ..right.clone() };
            put_keys(world, &wrong).await?;
            world.pass(Duration::from_secs(20)).await?;
            let reported = cluster(world)?;
            says(&reported, &["False", "E-CS-CREDENTIALS", "default/cloudstack-credentials", "secret-key"])?;
            if reported.to_string().contains("not-the-secret")
                || reported.to_string().contains(&right.api_key)
            {
                return Err(Violation::new("S13", "a key is shown"));
            }
            put_keys(world, &right).await
        })
    }
    goes_well(&[During(mishap), Create]);
}

#[test]
fn a_cloud_without_capacity_is_reported_and_used_when_there_is_some_again() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            cloud.simulator.inject(Fault::NoCapacity).map_err(failed)?;
            world.pass(Duration::from_secs(60)).await?;
            for machine in machines(world)? {
                if machine["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_some() {
                    says(&machine, &["False", "DeployFailed", "E-CS-CAPACITY", "No destination found"])?;
                }
            }
            cloud.simulator.heal();
            Ok(())
        })
    }
    // What failed keeps its name for two days.
    let story = Script { bare: true, ..Script::of(&[During(mishap), Create, Delete]) };
    let report = run(&story.in_a_cloud_that_fails(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_machine_that_goes_off_behind_our_back_shows_within_a_minute() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let worker = machines(world)?
                .into_iter()
                .find(|machine| machine["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_none())
                .unwrap_or_default();
            let vm = worker["spec"]["instanceID"].as_str().unwrap_or_default().to_owned();
            cloud.simulator.inject(Fault::PowerOff { vm }).map_err(failed)?;
            // Half a minute until the cloud itself notices, and one for us.
            world.pass(Duration::from_secs(27 + 60)).await?;
            let name = worker["metadata"]["name"].as_str().unwrap_or_default();
            let now = machines(world)?.into_iter().find(|machine| machine["metadata"]["name"] == name);
            says(&now.unwrap_or_default(), &["False", "Stopped", "start it in CloudStack"])
        })
    }
    let report = run(&Script { mishap_at_end: Some(mishap), bare: true, ..Script::of(&[Create]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_load_balancer_rule_that_somebody_deleted_is_made_again_and_leads_to_the_old_machines() {
    fn mishap<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let owner = cloud.client("capstan");
            let rules = owner.list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
            for rule in rules {
                owner.run(&DeleteLoadBalancerRule { id: rule.id }).await.map_err(failed)?;
            }
            Ok(())
        })
    }
    fn answers<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let owner = cloud.client("capstan");
            let rules = owner.list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
            let [rule] = rules.as_slice() else { return Err(failed(format!("rules {rules:?}"))) };
            let members = ListLoadBalancerRuleInstances { id: rule.id.clone(), applied: None };
            match owner.list(&members).await.map_err(failed)?.len() {
                1 => Ok(()),
                other => Err(failed(format!("{other} members"))),
            }
        })
    }
    // A worker that cannot join makes the cluster unavailable, which is noticed.
    let acts = [Create, Check(mishap), ScaleWorkers(2), Check(answers), Delete];
    let report = run(&Script::of(&acts).expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn requests_and_replies_that_get_lost_on_the_wire_double_nothing() {
    fn mishap<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            for command in [
                "createNetwork",
                "associateIpAddress",
                "createLoadBalancerRule",
                "createEgressFirewallRule",
                "createTags",
                "deployVirtualMachine",
                "assignToLoadBalancerRule",
            ] {
                let (command, times) = (command.to_owned(), Some(1));
                cloud
                    .simulator
                    .inject(Fault::LostReply { command: command.clone(), times })
                    .map_err(failed)?;
                cloud.simulator.inject(Fault::LostRequest { command, times }).map_err(failed)?;
            }
            Ok(())
        })
    }
    let story = Script { bare: true, ..Script::of(&[During(mishap), Create, Delete]) };
    let report = run(&story.expunging_soon().in_a_cloud_that_fails(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// What leads to an API server and out of its network.
#[derive(Debug, PartialEq)]
struct Path {
    addresses: Vec<String>,
    rules: usize,
    members: usize,
    ingress: usize,
    egress: usize,
}

async fn path(owner: &Client) -> Result<Path, Violation> {
    let rules = owner.list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
    let mut members = 0;
    for rule in &rules {
        let question = ListLoadBalancerRuleInstances { id: rule.id.clone(), applied: None };
        members += owner.list(&question).await.map_err(failed)?.len();
    }
    let addresses = owner.list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
    Ok(Path {
        addresses: addresses.iter().map(|address| address.ipaddress.to_string()).collect(),
        rules: rules.len(),
        members,
        ingress: owner.list(&ListFirewallRules::default()).await.map_err(failed)?.len(),
        egress: owner.list(&ListEgressFirewallRules::default()).await.map_err(failed)?.len(),
    })
}

/// A minute after something was removed everything is as it was.
async fn is_restored(world: &mut World<'_>, cloud: &Cloud, before: &Path) -> Result<(), Violation> {
    let owner = cloud.client("capstan");
    if path(&owner).await? == *before {
        return Err(failed("nothing was removed"));
    }
    // Orders take a second or two.
    world.pass(Duration::from_secs(60 + 5)).await?;
    let after = path(&owner).await?;
    match after == *before {
        true => Ok(()),
        false => Err(failed(format!("{after:?} instead of {before:?}"))),
    }
}

#[test]
fn rules_and_members_that_somebody_removes_under_a_healthy_cluster_are_made_again_within_a_minute() {
    fn check<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let owner = cloud.client("capstan");
            let operator = cloud.client("admin");
            let before = path(&owner).await?;
            for rule in owner.list(&ListLoadBalancerRules::default()).await.map_err(failed)? {
                owner.run(&DeleteLoadBalancerRule { id: rule.id }).await.map_err(failed)?;
            }
            is_restored(world, cloud, &before).await?;
            for rule in owner.list(&ListLoadBalancerRules::default()).await.map_err(failed)? {
                let question = ListLoadBalancerRuleInstances { id: rule.id.clone(), applied: None };
                let members = owner.list(&question).await.map_err(failed)?;
                let virtualmachineids = members.into_iter().map(|member| member.id).collect();
                let request = RemoveFromLoadBalancerRule { id: rule.id, virtualmachineids };
                owner.run(&request).await.map_err(failed)?;
            }
            is_restored(world, cloud, &before).await?;
            for rule in owner.list(&ListFirewallRules::default()).await.map_err(failed)? {
                operator.run(&DeleteFirewallRule { id: rule.id }).await.map_err(failed)?;
            }
            is_restored(world, cloud, &before).await?;
            for rule in owner.list(&ListEgressFirewallRules::default()).await.map_err(failed)? {
                owner.run(&DeleteEgressFirewallRule { id: rule.id }).await.map_err(failed)?;
            }
            is_restored(world, cloud, &before).await
        })
    }
    goes_well(&[Create, Check(check), Delete]);
}

#[test]
fn an_address_that_somebody_releases_is_taken_again_within_a_minute_with_all_that_was_on_it() {
    fn check<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let owner = cloud.client("capstan");
            let before = path(&owner).await?;
            let addresses = owner.list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
            for address in addresses.into_iter().filter(|address| !address.issourcenat) {
                owner.run(&DisassociateIpAddress { id: address.id }).await.map_err(failed)?;
            }
            is_restored(world, cloud, &before).await
        })
    }
    goes_well(&[Check(a_network_is_there), Create, Check(check)]);
}

#[test]
fn an_api_url_without_its_end_is_reported_with_the_url_to_try() {
    fn mishap<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let put = |url: &'static str| Patch::Merge(json!({"stringData": {"api-url": url}}));
            let (kind, key) = (manifests::secrets(), Key::new(NAMESPACE, KEYS));
            let wrong = put("http://cloud.example:8080/client");
            world.user()?.patch(&kind, &key, None, &wrong).await.map_err(failed)?;
            world.pass(Duration::from_secs(20)).await?;
            let reported = cluster(world)?;
            says(
                &reported,
                &["False", "E-CS-UNREACHABLE", "try http://cloud.example:8080/client/api", KEYS],
            )?;
            let right = put("http://cloud.example:8080/client/api");
            world.user()?.patch(&kind, &key, None, &right).await.map(drop).map_err(failed)
        })
    }
    goes_well(&[During(mishap), Create]);
}

#[test]
fn a_healthy_cluster_stays_available_while_the_api_of_the_cloud_is_down() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let down = Fault::LostRequest { command: "*".to_owned(), times: None };
            cloud.simulator.inject(down).map_err(failed)?;
            world.pass(Duration::from_secs(900)).await?;
            let condition = |object: &Value, kind: &str| {
                let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                all.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
            };
            let key = Key::new(NAMESPACE, NAME);
            let cluster = world.objects()?.get(&KindName::of::<Cluster>(), &key).unwrap_or_default();
            let available = condition(&cluster, "Available");
            if available["status"] != "True" {
                return Err(failed(format!("the cluster is not available: {available}")));
            }
            for machine in machines(world)? {
                says(&machine, &["True", "Running"])?;
                let reported = condition(&machine, "CloudReachable");
                let message = reported["message"].as_str().unwrap_or_default();
                if reported["status"] != "False" || !message.contains("E-CS-UNREACHABLE") {
                    return Err(failed(format!("nothing is reported: {}", machine["status"])));
                }
            }
            cloud.simulator.heal();
            world.pass(Duration::from_secs(120)).await?;
            for machine in machines(world)? {
                if !condition(&machine, "CloudReachable").is_null() {
                    return Err(failed(format!("it is still reported: {}", machine["status"])));
                }
            }
            Ok(())
        })
    }
    // With a network inside, as bare nodes are never ready.
    let report = run(&Script::of(&[Create, Check(mishap), Delete]).expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// The object of a worker comes back from a backup that knows nothing of its virtual machine, and is deleted.
fn a_worker_without_record_is_deleted<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        patch::<Cluster>(world, NAME, json!({"spec": {"paused": true}})).await?;
        world.run_until_idle().await?;
        let is_worker =
            |machine: &Value| machine["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_none();
        let worker = machines(world)?.into_iter().find(is_worker).unwrap_or_default();
        let name = worker["metadata"]["name"].as_str().unwrap_or_default();
        let annotations = worker["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let none: serde_json::Map<String, Value> = annotations
            .into_iter()
            .filter(|(name, _)| name.starts_with("capstan.dev/"))
            .map(|(name, _)| (name, Value::Null))
            .collect();
        let lost =
            json!({"metadata": {"annotations": none}, "spec": {"instanceID": null, "providerID": null}});
        patch::<CloudStackMachine>(world, name, lost).await?;
        let user = world.user()?;
        let (kind, key) = (KindName::of::<CloudStackMachine>(), Key::new(NAMESPACE, name));
        let status = Patch::Merge(json!({"status": null}));
        user.patch(&kind, &key, Some("status"), &status).await.map_err(failed)?;
        for kind in [KindName::of::<Machine>(), kind] {
            user.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
        }
        patch::<Cluster>(world, NAME, json!({"spec": {"paused": false}})).await?;
        world.run_until_idle().await?;
        let left = world.objects()?.get(&KindName::of::<CloudStackMachine>(), &key);
        let running = cloud.site.vms().into_iter().filter(|vm| vm.phase == Phase::Booted);
        let names: Vec<String> = running.map(|vm| vm.name).collect();
        match left.is_none() && names.len() == 2 && !names.iter().any(|running| running == name) {
            true => Ok(()),
            false => Err(failed(format!("{left:?} is left, and {names:?} run"))),
        }
    })
}

#[test]
fn a_machine_whose_record_is_lost_goes_with_its_virtual_machine() {
    goes_well(&[Create, Check(a_worker_without_record_is_deleted), Delete]);
}
