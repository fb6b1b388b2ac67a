//! CloudStackMachineStateCheckers, which come with machines of CAPC.

use std::time::Duration;

use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_cloudstack_types::v1beta3::{CloudStackMachine, CloudStackMachineStateChecker};
use capstan_controller::{KindName, Patch};
use capstan_guest::vm::Phase;
use capstan_harness::{Violation, World, run};
use capstan_object::{Key, Object};
use capstan_sim_cloudstack::Fault;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{NAME, NAMESPACE};
use crate::story::Act::{Check, Create, Delete};
use crate::story::CheckResult;
use crate::story::{Script, failed, patch};

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("checker", what)
}

async fn pause(world: &World<'_>, paused: bool) -> Result<(), Violation> {
    patch::<Cluster>(world, NAME, json!({"spec": {"paused": paused}})).await
}

fn get<T: Object>(world: &World<'_>, name: &str) -> Result<Option<Value>, Violation> {
    Ok(world.objects()?.get(&KindName::of::<T>(), &Key::new(NAMESPACE, name)))
}

/// A worker of CAPC has a checker. Its machine stops while the cluster is paused and moved, without status: nothing happens
/// until that is over. Then its Machine is replaced, and the checker goes along.
fn a_watched_machine_stops<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
        let is_worker = |it: &&Value| it["metadata"]["labels"].get(label::CONTROL_PLANE).is_none();
        let worker = machines.iter().find(is_worker).cloned().unwrap_or_default();
        let (name, uid) =
            (worker["metadata"]["name"].as_str().unwrap_or_default(), &worker["metadata"]["uid"]);
        let vm = worker["spec"]["instanceID"].as_str().unwrap_or_default().to_owned();
        let kind = CloudStackMachine::KIND;
        let owner = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "name": name, "uid": uid, "controller": true,
        });
        let body = json!({
            "apiVersion": CloudStackMachineStateChecker::KIND.api_version(), "kind": "CloudStackMachineStateChecker",
            "metadata": {"name": vm, "namespace": NAMESPACE, "ownerReferences": [owner]}, "spec": {"instanceID": vm},
        });
        let checkers = KindName::of::<CloudStackMachineStateChecker>();
        world.user()?.create(&checkers, NAMESPACE, &body).await.map_err(failed)?;
        world.run_until_idle().await?;
        let checker = get::<CloudStackMachineStateChecker>(world, &vm)?.unwrap_or_default();
        if checker["status"]["ready"] != true {
            return Err(wrong(format!("a machine that runs is not ready: {checker}")));
        }
        pause(world, true).await?;
        world.run_until_idle().await?;
        cloud.simulator.inject(Fault::PowerOff { vm: vm.clone() }).map_err(failed)?;
        let key = Key::new(NAMESPACE, name);
        let lost = Patch::Merge(json!({"status": null}));
        let machines = KindName::of::<CloudStackMachine>();
        world.user()?.patch(&machines, &key, Some("status"), &lost).await.map_err(failed)?;
        world.pass(Duration::from_secs(900)).await?;
        let machine = get::<Machine>(world, name)?.unwrap_or_default();
        if !machine["metadata"]["deletionTimestamp"].is_null() || machine.is_null() {
            return Err(wrong("a Machine of a paused cluster was deleted"));
        }
        pause(world, false).await?;
        world.run_until_idle().await?;
        if get::<Machine>(world, name)?.is_some() {
            return Err(wrong("the Machine of a stopped machine was not deleted"));
        }
        let left = world.objects()?.list(&checkers);
        let running = cloud.site.vms().into_iter().filter(|vm| vm.phase == Phase::Booted).count();
        match left.is_empty() && running == 2 {
            true => Ok(()),
            false => Err(wrong(format!("{running} machines run, and left are {left:?}"))),
        }
    })
}

#[test]
fn the_machine_of_a_stopped_machine_is_replaced_unless_it_is_paused_or_its_state_is_not_known() {
    let acts = [Create, Check(a_watched_machine_stops), Delete];
    let report = run(&Script { bare: true, ..Script::of(&acts) }.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
