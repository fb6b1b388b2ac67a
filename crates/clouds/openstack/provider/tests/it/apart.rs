//! Clusters of one name in other projects and regions of one cloud.

use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use serde_json::json;

use crate::cloud::{Cloud, OTHER, TENANT, clouds_yaml};
use crate::manifests::{self, NAME, Shape};
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("apart", what)) }
}

/// Applies the example in a namespace, with credentials of its own.
async fn apply(world: &mut World<'_>, namespace: &str, clouds: String) -> Result<(), Violation> {
    let user = world.user()?;
    let mut namespaces = KindName::namespaced("", "v1", "Namespace", "namespaces");
    namespaces.scope = capstan_object::Scope::Cluster;
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    user.create(&namespaces, "", &body).await.map_err(failed)?;
    let mut secret = manifests::credentials(namespace);
    secret["stringData"]["clouds.yaml"] = clouds.into();
    user.create(&manifests::secrets(), namespace, &secret).await.map_err(failed)?;
    for (kind, mut body) in manifests::example(Shape::EXAMPLE) {
        if !matches!(body["kind"].as_str(), Some("ClusterResourceSet" | "ConfigMap")) {
            body["metadata"]["namespace"] = namespace.into();
            user.create(&kind, namespace, &body).await.map_err(failed)?;
        }
    }
    world.run_until_idle().await
}

async fn delete(world: &mut World<'_>, namespace: &str) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<capstan_capi_types::core::Cluster>(), Key::new(namespace, NAME));
    world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
    world.run_until_idle().await?;
    check(world.objects()?.get(&kind, &key).is_none(), format!("the cluster in {namespace} is still there"))
}

/// Servers of a project in a region.
fn servers(cloud: &Cloud, project: &str, region: &str) -> usize {
    let all = cloud.simulator.leaks(Some(project));
    all.iter().filter(|it| it.kind == "servers" && it.region == region).count()
}

#[test]
fn clusters_of_one_name_in_two_projects_and_two_regions_do_not_touch_each_other() {
    fn others<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let region = clouds_yaml().replace("RegionOne", "RegionTwo");
            apply(world, "region", region).await?;
            let project =
                clouds_yaml().replace(&format!("username: {TENANT}"), &format!("username: {OTHER}"));
            let project =
                project.replace(&format!("project_name: {TENANT}"), &format!("project_name: {OTHER}"));
            apply(world, "project", project).await?;
            let counts = |cloud: &Cloud| {
                [(TENANT, "RegionOne"), (TENANT, "RegionTwo"), (OTHER, "RegionOne")]
                    .map(|(project, region)| servers(cloud, project, region))
            };
            check(counts(cloud) == [2, 2, 2], format!("{:?}", counts(cloud)))?;
            delete(world, "region").await?;
            check(counts(cloud) == [2, 0, 2], format!("{:?}", counts(cloud)))?;
            delete(world, "project").await?;
            check(counts(cloud) == [2, 0, 0], format!("{:?}", counts(cloud)))?;
            let leaks = cloud.simulator.leaks(Some(OTHER));
            check(leaks.is_empty(), format!("{leaks:?}"))
        })
    }
    let script = Script { bare: true, ..Script::of(&[Create, Check(others), Delete]) };
    let report = run(&script, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
