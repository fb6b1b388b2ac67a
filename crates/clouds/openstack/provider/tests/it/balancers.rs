//! Load balancers of API servers: what follows the manifest, and providers that can less than amphorae.

use capstan_controller::{KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::load_balancer::{HealthMonitor, LoadBalancer, MonitorFilter, PartFilter, Pool};
use capstan_openstack_types::v1beta2::OpenStackCluster;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{NAME, NAMESPACE};
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("load balancer", what)) }
}

async fn monitors(cloud: &Cloud) -> Result<Vec<HealthMonitor>, Violation> {
    cloud.client().list::<HealthMonitor>(&MonitorFilter::default()).await.map_err(failed)
}

#[test]
fn edits_of_the_monitor_are_applied() {
    fn slower<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let settings =
                json!({"monitor": {"delay": 30, "timeout": 20, "maxRetries": 2, "maxRetriesDown": 2}});
            let change = json!({"spec": {"apiServer": {"managedLoadBalancer": settings}}});
            let (kind, key) = (KindName::of::<OpenStackCluster>(), Key::new(NAMESPACE, NAME));
            world.user()?.patch(&kind, &key, None, &Patch::Merge(change)).await.map_err(failed)?;
            world.run_until_idle().await?;
            let all = monitors(cloud).await?;
            let set = |it: &HealthMonitor| {
                (it.delay, it.timeout, it.max_retries, it.max_retries_down) == (30, 20, 2, 2)
            };
            check(all.len() == 1 && all.iter().all(set), format!("{all:?}"))
        })
    }
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(slower), Delete]) });
}

fn with_settings(body: &mut Value, settings: &Value) {
    if body["kind"] == "OpenStackCluster" {
        let held = body["spec"]["apiServer"]["managedLoadBalancer"].as_object_mut().expect("settings");
        held.extend(settings.as_object().cloned().unwrap_or_default());
    }
}

/// The parts of a load balancer of OVN: it has what it can, and no monitor.
fn of_ovn<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let client = cloud.client();
        let balancers = client.list::<LoadBalancer>(&Default::default()).await.map_err(failed)?;
        check(balancers.len() == 1 && balancers[0].provider == "ovn", format!("{balancers:?}"))?;
        let pools = client.list::<Pool>(&PartFilter::default()).await.map_err(failed)?;
        let right = |it: &Pool| it.lb_algorithm == "SOURCE_IP_PORT" && it.members.len() == 1;
        check(pools.len() == 1 && pools.iter().all(right), format!("{pools:?}"))?;
        let all = monitors(cloud).await?;
        check(all.is_empty(), format!("{all:?}"))
    })
}

#[test]
fn with_ovn_the_load_balancer_has_what_ovn_can() {
    fn change(body: &mut Value) {
        with_settings(body, &json!({"provider": "ovn", "allowedCIDRs": ["192.0.2.0/24"]}));
    }
    goes_well(&Script { change: Some(change), ..Script::of(&[Create, Check(of_ovn), Delete]) });
}

#[test]
fn a_monitor_that_ovn_refuses_keeps_nothing_from_being_made() {
    fn change(body: &mut Value) {
        with_settings(body, &json!({"provider": "ovn", "monitor": {"delay": 10}}));
    }
    goes_well(&Script { change: Some(change), ..Script::of(&[Create, Check(of_ovn), Delete]) });
}
