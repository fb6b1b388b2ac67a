//! The address of an API server that something else has: named by who has it, until it is free.

use std::time::Duration;

use capstan_capi_types::core;
use capstan_cloudstack_client::commands::{
    DeployVirtualMachine, DestroyVirtualMachine, ListNetworks, ListServiceOfferings, ListTemplates,
    ListZones, NetworkAddress, Scope,
};
use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::types::Cluster;
use capstan_object::{Key, Object as _};
use serde_json::json;

use crate::cloud::{Cloud, Stranger};
use crate::lifecycles::{nothing_is_left, ready_with};
use crate::manifests::{self, NAME, NAMESPACE};
use crate::story::{self, Played, Script, failed};

const ADDRESS: &str = "10.99.0.250";

async fn is_taken(world: &mut World<'_>, name: &str, by: &str) -> Result<(), Violation> {
    world.pass(Duration::from_secs(60)).await?;
    let key = Key::new(NAMESPACE, name);
    let status = world.objects()?.get(&KindName::of::<Cluster>(), &key).unwrap_or_default()["status"].clone();
    let expected = format!(
        "cluster controlPlaneConfiguration.Endpoint.Host <{ADDRESS}> is already in use, control plane IP must be unique: {by} has it"
    );
    match status["failureReason"] == "UnavailableControlPlaneIP" && status["failureMessage"] == expected {
        true => Ok(()),
        false => Err(Violation::new("L1", format!("{name}: {status} instead of {expected}"))),
    }
}

/// A machine by hand, with the address.
async fn deployed(cloud: &Cloud) -> Result<DestroyVirtualMachine, Violation> {
    let tenant = cloud.client("capstan");
    let none = || failed("the cloud is empty");
    let all = tenant.list(&ListZones::default()).await.map_err(failed)?;
    let zone = all.into_iter().next().ok_or_else(none)?.id;
    let all = tenant.list(&ListServiceOfferings::default()).await.map_err(failed)?;
    let offering = all.into_iter().find(|it| it.name == "Small Instance").ok_or_else(none)?.id;
    let all = tenant.list(&ListTemplates::default()).await.map_err(failed)?;
    let template = all.into_iter().find(|it| it.name.contains("kube")).ok_or_else(none)?.id;
    let question = ListNetworks { scope: Scope::all(), ..ListNetworks::default() };
    let all = tenant.list(&question).await.map_err(failed)?;
    let networkid = all.into_iter().next().ok_or_else(none)?.id;
    let request = DeployVirtualMachine {
        name: Some("by-hand".to_owned()),
        startvm: Some(false),
        iptonetworklist: vec![NetworkAddress { networkid, ip: ADDRESS.parse().ok() }],
        ..DeployVirtualMachine::new(zone, offering, template)
    };
    let made = tenant.run(&request).await.map_err(failed)?;
    Ok(DestroyVirtualMachine { id: made.id, expunge: None, volumeids: Vec::new() })
}

#[test]
fn an_address_that_is_in_use_is_refused_until_it_is_free() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            *cloud.stranger.lock() = Some(Stranger::Answers);
            story::create(world, cloud, |_| ()).await?;
            is_taken(world, NAME, "a server that answers on port 6443").await?;
            *cloud.stranger.lock() = Some(Stranger::Refuses);
            is_taken(world, NAME, "a host that refuses port 6443").await?;

            // Of two clusters that ask for the same address, the older waits for it, and the other for that one.
            let mut second =
                manifests::example().into_iter().find(|body| body["kind"] == "Cluster").unwrap_or_default();
            second["metadata"]["name"] = "second".into();
            let kind = KindName::of::<Cluster>();
            world.user()?.create(&kind, NAMESPACE, &second).await.map_err(failed)?;
            is_taken(world, "second", "cluster default/anywhere").await?;
            is_taken(world, NAME, "a host that refuses port 6443").await?;

            let plain = json!({
                "apiVersion": core::Cluster::KIND.api_version(), "kind": "Cluster",
                "metadata": {"name": "plain", "namespace": NAMESPACE},
                "spec": {
                    "controlPlaneEndpoint": {"host": ADDRESS, "port": 6443},
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "CloudStackCluster", "name": "plain"},
                },
            });
            let capi = KindName::of::<core::Cluster>();
            world.user()?.create(&capi, NAMESPACE, &plain).await.map_err(failed)?;
            is_taken(world, NAME, "cluster default/plain").await?;
            let machine = deployed(cloud).await?;
            *cloud.stranger.lock() = None;
            let plain = Key::new(NAMESPACE, "plain");
            let gone = world.user()?.delete(&capi, &plain, &Deletion::default()).await;
            gone.map_err(failed)?;
            is_taken(world, NAME, "virtual machine by-hand").await?;

            cloud.client("capstan").run(&machine).await.map_err(failed)?;
            world.pass(Duration::from_secs(600)).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            is_taken(world, "second", "cluster eksa-system/anywhere").await?;
            story::ask_to_delete::<Cluster>(world, "second").await?;
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    let report = run(&Script { play, most: 2, settings: Settings::default }, 1, &[]);
    let found = report.violation.as_ref().map(ToString::to_string);
    assert!(found.is_none(), "{found:?}\n{}", report.transcript());
}
