//! Machine templates: the capacity in their status, and allowed address pairs that their machines follow.

use std::time::Duration;

use capstan_controller::{KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::network::{AddressPair, Port, PortChange, PortFilter};
use capstan_openstack_types::v1beta2::{OpenStackMachine, OpenStackMachineTemplate};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::NAMESPACE;
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

const WORKERS: &str = "stacky-workers";

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("templates", what)) }
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn template(world: &World<'_>, name: &str) -> Result<Value, Violation> {
    let found = world.objects()?.get(&KindName::of::<OpenStackMachineTemplate>(), &Key::new(NAMESPACE, name));
    found.ok_or_else(|| failed(format!("no template {name}")))
}

#[test]
fn templates_report_the_capacity_of_their_flavor() {
    fn change(body: &mut Value) {
        if body["metadata"]["name"] == "stacky-control-plane" {
            body["spec"]["template"]["spec"]["rootVolume"] = json!({"sizeGiB": 25});
        }
    }
    fn capacity<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let workers = template(world, WORKERS)?["status"].clone();
            let expected = json!({"cpu": "4", "memory": "8Gi", "storage": "80Gi"});
            check(workers["capacity"] == expected, format!("{workers}"))?;
            let control_plane = template(world, "stacky-control-plane")?["status"].clone();
            let expected = json!({"cpu": "2", "memory": "4Gi", "storage": "25Gi"});
            check(control_plane["capacity"] == expected, format!("{control_plane}"))?;
            let conditions = workers["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
            check(ready, format!("{workers}"))
        })
    }
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&[Create, Check(capacity), Delete]) });
}

/// The pairs of the only port of the workers, sorted.
async fn pairs(cloud: &Cloud) -> Result<(Port, Vec<String>), Violation> {
    let all = cloud.client().list::<Port>(&PortFilter::default()).await.map_err(failed)?;
    let port = all.into_iter().find(|port| port.name.starts_with(WORKERS));
    let port = port.ok_or_else(|| failed("the worker has no port"))?;
    let mut pairs: Vec<String> = port.allowed_address_pairs.iter().map(|it| it.ip_address.clone()).collect();
    pairs.sort();
    Ok((port, pairs))
}

async fn allow(world: &mut World<'_>, addresses: &[&str]) -> Result<(), Violation> {
    let pairs: Vec<Value> = addresses.iter().map(|address| json!({"ipAddress": address})).collect();
    let patch = json!({"spec": {"template": {"spec": {"ports": [{"allowedAddressPairs": pairs}]}}}});
    let (kind, key) = (KindName::of::<OpenStackMachineTemplate>(), Key::new(NAMESPACE, WORKERS));
    world.user()?.patch(&kind, &key, None, &Patch::Merge(patch)).await.map_err(failed)?;
    world.run_until_idle().await
}

#[test]
fn ports_of_live_machines_follow_the_address_pairs_of_their_template() {
    fn change(body: &mut Value) {
        if body["metadata"]["name"] == WORKERS && body["kind"] == "OpenStackMachineTemplate" {
            let port = json!({"allowedAddressPairs": [{"ipAddress": "10.6.0.200"}]});
            body["spec"]["template"]["spec"]["ports"] = json!([port]);
        }
    }
    fn follows<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            check(pairs(cloud).await?.1 == ["10.6.0.200"], "as it was created")?;
            // Somebody else adds a pair: it stays.
            let (port, _) = pairs(cloud).await?;
            let mut more = port.allowed_address_pairs.clone();
            more.push(AddressPair { ip_address: "10.244.1.0/24".to_owned(), mac_address: String::new() });
            let more = PortChange { allowed_address_pairs: Some(more), ..PortChange::default() };
            cloud.client().update::<Port>(&port.id, &more).await.map_err(failed)?;
            world.pass(Duration::from_secs(120)).await?;
            allow(world, &["10.6.0.201", "10.6.1.0/24"]).await?;
            let (_, now) = pairs(cloud).await?;
            check(now == ["10.244.1.0/24", "10.6.0.201", "10.6.1.0/24"], format!("{now:?}"))?;
            // Somebody takes ours away: it comes back.
            let none = PortChange { allowed_address_pairs: Some(Vec::new()), ..PortChange::default() };
            cloud.client().update::<Port>(&port.id, &none).await.map_err(failed)?;
            world.pass(Duration::from_secs(180)).await?;
            let (_, now) = pairs(cloud).await?;
            check(now == ["10.6.0.201", "10.6.1.0/24"], format!("{now:?}"))?;
            let machines = world.objects()?.list(&KindName::of::<OpenStackMachine>());
            let recorded = machines.iter().filter_map(|it| {
                let name = "infrastructure.cluster.x-k8s.io/osmt-allowed-address-pairs";
                it["metadata"]["annotations"][name].as_str()
            });
            let expected = r#"[[{"ipAddress":"10.6.0.201"},{"ipAddress":"10.6.1.0/24"}]]"#;
            check(recorded.collect::<Vec<_>>() == [expected], format!("{machines:?}"))?;
            allow(world, &[]).await?;
            let (_, now) = pairs(cloud).await?;
            check(now.is_empty(), format!("{now:?}"))?;
            check(cloud.names("servers").len() == 2, "no machine was replaced")
        })
    }
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&[Create, Check(follows), Delete]) });
}
