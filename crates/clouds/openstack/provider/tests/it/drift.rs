//! What others change in the cloud shows within a minute, whenever objects were looked at before.

use std::time::Duration;

use capstan_controller::{KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::compute::Server;
use capstan_openstack_types::v1alpha1::OpenStackServer;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{NAMESPACE, Shape};
use crate::story::Act::{Check, Create};
use crate::story::{CheckResult, Script, failed};

/// Seconds.
const PROMISED: u64 = 60;

fn servers(world: &World<'_>) -> Result<Vec<Value>, Violation> {
    Ok(world.objects()?.list(&KindName::of::<OpenStackServer>()))
}

fn state(world: &World<'_>, name: &str) -> Result<String, Violation> {
    let all = servers(world)?;
    let found = all.iter().find(|it| it["metadata"]["name"] == name);
    let state = found.and_then(|it| it["status"]["instanceState"].as_str());
    state.map(str::to_owned).ok_or_else(|| failed("no server"))
}

/// An object is looked at out of turn, and its server is deleted a moment later.
async fn seen_after(world: &mut World<'_>, cloud: &Cloud, server: &Value) -> Result<u64, Violation> {
    let name = server["metadata"]["name"].as_str().unwrap_or_default();
    let (kind, key) = (KindName::of::<OpenStackServer>(), Key::new(NAMESPACE, name));
    let poke = Patch::Merge(json!({"metadata": {"labels": {"poked": "true"}}}));
    world.user()?.patch(&kind, &key, None, &poke).await.map_err(failed)?;
    world.pass(Duration::from_secs(1)).await?;
    let id = server["status"]["instanceID"].as_str().unwrap_or_default();
    cloud.client().delete::<Server>(&id.into()).await.map_err(failed)?;
    for second in 0..=2 * PROMISED {
        if state(world, name)? != "ACTIVE" {
            return Ok(second);
        }
        world.pass(Duration::from_secs(1)).await?;
    }
    Err(failed(format!("{name} is still ACTIVE")))
}

#[test]
fn a_server_that_others_delete_is_seen_within_a_minute_whenever_it_was_looked_at_before() {
    fn late<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            for server in servers(world)? {
                // Rounds and looks drift apart.
                world.pass(Duration::from_secs(17)).await?;
                let seconds = seen_after(world, cloud, &server).await?;
                if seconds > PROMISED {
                    return Err(Violation::new("drift", format!("seen after {seconds} seconds")));
                }
            }
            Ok(())
        })
    }
    let shape = Shape { workers: 4, ..Shape::EXAMPLE };
    let report = run(&Script { bare: true, shape, ..Script::of(&[Create, Check(late)]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
