//! `capstan orphans`: what carries our mark and has no object.

use std::sync::Arc;

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_openstack_client::Client;
use capstan_openstack_client::compute::{NewServerGroup, ServerGroup};
use capstan_openstack_client::network::{
    Network, NetworkFilter, NewNetwork, NewPort, NewSubnet, NewTrunk, Port, Subnet, Trunk,
};
use capstan_openstack_provider::{Clouds, OpenStack};
use capstan_openstack_types::v1alpha1::OpenStackClusterIdentity;
use capstan_provider_kit::{DifferenceKind, Provider as _};
use capstan_sim_openstack::{Service, Settings};
use serde_json::json;

use crate::cloud::{Cloud, TENANT};
use crate::manifests::NAMESPACE;
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

/// The uid of an object that is gone.
const GONE: &str = "0a5c9e0e-2f4b-4f5e-9f0a-0123456789ab";

/// Everything that carries the mark of an object that is gone: the kinds that nothing but a list finds.
async fn leave_behind(client: &Client) -> Result<(), Violation> {
    let marked = || Some(format!("by somebody capstan-mark={GONE}"));
    let new = NewNetwork { name: "left".to_owned(), description: marked(), ..NewNetwork::default() };
    let network: Network = client.create(&new).await.map_err(failed)?;
    let new = NewSubnet {
        network_id: network.id.clone(),
        name: "left-subnet".to_owned(),
        description: marked(),
        ip_version: 4,
        cidr: "10.9.0.0/24".to_owned(),
        ..NewSubnet::default()
    };
    client.create::<Subnet>(&new).await.map_err(failed)?;
    let new = NewPort {
        network_id: network.id,
        name: "left-port".to_owned(),
        description: marked(),
        ..NewPort::default()
    };
    let port: Port = client.create(&new).await.map_err(failed)?;
    let new = NewTrunk { port_id: port.id, name: "left-trunk".to_owned(), description: marked() };
    client.create::<Trunk>(&new).await.map_err(failed)?;
    for name in [format!("k8s-c-md-anti-affinity-{GONE}"), "k8s-c-md-anti-affinity-theirs".to_owned()] {
        let new = NewServerGroup { name, policy: "anti-affinity".to_owned(), max_server_per_host: None };
        client.create::<ServerGroup>(&new).await.map_err(failed)?;
    }
    Ok(())
}

#[test]
fn after_the_last_cluster_the_project_of_a_cluster_identity_is_still_looked_at() {
    fn share<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let kind = KindName::of::<OpenStackClusterIdentity>();
            let body = json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackClusterIdentity",
                "metadata": {"name": "shared"},
                "spec": {"secretRef": {"name": "openstack-credentials", "namespace": NAMESPACE}},
            });
            world.user()?.create(&kind, "", &body).await.map(drop).map_err(failed)
        })
    }
    fn compare<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            leave_behind(&cloud.client()).await?;
            let provider = OpenStack::reaching(Clouds::new(Arc::new(cloud.clone())));
            let inventory = provider.inventory().ok_or_else(|| failed("no inventory"))?;
            let drift = inventory.compare(&world.user()?, "").await.map_err(failed)?;
            let mut found: Vec<_> = drift.differences.iter().map(|it| it.what.as_str()).collect();
            found.sort_unstable();
            let group = format!("ServerGroup/k8s-c-md-anti-affinity-{GONE}");
            let wanted =
                ["Network/left", "Port/left-port", group.as_str(), "Subnet/left-subnet", "Trunk/left-trunk"];
            if found != wanted {
                return Err(Violation::new("orphans", format!("{found:?}")));
            }
            for project in &drift.unrecorded {
                let removed = project.remove().await.map_err(failed)?;
                if !removed.kept.is_empty() {
                    return Err(Violation::new("orphans", format!("{:?}", removed.kept)));
                }
            }
            let left: Vec<String> =
                cloud.simulator.leaks(Some(TENANT)).into_iter().map(|leak| leak.name).collect();
            match left == ["k8s-c-md-anti-affinity-theirs"] {
                true => Ok(()),
                false => Err(Violation::new("orphans", format!("{left:?}"))),
            }
        })
    }
    let acts = [Create, Check(share), Delete, Check(compare)];
    let report = run(&Script { bare: true, ..Script::of(&acts) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_cloud_without_trunks_and_load_balancers_is_looked_through() {
    fn compare<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let provider = OpenStack::reaching(Clouds::new(Arc::new(cloud.clone())));
            let inventory = provider.inventory().ok_or_else(|| failed("no inventory"))?;
            let drift = inventory.compare(&world.user()?, "").await.map_err(failed)?;
            match drift.differences.is_empty() {
                true => Ok(()),
                false => Err(Violation::new("orphans", format!("{:?}", drift.differences))),
            }
        })
    }
    fn change(body: &mut serde_json::Value) {
        if body["kind"] == "OpenStackCluster" {
            body["spec"]["apiServer"]["managedLoadBalancer"]["enabled"] = false.into();
        }
    }
    let settings = Settings {
        absent_services: vec![Service::LoadBalancer],
        disabled_extensions: vec!["trunk".to_owned(), "trunk-details".to_owned()],
        ..Settings::default()
    };
    let script = Script::of(&[Create, Check(compare), Delete]);
    let story = Script { bare: true, members: false, change: Some(change), settings, ..script };
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn what_is_marked_and_has_no_object_is_found_and_removed_and_nothing_else() {
    fn compare<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let provider = OpenStack::reaching(Clouds::new(Arc::new(cloud.clone())));
            let inventory = provider.inventory().ok_or_else(|| failed("no inventory"))?;
            let user = world.user()?;
            let drift = inventory.compare(&user, "").await.map_err(failed)?;
            if !drift.differences.is_empty() {
                return Err(Violation::new("orphans", format!("{:?}", drift.differences)));
            }
            let client = cloud.client();
            for (name, description) in [("left", "by somebody capstan-mark=gone"), ("theirs", "by somebody")]
            {
                let description = Some(description.to_owned());
                let new = NewNetwork { name: name.to_owned(), description, ..NewNetwork::default() };
                client.create::<Network>(&new).await.map_err(failed)?;
            }
            let drift = inventory.compare(&user, "").await.map_err(failed)?;
            let found: Vec<_> = drift.differences.iter().map(|it| (it.how, it.what.as_str())).collect();
            if found != [(DifferenceKind::Unrecorded, "Network/left")] {
                return Err(Violation::new("orphans", format!("{found:?}")));
            }
            for project in &drift.unrecorded {
                let removed = project.remove().await.map_err(failed)?;
                if !removed.kept.is_empty() {
                    return Err(Violation::new("orphans", format!("{:?}", removed.kept)));
                }
            }
            let left = cloud.names("networks");
            if left.len() != 2 || left.contains(&"left".to_owned()) {
                return Err(Violation::new("orphans", format!("{left:?}")));
            }
            let filter = NetworkFilter { name: Some("theirs".to_owned()), ..NetworkFilter::default() };
            for theirs in client.list::<Network>(&filter).await.map_err(failed)? {
                client.delete(&theirs.id).await.map_err(failed)?;
            }
            Ok(())
        })
    }
    let story = Script { bare: true, ..Script::of(&[Create, Check(compare), Delete]) };
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
