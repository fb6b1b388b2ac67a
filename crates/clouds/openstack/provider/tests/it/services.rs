//! What the cloud controller manager of a workload cluster made for Services, when the cluster is deleted.

use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::block_storage::{NewVolume, Volume};
use capstan_openstack_client::load_balancer::{LoadBalancer, NewLoadBalancer};
use capstan_openstack_client::network::{
    FloatingIp, FloatingIpFilter, Network, NetworkFilter, NewFloatingIp, NewNetwork, NewPort,
    NewSecurityGroup, NewSubnet, Port, PortChange, PortFilter, PortSecurityGroups, SecurityGroup, Subnet,
    SubnetFilter,
};
use capstan_openstack_client::{Client, Id};

use crate::cloud::Cloud;
use crate::manifests::{NAME, NAMESPACE};
use crate::story::Act::{Check, Create};
use crate::story::{CheckResult, Script, failed};

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("services", what)) }
}

async fn balancer(client: &Client, name: &str, subnet: &Id<Subnet>) -> Result<LoadBalancer, Violation> {
    let new = NewLoadBalancer {
        name: name.to_owned(),
        vip_subnet_id: Some(subnet.clone()),
        ..NewLoadBalancer::default()
    };
    client.create(&new).await.map_err(failed)
}

async fn address(client: &Client, balancer: &LoadBalancer, description: &str) -> Result<(), Violation> {
    let filter = NetworkFilter { is_external: Some(true), ..NetworkFilter::default() };
    let external = client.list::<Network>(&filter).await.map_err(failed)?;
    let new = NewFloatingIp {
        floating_network_id: external[0].id.clone(),
        port_id: Some(balancer.vip_port_id.clone()),
        description: Some(description.to_owned()),
        ..NewFloatingIp::default()
    };
    client.create::<FloatingIp>(&new).await.map(drop).map_err(failed)
}

/// A security group as the controller manager makes it for a Service of the namespace `default`.
async fn group(client: &Client, uid: &str, service: &str) -> Result<Id<SecurityGroup>, Violation> {
    let new = NewSecurityGroup {
        name: format!("lb-sg-{uid}-default-{service}"),
        description: Some(format!(
            "Security Group for default/{service} Service LoadBalancer in cluster kubernetes"
        )),
    };
    client.create::<SecurityGroup>(&new).await.map(|made| made.id).map_err(failed)
}

/// A network with a subnet that has nothing to do with the cluster.
async fn elsewhere(client: &Client) -> Result<Subnet, Violation> {
    let new = NewNetwork { name: "elsewhere".to_owned(), ..NewNetwork::default() };
    let network: Network = client.create(&new).await.map_err(failed)?;
    let new = NewSubnet {
        network_id: network.id,
        name: "elsewhere".to_owned(),
        ip_version: 4,
        cidr: "10.8.0.0/24".to_owned(),
        ..NewSubnet::default()
    };
    client.create(&new).await.map_err(failed)
}

