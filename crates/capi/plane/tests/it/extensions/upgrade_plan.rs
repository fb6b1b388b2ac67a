//! Upgrades whose versions an extension plans.

use super::*;

#[tokio::test]
async fn an_upgrade_passes_through_the_versions_that_an_extension_plans() {
    const LAST: &str = "v1.37.0";
    let world = World::start().await;
    let server = Extension::start().await;
    register(&world, "ext", server.spec("")).await;
    create_templates(&world).await;
    let upgrade = json!({"external": {"generateUpgradePlanExtension": "generateupgradeplan.ext"}});
    world.create(&classes(), "k", json!({"spec": class_spec(json!({"upgrade": upgrade}))})).await;
    create_cluster(&world, Value::Null).await;
    control_plane_has(&world, OLD).await;
    topology_reports(&world, "ReconcileSucceeded", "").await;
    assert!(server.calls("GenerateUpgradePlan").is_empty(), "nothing is upgraded");

    server.respond("GenerateUpgradePlan", json!({"controlPlaneUpgrades": [{"version": LAST}]}));
    patch_cluster(&world, json!({"spec": {"topology": {"version": LAST}}})).await;
    let invalid = "GenerateUpgradePlan: response of extension handler \"generateupgradeplan.ext\" cannot be used: \
                   invalid ControlPlane upgrade plan: item 0; expecting a version with minor 35 or 36";
    topology_reports(&world, "ReconcileFailed", invalid).await;
    server.behave(Mood::Garbage);
    let failed = "GenerateUpgradePlan: failed to call extension handler \"generateupgradeplan.ext\"";
    topology_reports(&world, "ReconcileFailed", failed).await;
    server.release("GenerateUpgradePlan");
    server.behave(Mood::Healthy);
    // A change of the Cluster asks again without waiting for the back-off.
    patch_cluster(&world, json!({"metadata": {"annotations": {"example.com/again": ""}}})).await;

    let name = name_of(&world, "controlPlaneRef").await;
    for version in [NEW, LAST] {
        until(&world, &fake("FakeControlPlane"), &name, version, |object| {
            object.is_some_and(|object| object["spec"]["version"] == version)
        })
        .await;
        let to = format!(" to {LAST}");
        if version == NEW {
            topology_reports(&world, "ClusterUpgrading", &to).await;
        }
        control_plane_has(&world, version).await;
    }
    topology_reports(&world, "ReconcileSucceeded", "").await;
    let kind = core("MachineDeployment", "machinedeployments");
    let options = capstan_controller::ListOptions::default();
    let list = world.user.list::<Value>(&kind, "default", &options).await.expect("a list");
    assert_eq!(list.items[0]["spec"]["template"]["spec"]["version"], LAST);

    let calls = server.calls("GenerateUpgradePlan");
    let request = &calls[0];
    assert_eq!(request["kind"], "GenerateUpgradePlanRequest");
    assert_eq!(
        (
            &request["fromControlPlaneKubernetesVersion"],
            &request["fromWorkersKubernetesVersion"],
            &request["toKubernetesVersion"],
        ),
        (&json!(OLD), &json!(OLD), &json!(LAST))
    );
    assert_eq!(request["cluster"]["metadata"]["name"], "c");
    assert_eq!(request["cluster"].get("status"), None);
}
