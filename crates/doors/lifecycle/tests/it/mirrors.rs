//! A registry mirror with credentials: machines get them, and nothing else shows them.

use std::time::Duration;

use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_controller::{KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::types::Cluster;
use capstan_object::Key;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::lifecycles::{machines, nothing_is_left, ready_with};
use crate::manifests::{NAME, SYSTEM, secrets};
use crate::story::{self, Played, Script, cluster, failed};

const PASSWORD: &str = "hidden-password";

fn wrong(what: impl std::fmt::Display) -> Result<(), Violation> {
    Err(Violation::new("L1", what.to_string()))
}

/// The Secret with containerd's configuration.
fn configuration(world: &World<'_>) -> Result<Value, Violation> {
    let key = Key::new(SYSTEM, format!("{NAME}-registry"));
    Ok(world.objects()?.get(&secrets(), &key).unwrap_or_default()["data"]["config_append.toml"].clone())
}

#[test]
fn machines_log_in_to_a_mirror_and_nothing_shows_how() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |body| {
                if body["kind"] == "Cluster" {
                    body["spec"]["registryMirrorConfiguration"] =
                        json!({"endpoint": "mirror.example.org", "authenticate": true});
                }
            })
            .await?;
            world.pass(Duration::from_secs(60)).await?;
            let status = cluster(world)?["status"].clone();
            let missing = "there is no Secret eksa-system/registry-credentials with the credentials of the registry mirror: create it with the fields username and password";
            if status["failureReason"] != "ClusterInvalid" || status["failureMessage"] != missing {
                return wrong(status);
            }
            let login = |password: &str| {
                json!({
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry-credentials", "namespace": SYSTEM},
                    "stringData": {"username": "robot", "password": password},
                })
            };
            world.user()?.create(&secrets(), SYSTEM, &login(PASSWORD)).await.map_err(failed)?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            let (before, first) = (machines(world)?, configuration(world)?);
            let kinds = [
                KindName::of::<Cluster>(),
                KindName::of::<KubeadmControlPlane>(),
                KindName::of::<KubeadmConfigTemplate>(),
                KindName::namespaced("", "v1", "ConfigMap", "configmaps"),
            ];
            for kind in &kinds {
                let all = world.objects()?.list(kind);
                if all.is_empty() || all.iter().any(|object| object.to_string().contains(PASSWORD)) {
                    return wrong(format!("{kind}: none, or one shows the password"));
                }
            }
            // Other credentials are for new machines.
            let change = Patch::Merge(json!({"stringData": login("another")["stringData"]}));
            let key = Key::new(SYSTEM, "registry-credentials");
            world.user()?.patch(&secrets(), &key, None, &change).await.map_err(failed)?;
            world.run_until_idle().await?;
            if first.is_null() || configuration(world)? == first || machines(world)? != before {
                return wrong("the credentials were not replaced, or machines were");
            }
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    let report = run(&Script { play, most: 2, settings: Settings::default }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
    assert!(!report.trace.text().contains(PASSWORD));
}
