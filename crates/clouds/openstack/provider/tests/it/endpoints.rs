//! Endpoints that the manifest gives.

use std::sync::OnceLock;
use std::time::Duration;

use capstan_harness::{Violation, World, run};
use capstan_openstack_client::network::{
    FloatingIp, FloatingIpChange, FloatingIpFilter, Network, NetworkFilter, NewFloatingIp, Port, PortFilter,
};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::story::Act::{Before, Check, Create, Delete, During};
use crate::story::{CheckResult, Script, failed};

/// The address that the user has.
static HOST: OnceLock<String> = OnceLock::new();

fn host() -> &'static str {
    HOST.get().map_or("", String::as_str)
}

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("endpoint", what)) }
}

async fn addresses(cloud: &Cloud) -> Result<Vec<FloatingIp>, Violation> {
    cloud.client().list::<FloatingIp>(&FloatingIpFilter::default()).await.map_err(failed)
}

/// An address of the user.
async fn reserved(cloud: &Cloud) -> Result<String, Violation> {
    let client = cloud.client();
    let filter = NetworkFilter { is_external: Some(true), ..NetworkFilter::default() };
    let external = client.list::<Network>(&filter).await.map_err(failed)?;
    let new = NewFloatingIp { floating_network_id: external[0].id.clone(), ..NewFloatingIp::default() };
    let made: FloatingIp = client.create(&new).await.map_err(failed)?;
    cloud.simulator.forgive();
    Ok(made.floating_ip_address)
}

/// As with CAPO, the address of the endpoint is the floating IP of the load balancer.
#[test]
fn a_load_balancer_gets_the_floating_ip_that_is_the_endpoint_and_leaves_it_to_the_user() {
    static HOST: OnceLock<String> = OnceLock::new();
    fn host() -> &'static str {
        HOST.get().map_or("", String::as_str)
    }
    fn reserve<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move { HOST.set(reserved(cloud).await?).map_err(failed) })
    }
    fn change(body: &mut Value) {
        if body["kind"] == "OpenStackCluster" {
            body["spec"]["controlPlaneEndpoint"] = json!({"host": host(), "port": 6443});
        }
    }
    fn led<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let all = addresses(cloud).await?;
            let ports = cloud.client().list::<Port>(&PortFilter::default()).await.map_err(failed)?;
            let vip = ports.iter().find(|port| port.device_owner == "Octavia").map(|port| &port.id);
            let right = |it: &FloatingIp| it.floating_ip_address == host() && it.port_id.as_ref() == vip;
            check(all.len() == 1 && vip.is_some() && all.iter().all(right), format!("{all:?} for {vip:?}"))
        })
    }
    fn kept<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let all = addresses(cloud).await?;
            let free = |it: &FloatingIp| it.floating_ip_address == host() && it.port_id.is_none();
            check(all.len() == 1 && all.iter().all(free), format!("{all:?}"))
        })
    }
    let acts = [Before(reserve), Create, Check(led), Delete, Check(kept)];
    let script = Script { bare: true, change: Some(change), ..Script::of(&acts) };
    let report = run(&script, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// The user has an address, and lets it lead to the control plane.
#[test]
fn an_endpoint_of_the_user_is_kept_and_nothing_is_created_for_it() {
    fn reserve<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move { HOST.set(reserved(cloud).await?).map_err(failed) })
    }
    fn change(body: &mut Value) {
        if body["kind"] == "OpenStackCluster" {
            body["spec"]["apiServer"] = json!({"enableFloatingIP": false});
            body["spec"]["controlPlaneEndpoint"] = json!({"host": host(), "port": 6443});
        }
    }
    fn lead<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            for _ in 0..60 {
                world.pass(Duration::from_secs(5)).await?;
                let client = cloud.client();
                let ports = client.list::<Port>(&PortFilter::default()).await.map_err(failed)?;
                let Some(node) = ports.iter().find(|port| port.device_owner.starts_with("compute:")) else {
                    continue;
                };
                let change =
                    FloatingIpChange { port_id: Some(node.id.clone()), ..FloatingIpChange::default() };
                let id = addresses(cloud).await?.remove(0).id;
                return client.update::<FloatingIp>(&id, &change).await.map(drop).map_err(failed);
            }
            Err(failed("there is no server"))
        })
    }
    fn kept<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            check(cloud.names("loadbalancers").is_empty(), "there is a load balancer")?;
            let all = addresses(cloud).await?;
            let theirs = |it: &FloatingIp| it.floating_ip_address == host() && it.port_id.is_some();
            check(all.len() == 1 && all.iter().all(theirs), format!("{all:?}"))
        })
    }
    let acts = [Before(reserve), During(lead), Create, Check(kept), Delete];
    let script = Script { bare: true, members: false, change: Some(change), ..Script::of(&acts) };
    let report = run(&script, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