/// The workload's API is gone with its machines, so only the provider can remove what is left.
#[test]
fn what_was_made_for_services_goes_with_the_cluster_and_that_of_others_stays() {
    fn serve<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let client = cloud.client();
            let filter = SubnetFilter { cidr: Some("10.6.0.0/24".to_owned()), ..SubnetFilter::default() };
            let subnets = client.list::<Subnet>(&filter).await.map_err(failed)?;
            let subnet = subnets.first().ok_or_else(|| failed("no subnet"))?;
            // The controller manager's own name of the cluster is `kubernetes` unless somebody set it.
            let web = balancer(&client, "kube_service_kubernetes_default_web", &subnet.id).await?;
            address(&client, &web, "Floating IP for Kubernetes external service default/web").await?;
            let shop = balancer(&client, "kube_service_stacky_default_shop", &subnet.id).await?;
            address(&client, &shop, "reserved for the shop").await?;
            let guard = group(&client, "1", "web").await?;
            let ports = client.list::<Port>(&PortFilter::default()).await.map_err(failed)?;
            for node in ports.iter().filter(|port| port.device_owner.starts_with("compute:az")) {
                let groups = node.security_groups.iter().cloned().chain([guard.clone()]).collect();
                let change = PortChange { security_groups: Some(groups), ..PortChange::default() };
                client.update::<Port>(&node.id, &change).await.map_err(failed)?;
            }

            let other = elsewhere(&client).await?;
            balancer(&client, "kube_service_kubernetes_default_mail", &other.id).await?;
            group(&client, "2", "mail").await?;
            // A cluster whose controller manager has the same name, with a Service of the same name.
            let used = group(&client, "3", "web").await?;
            let new = NewPort {
                network_id: other.network_id.clone(),
                name: "node".to_owned(),
                security_groups: PortSecurityGroups::These(vec![used]),
                ..NewPort::default()
            };
            client.create::<Port>(&new).await.map(drop).map_err(failed)
        })
    }
    fn gone<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let (kind, key) =
                (KindName::of::<capstan_capi_types::core::Cluster>(), Key::new(NAMESPACE, NAME));
            world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
            world.run_until_idle().await?;
            check(world.objects()?.get(&kind, &key).is_none(), "the cluster is still there")?;
            for (kind, left) in [
                ("networks", vec!["elsewhere"]),
                ("loadbalancers", vec!["kube_service_kubernetes_default_mail"]),
                ("security_groups", vec!["lb-sg-2-default-mail", "lb-sg-3-default-web"]),
            ] {
                let mut names = cloud.names(kind);
                names.sort();
                check(names == left, format!("{kind}: {names:?}"))?;
            }
            let addresses =
                cloud.client().list::<FloatingIp>(&FloatingIpFilter::default()).await.map_err(failed)?;
            let left: Vec<&str> = addresses.iter().map(|it| it.description.as_str()).collect();
            check(left == ["reserved for the shop"], format!("{left:?}"))
        })
    }
    let story = Script { bare: true, ..Script::of(&[Create, Check(serve), Check(gone)]) };
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Volumes and a snapshot of PersistentVolumes, as Cinder's CSI driver makes them.
async fn provision(client: &Client) -> Result<(), Violation> {
    for (name, cluster) in [("pvc-1", NAME), ("pvc-2", NAME), ("pvc-3", "another")] {
        let metadata = [("cinder.csi.openstack.org/cluster".to_owned(), cluster.to_owned())].into();
        let new = NewVolume { name: name.to_owned(), size: 1, metadata, ..NewVolume::default() };
        client.create::<Volume>(&new).await.map_err(failed)?;
    }
    Ok(())
}

#[test]
fn volumes_of_the_workload_go_with_the_cluster_only_if_an_annotation_says_so() {
    fn provisioned<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move { provision(&cloud.client()).await })
    }
    fn ask(body: &mut serde_json::Value) {
        if body["kind"] == "OpenStackCluster" {
            body["metadata"]["annotations"] = serde_json::json!({"capstan.dev/openstack-volumes": "delete"});
        }
    }
    async fn gone(world: &mut World<'_>, cloud: &Cloud, left: &[&str]) -> Result<(), Violation> {
        let (kind, key) = (KindName::of::<capstan_capi_types::core::Cluster>(), Key::new(NAMESPACE, NAME));
        world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
        world.run_until_idle().await?;
        check(world.objects()?.get(&kind, &key).is_none(), "the cluster is still there")?;
        let mut names = cloud.names("volumes");
        names.sort();
        check(names == left, format!("{names:?}"))
    }
    fn kept<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(gone(world, cloud, &["pvc-1", "pvc-2", "pvc-3"]))
    }
    fn deleted<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(gone(world, cloud, &["pvc-3"]))
    }
    let acts = [Create, Check(provisioned), Check(kept)];
    let keep = Script { bare: true, ..Script::of(&acts) };
    let acts = [Create, Check(provisioned), Check(deleted)];
    let delete = Script { bare: true, change: Some(ask), ..Script::of(&acts) };
    for story in [keep, delete] {
        let report = run(&story, 1, &[]);
        assert!(report.violation.is_none(), "{}", report.transcript());
    }
}
