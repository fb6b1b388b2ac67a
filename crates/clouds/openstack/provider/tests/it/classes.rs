//! A cluster of a ClusterClass: the example of the repository.

use capstan_capi_types::controlplane::KubeadmControlPlaneTemplate;
use capstan_capi_types::core::{Cluster, ClusterClass};
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_object::{Key, Object};
use capstan_openstack_types::v1beta2::OpenStackClusterTemplate;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{self, NAME, NAMESPACE, Shape};
use crate::story::{Act, CheckResult, Script, all_is_well, failed, patch};

const EXAMPLE: &str = include_str!("../../../../../../examples/openstack-class.yaml");
const NETWORK: &str = include_str!("../../../../../../examples/cni.yaml");

/// The documents of the example, whose cluster gets the name and the version that a story expects.
fn example(version: &str) -> Vec<(KindName, Value)> {
    let of_class = [
        KindName::of::<ClusterClass>(),
        KindName::of::<OpenStackClusterTemplate>(),
        KindName::of::<KubeadmControlPlaneTemplate>(),
    ];
    let documents = NETWORK.split("\n---\n").chain(EXAMPLE.split("\n---\n"));
    let documents = documents.filter(|text| text.lines().any(|line| line.starts_with("kind:")));
    documents
        .map(|text| {
            let mut body: Value = serde_saphyr::from_str(text).expect("YAML");
            body["metadata"]["namespace"] = NAMESPACE.into();
            let name = body["kind"].as_str().expect("a kind").to_owned();
            if name == Cluster::KIND.kind {
                body["metadata"]["name"] = NAME.into();
                body["spec"]["topology"]["version"] = version.into();
            }
            let own = of_class.iter().find(|kind| kind.kind == name).cloned();
            (own.unwrap_or_else(|| manifests::kind(&name)), body)
        })
        .collect()
}

async fn create(world: &World<'_>, version: &str) -> Result<(), Violation> {
    let user = world.user()?;
    let secret = manifests::credentials(NAMESPACE);
    user.create(&manifests::secrets(), NAMESPACE, &secret).await.map_err(failed)?;
    for (kind, body) in example(version) {
        user.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
    }
    Ok(())
}

async fn change(world: &World<'_>, topology: Value) -> Result<(), Violation> {
    patch::<Cluster>(world, NAME, json!({"spec": {"topology": topology}})).await
}

/// The topology is what the cluster consists of, and everything is named for the cluster.
fn is_reconciled(world: &World<'_>) -> Result<(), Violation> {
    let cluster = world.objects()?.get(&KindName::of::<Cluster>(), &Key::new(NAMESPACE, NAME));
    let conditions = cluster.unwrap_or_default()["status"]["conditions"].clone();
    let of_topology =
        conditions.as_array().into_iter().flatten().find(|it| it["type"] == "TopologyReconciled");
    match of_topology.is_some_and(|it| it["status"] == "True") {
        true => Ok(()),
        false => Err(Violation::new("topology", conditions.to_string())),
    }
}

/// The lifecycle of a cluster whose class is the example's, until it is deleted.
fn lives<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let mut shape = Shape { version: "v1.35.0", ..Shape::EXAMPLE };
        create(world, shape.version).await?;
        for act in 0..3 {
            match act {
                0 => {}
                1 => {
                    shape.workers = 2;
                    let workers = json!([{"class": "default-worker", "name": "md-0", "replicas": 2}]);
                    change(world, json!({"workers": {"machineDeployments": workers}})).await?;
                }
                _ => {
                    shape.version = "v1.36.0";
                    change(world, json!({"version": shape.version})).await?;
                }
            }
            world.run_until_idle().await?;
            all_is_well(shape, &Script::of(&[]), world, cloud)?;
            is_reconciled(world)?;
        }
        Ok(())
    })
}

#[test]
fn a_cluster_of_the_class_is_created_scaled_upgraded_and_goes_without_a_trace() {
    let report = run(&Script::of(&[Act::Check(lives), Act::Delete]), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
