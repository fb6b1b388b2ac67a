//! Keys that are replaced in the middle of an upgrade.

use std::time::Duration;

use capstan_capi_types::core::Machine;
use capstan_cloudstack_client::commands::ListUsers;
use capstan_cloudstack_client::{Call, Command, UserId};
use capstan_controller::{KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::types::{CloudStackMachineConfig, Cluster};
use capstan_object::Key;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::lifecycles::{machines, nothing_is_left, ready_with};
use crate::manifests::{self, NAME, SYSTEM};
use crate::story::{self, Play, Played, Script, failed};

/// Replaces the keys of a user: those of before are worthless at once.
#[derive(Serialize)]
struct RegisterUserKeys {
    id: UserId,
}

impl Command for RegisterUserKeys {
    const NAME: &'static str = "registerUserKeys";
}

impl Call for RegisterUserKeys {
    type Answer = Value;
    const KEY: Option<&'static str> = Some("userkeys");
}

fn versions(world: &World<'_>) -> Result<Vec<Value>, Violation> {
    let machines = world.objects()?.list(&KindName::of::<Machine>());
    Ok(machines.iter().map(|machine| machine["spec"]["version"].clone()).collect())
}

/// An upgrade whose keys become worthless in the middle, for a time.
fn play<'a, const SECONDS: u64>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
    Box::pin(async move {
        story::create(world, cloud, |_| ()).await?;
        world.run_until_idle().await?;
        ready_with(world, 1, 1)?;
        let before = machines(world)?;
        story::patch::<Cluster>(world, NAME, json!({"spec": {"kubernetesVersion": "1.36"}})).await?;
        for config in ["anywhere-cp", "anywhere-md"] {
            let template = json!({"spec": {"template": {"name": "ubuntu-2404-kube-v1.36.0"}}});
            story::patch::<CloudStackMachineConfig>(world, config, template).await?;
        }
        while !versions(world)?.iter().any(|version| version == "v1.36.0") {
            world.pass(Duration::from_secs(1)).await?;
        }
        world.note("KEYS");
        let tenant = cloud.client("capstan");
        let users = tenant.list(&ListUsers::default()).await.map_err(failed)?;
        let id = users.first().ok_or_else(|| failed("no user"))?.id.clone();
        tenant.call(&RegisterUserKeys { id }).await.map_err(failed)?;
        // Nothing works until the operator replaces the Secret.
        world.pass(Duration::from_secs(SECONDS)).await?;
        let found = versions(world)?;
        if !found.iter().any(|version| version == "v1.35.0") {
            return Err(Violation::new("L1", format!("upgraded without keys: {found:?}")));
        }
        let keys = manifests::keys(&cloud.simulator.credentials("capstan").map_err(failed)?);
        let change = Patch::Merge(json!({"stringData": keys["stringData"]}));
        let key = Key::new(SYSTEM, "global");
        world.user()?.patch(&manifests::secrets(), &key, None, &change).await.map_err(failed)?;
        world.run_until_idle().await?;
        ready_with(world, 1, 1)?;
        let found = versions(world)?;
        if found.iter().any(|version| version != "v1.36.0")
            || machines(world)?.iter().any(|name| before.contains(name))
        {
            return Err(Violation::new("L1", format!("not upgraded: {found:?}")));
        }
        story::delete(world, cloud).await?;
        nothing_is_left(world, cloud)
    })
}

fn goes_on(play: Play) {
    let report = run(&Script { play, most: 2, settings: Settings::default }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn an_upgrade_goes_on_with_the_keys_that_replace_its_own() {
    goes_on(play::<300>);
}

/// The new machine has joined etcd, but without keys its providerID stays unknown: it is replaced with its member.
#[test]
fn an_upgrade_goes_on_after_a_machine_without_keys_was_replaced() {
    goes_on(play::<1200>);
}
