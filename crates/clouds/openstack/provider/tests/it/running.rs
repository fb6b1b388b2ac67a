//! What befalls a cluster that runs: quotas, failing load balancers, a network that others use, a new zone.

use std::time::Duration;

use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_controller::{Deletion, KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::load_balancer::{LoadBalancer, Member, NewLoadBalancer, PartFilter, Pool};
use capstan_openstack_client::network::{FloatingIp, FloatingIpFilter, Subnet, SubnetFilter};
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_sim_openstack::Fault;
use serde_json::{Value, json};

use crate::cloud::{Cloud, TENANT};
use crate::manifests::{NAME, NAMESPACE, WORKERS};
use crate::story::Act::{Check, Create, Delete, ScaleWorkers};
use crate::story::{CheckResult, Script, failed};
use crate::wrong::reports;

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("running", what)) }
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn cluster(world: &World<'_>) -> Result<Value, Violation> {
    let key = Key::new(NAMESPACE, NAME);
    let found = world.objects()?.get(&KindName::of::<OpenStackCluster>(), &key);
    found.ok_or_else(|| failed("no OpenStackCluster"))
}

#[test]
fn a_quota_that_is_hit_while_scaling_is_reported_and_asked_for_rarely() {
    /// Four cores each, of the twenty that a project has.
    fn large(body: &mut Value) {
        if body["kind"] == "OpenStackMachineTemplate" {
            body["spec"]["template"]["spec"]["flavor"]["filter"]["name"] = "m1.large".into();
        }
    }
    fn created(cloud: &Cloud) -> u64 {
        let calls = cloud.simulator.calls();
        calls
            .iter()
            .filter(|(name, _)| name.contains("POST") && name.ends_with("/servers"))
            .map(|it| it.1)
            .sum()
    }
    fn too_many<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let (kind, key) = (KindName::of::<MachineDeployment>(), Key::new(NAMESPACE, WORKERS));
            let patch = Patch::Merge(json!({"spec": {"replicas": 6}}));
            world.user()?.patch(&kind, &key, None, &patch).await.map_err(failed)?;
            let before = created(cloud);
            world.pass(Duration::from_secs(600)).await?;
            reports(world, "E-OS-QUOTA")?;
            reports(world, "next try at")?;
            check(cloud.names("servers").len() == 5, format!("{:?}", cloud.names("servers")))?;
            // Three that are made, and two that are refused at 0, 30, 90, 210 and 450 seconds.
            let asked = created(cloud) - before;
            check(asked <= 13, format!("{asked} requests for servers"))
        })
    }
    let acts = [Create, Check(too_many), ScaleWorkers(3), Delete];
    goes_well(&Script { bare: true, change: Some(large), ..Script::of(&acts) });
}

#[test]
fn a_network_that_others_use_is_reported_and_goes_with_its_cluster_once_it_is_free() {
    fn deleted<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let client = cloud.client();
            let filter = SubnetFilter { cidr: Some("10.6.0.0/24".to_owned()), ..SubnetFilter::default() };
            let subnets = client.list::<Subnet>(&filter).await.map_err(failed)?;
            let new = NewLoadBalancer {
                name: "of-somebody".to_owned(),
                vip_subnet_id: subnets.first().map(|subnet| subnet.id.clone()),
                ..NewLoadBalancer::default()
            };
            let theirs: LoadBalancer = client.create(&new).await.map_err(failed)?;
            let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
            world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
            world.pass(Duration::from_secs(600)).await?;
            check(world.objects()?.get(&kind, &key).is_some(), "the cluster is gone, its network is not")?;
            reports(world, "E-OS-BUSY")?;
            check(cloud.names("servers").is_empty(), "servers are left")?;
            client.delete_load_balancer(&theirs.id, true).await.map_err(failed)?;
            world.run_until_idle().await?;
            check(world.objects()?.get(&kind, &key).is_none(), "the cluster is still there")?;
            let leaks = cloud.simulator.leaks(Some(TENANT));
            check(leaks.is_empty(), format!("{leaks:?}"))
        })
    }
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(deleted)]) });
}

/// Somebody removes the member, and Octavia fails at that.
async fn fail(world: &mut World<'_>, cloud: &Cloud) -> Result<LoadBalancer, Violation> {
    let client = cloud.client();
    cloud.simulator.inject(Fault::FailedLoadBalancers { times: 1 }).map_err(failed)?;
    let pools = client.list::<Pool>(&PartFilter::default()).await.map_err(failed)?;
    for pool in &pools {
        let members: Vec<Member> = client.members(&pool.id).await.map_err(failed)?;
        for member in members {
            client.delete_member(&pool.id, &member.id).await.map_err(failed)?;
        }
    }
    world.pass(Duration::from_secs(120)).await?;
    let all = client.list::<LoadBalancer>(&Default::default()).await.map_err(failed)?;
    let found = all.into_iter().find(|it| it.provisioning_status.as_str() == "ERROR");
    found.ok_or_else(|| failed("no load balancer is in ERROR"))
}

#[test]
fn a_load_balancer_that_fails_while_it_is_used_is_reported_and_replaced_when_it_is_deleted() {
    fn replaced<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let broken = fail(world, cloud).await?;
            reports(world, "E-OS-LOADBALANCER")?;
            check(cloud.names("loadbalancers").len() == 1, "it is the operator's to decide")?;
            let endpoint = cluster(world)?["spec"]["controlPlaneEndpoint"].clone();
            cloud.client().delete_load_balancer(&broken.id, true).await.map_err(failed)?;
            world.run_until_idle().await?;
            let client = cloud.client();
            let all = client.list::<LoadBalancer>(&Default::default()).await.map_err(failed)?;
            let [new] = all.as_slice() else { return Err(failed(format!("{all:?}"))) };
            check(new.id != broken.id && new.provisioning_status.as_str() == "ACTIVE", format!("{new:?}"))?;
            check(cloud.names("members").len() == 1, format!("{:?}", cloud.names("members")))?;
            let addresses = client.list::<FloatingIp>(&FloatingIpFilter::default()).await.map_err(failed)?;
            let leads = |it: &FloatingIp| {
                endpoint["host"] == it.floating_ip_address.as_str()
                    && it.port_id.as_ref() == Some(&new.vip_port_id)
            };
            check(addresses.len() == 1 && addresses.iter().all(leads), format!("{addresses:?}"))?;
            check(cluster(world)?["spec"]["controlPlaneEndpoint"] == endpoint, "the endpoint changed")
        })
    }
    fn again<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move { fail(world, cloud).await.map(drop) })
    }
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(replaced), Check(again), Delete]) });
}

#[test]
fn a_zone_that_is_added_becomes_a_failure_domain() {
    fn added<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let names = |world: &World<'_>| -> Result<Vec<String>, Violation> {
                let object = cluster(world)?;
                let all = object["status"]["failureDomains"].as_array().cloned().unwrap_or_default();
                Ok(all.iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect())
            };
            check(names(world)? == ["az1", "az2"], format!("{:?}", names(world)?))?;
            let mut dump = cloud.simulator.dump();
            let hosts =
                dump["tables"]["RegionOne"]["hosts"].as_array_mut().ok_or_else(|| failed("no hosts"))?;
            let mut host = hosts[0].clone();
            (host["id"], host["zone"]) = ("az3-host1".into(), "az3".into());
            hosts.push(host);
            cloud.simulator.restore(dump).map_err(failed)?;
            world.pass(Duration::from_secs(700)).await?;
            check(names(world)? == ["az1", "az2", "az3"], format!("{:?}", names(world)?))
        })
    }
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(added), Delete]) });
}
