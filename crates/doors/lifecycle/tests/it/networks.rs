//! Whole lifecycles of the CNI of a cluster.

use capstan_controller::{Client, KindName};
use capstan_harness::{Violation, World, run};
use capstan_lifecycle::types::Cluster;
use capstan_object::Key;
use serde_json::{Value, json};

use crate::chart;
use crate::cloud::Cloud;
use crate::lifecycles::{nothing_is_left, ready_with};
use crate::manifests::{NAME, SYSTEM};
use crate::story::{self, Play, Played, Script, cluster, failed};

fn goes_well(play: Play) -> String {
    let report = run(&Script { play, most: 2, settings: chart::settings }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
    report.trace.text()
}

async fn workload(world: &World<'_>, cloud: &Cloud) -> Result<Client, Violation> {
    let workloads = capstan_capi_plane::workloads(world.user()?, cloud.site.dial(), cloud.env.clone());
    workloads.client(&Key::new(SYSTEM, NAME)).await.map_err(failed)
}

/// An object of the workload cluster; null if there is none.
async fn there(client: &Client, group: &str, kind: &str, name: &str) -> Result<Value, Violation> {
    let plural = format!("{}s", kind.to_lowercase());
    let kind = KindName {
        group: group.to_owned().into(),
        version: "v1".into(),
        kind: kind.to_owned().into(),
        plural: plural.into(),
        scope: capstan_object::Scope::Namespaced,
    };
    let reply = client.get_raw(&kind, &Key::new("kube-system", name)).await.map_err(failed)?;
    reply.map_or(Ok(Value::Null), |reply| reply.parse().map_err(failed))
}

async fn image(client: &Client, kind: &str, name: &str) -> Result<Value, Violation> {
    let object = there(client, "apps", kind, name).await?;
    Ok(object.pointer("/spec/template/spec/containers/0/image").cloned().unwrap_or_default())
}

fn condition(world: &World<'_>) -> Result<Value, Violation> {
    let cluster = cluster(world)?;
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    Ok(conditions.into_iter().find(|it| it["type"] == "DefaultCNIConfigured").unwrap_or_default())
}

fn wrong(what: impl std::fmt::Display) -> Result<(), Violation> {
    Err(Violation::new("L1", what.to_string()))
}

async fn set(world: &World<'_>, cilium: Value) -> Result<(), Violation> {
    let change = json!({"spec": {"clusterNetwork": {"cniConfig": {"cilium": cilium}}}});
    story::patch::<Cluster>(world, NAME, change).await
}

#[test]
fn a_version_is_checked_on_every_node_before_it_is_installed_and_a_setting_is_not() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |_| ()).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            let client = workload(world, cloud).await?;
            if image(&client, "DaemonSet", "cilium").await? != "quay.io/cilium/cilium:v1.16.5" {
                return wrong(there(&client, "apps", "DaemonSet", "cilium").await?);
            }

            set(world, json!({"policyEnforcementMode": "always"})).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            let config = there(&client, "", "ConfigMap", "cilium-config").await?;
            if config["data"]["enable-policy"] != "always" {
                return wrong(config);
            }
            world.note("UPGRADE");
            set(world, json!({"helmValues": {"image": {"tag": "v1.17.4"}}, "policyEnforcementMode": null}))
                .await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            for (kind, name) in [("DaemonSet", "cilium"), ("Deployment", "cilium-operator")] {
                let image = image(&client, kind, name).await?;
                if image != format!("quay.io/cilium/{name}:v1.17.4") {
                    return wrong(format!("{kind} {name} has {image}"));
                }
                let check = there(&client, "apps", kind, "cilium-pre-flight-check").await?;
                if !check.is_null() {
                    return wrong(format!("left: {check}"));
                }
            }
            let config = there(&client, "", "ConfigMap", "cilium-config").await?;
            if config["data"]["upgrade-compatibility"] != "1.16" {
                return wrong(config);
            }
            // Certificates of the chart are in no ConfigMap.
            let maps = KindName::namespaced("", "v1", "ConfigMap", "configmaps");
            if world.objects()?.list(&maps).iter().any(|map| map.to_string().contains("hidden")) {
                return wrong("a ConfigMap has a key");
            }
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    let trace = goes_well(play);
    let lines: Vec<&str> = trace.lines().filter(|line| line.contains("preflight check of the CNI")).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
}

#[test]
fn a_chart_that_cannot_be_rendered_is_reported_and_leaves_what_runs() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |_| ()).await?;
            world.run_until_idle().await?;
            set(world, json!({"helmValues": {"image": {"tag": "wrong"}}})).await?;
            world.pass(std::time::Duration::from_secs(90)).await?;
            let reported = condition(world)?;
            let message = reported["message"].as_str().unwrap_or_default();
            if reported["reason"] != "DefaultCNIInvalid"
                || !message
                    .starts_with("E-LC-CNI: the manifests of Cilium cannot be rendered: execution error")
            {
                return wrong(reported);
            }
            let client = workload(world, cloud).await?;
            if image(&client, "DaemonSet", "cilium").await? != "quay.io/cilium/cilium:v1.16.5" {
                return wrong("the CNI was changed");
            }
            set(world, json!({"helmValues": {"image": {"tag": "v1.16.5"}}})).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            if condition(world)?["status"] != "True"
                || cluster(world)?["status"].get("failureMessage").is_some()
            {
                return wrong(condition(world)?);
            }
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}

#[test]
fn what_is_left_to_the_owner_is_installed_once_and_not_upgraded() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |body| {
                if body["kind"] == "Cluster" {
                    body["spec"]["clusterNetwork"]["cniConfig"]["cilium"] = json!({"skipUpgrade": true});
                }
            })
            .await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            let client = workload(world, cloud).await?;
            if image(&client, "DaemonSet", "cilium").await? != "quay.io/cilium/cilium:v1.16.5" {
                return wrong("the CNI of a new cluster is not installed");
            }
            let skipped = condition(world)?;
            if skipped["reason"] != "SkipUpgradesForDefaultCNIConfigured" || skipped["status"] != "False" {
                return wrong(skipped);
            }
            // What Capstan installs is upgraded, until that is skipped.
            set(world, json!({"skipUpgrade": null, "policyEnforcementMode": "always"})).await?;
            world.run_until_idle().await?;
            if condition(world)?["status"] != "True" {
                return wrong(condition(world)?);
            }
            set(world, json!({"skipUpgrade": true, "policyEnforcementMode": null})).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            let config = there(&client, "", "ConfigMap", "cilium-config").await?;
            if config["data"]["enable-policy"] != "always" {
                return wrong(config);
            }
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}
