//! Floating IPs of pools: claimed by machines, led to their servers, given back and removed.

use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use capstan_controller::{Deletion, KindName, Patch};
use capstan_harness::{Fault, Violation, World, run};
use capstan_object::{Key, Object as _};
use capstan_openstack_client::network::{
    FloatingIp, FloatingIpFilter, Network, NetworkFilter, NewFloatingIp,
};
use capstan_openstack_types::v1alpha1::{OpenStackFloatingIPPool, OpenStackServer};
use capstan_openstack_types::v1beta2::OpenStackMachine;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{NAME, NAMESPACE};
use crate::story::Act::{Apply, Before, Check, Create, Delete, ScaleWorkers};
use crate::story::{CheckResult, Script, failed};

const POOL: &str = "workers";
const TAG: &str = "cluster-api-provider-openstack-fip-pool-workers";

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("pools", what)) }
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Workers claim an address, and small ones are enough.
fn claiming(body: &mut Value) {
    if body["kind"] == "OpenStackMachineTemplate" && body["metadata"]["name"] == "stacky-workers" {
        let spec = &mut body["spec"]["template"]["spec"];
        spec["flavor"]["filter"]["name"] = "m1.medium".into();
        spec["floatingIPPoolRef"] = json!({"apiGroup": OpenStackFloatingIPPool::KIND.group,
            "kind": "OpenStackFloatingIPPool", "name": POOL});
    }
}

async fn create_pool(world: &World<'_>, spec: Value) -> Result<(), Violation> {
    let mut body = json!({
        "apiVersion": OpenStackFloatingIPPool::KIND.api_version(), "kind": "OpenStackFloatingIPPool",
        "metadata": {"name": POOL, "namespace": NAMESPACE}, "spec": spec,
    });
    body["spec"]["identityRef"] = json!({"name": "openstack-credentials", "cloudName": "capstan"});
    let kind = KindName::of::<OpenStackFloatingIPPool>();
    world.user()?.create(&kind, NAMESPACE, &body).await.map(drop).map_err(failed)
}

async fn delete_pool(world: &mut World<'_>) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<OpenStackFloatingIPPool>(), Key::new(NAMESPACE, POOL));
    world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
    world.run_until_idle().await?;
    check(world.objects()?.get(&kind, &key).is_none(), "the pool is still there")
}

fn pool(world: &World<'_>) -> Result<Value, Violation> {
    let key = Key::new(NAMESPACE, POOL);
    let found = world.objects()?.get(&KindName::of::<OpenStackFloatingIPPool>(), &key);
    found.ok_or_else(|| failed("no pool"))
}

/// Length of a list in the status of the pool.
fn count(pool: &Value, field: &str) -> usize {
    pool["status"][field].as_array().map_or(0, Vec::len)
}

async fn tagged(cloud: &Cloud) -> Result<Vec<FloatingIp>, Violation> {
    let all = cloud.client().list::<FloatingIp>(&FloatingIpFilter::default()).await.map_err(failed)?;
    Ok(all.into_iter().filter(|it| it.tags.iter().any(|tag| tag == TAG)).collect())
}

/// Claims and addresses that there are.
fn given(world: &World<'_>) -> Result<(usize, usize), Violation> {
    let objects = world.objects()?;
    let claims = objects.list(&KindName::of::<IPAddressClaim>()).len();
    Ok((claims, objects.list(&KindName::of::<IPAddress>()).len()))
}

fn deleting<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move { create_pool(world, json!({"reclaimPolicy": "Delete"})).await })
}

fn one_each<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let all = tagged(cloud).await?;
        check(all.len() == 1 && all[0].port_id.is_some(), format!("{all:?}"))?;
        let pool = pool(world)?;
        check(pool["status"]["claimedIPs"] == json!([all[0].floating_ip_address]), format!("{pool}"))?;
        check((count(&pool, "availableIPs"), given(world)?) == (0, (1, 1)), format!("{pool}"))?;
        let servers = world.objects()?.list(&KindName::of::<OpenStackServer>());
        let worker = servers.iter().find(|it| it["spec"]["floatingIPPoolRef"].is_object());
        let worker = worker.ok_or_else(|| failed("no worker claims an address"))?;
        let conditions = worker["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let leads = |it: &Value| it["type"] == "FloatingAddressFromPoolReady" && it["status"] == "True";
        check(conditions.iter().any(leads), format!("{worker}"))?;
        let machines = world.objects()?.list(&KindName::of::<OpenStackMachine>());
        let external = json!({"type": "ExternalIP", "address": all[0].floating_ip_address});
        let shows =
            |it: &Value| it["status"]["addresses"].as_array().is_some_and(|all| all.contains(&external));
        check(machines.iter().filter(|it| shows(it)).count() == 1, format!("{machines:?}"))
    })
}

fn none<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let all = tagged(cloud).await?;
        check(all.is_empty() && given(world)? == (0, 0), format!("{all:?}"))?;
        let pool = pool(world)?;
        check((count(&pool, "claimedIPs"), count(&pool, "availableIPs")) == (0, 0), format!("{pool}"))
    })
}

fn gone<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(delete_pool(world))
}

fn lifecycle() -> Script {
    let acts = [Before(deleting), Create, Check(one_each), ScaleWorkers(0), Check(none), Delete, Check(gone)];
    Script { bare: true, change: Some(claiming), ..Script::of(&acts) }
}

#[test]
fn a_worker_claims_a_floating_ip_and_gives_it_back_when_it_goes() {
    goes_well(&lifecycle());
}

#[test]
fn no_address_is_claimed_twice_or_left_behind_when_the_process_dies_or_an_answer_is_lost() {
    let story = lifecycle();
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let text = reference.trace.text();
    let number = |what: &str| -> usize {
        // The first floating IP is the API server's.
        let line = text.lines().rfind(|line| line.contains(what)).expect("an effect");
        let number = line.split_whitespace().find_map(|word| word.strip_prefix('#')).expect("a number");
        number.parse().expect("a number")
    };
    let (create, delete) = (number(": call create-address"), number(": call delete-address"));
    for fault in [
        Fault::LoseReply(create),
        Fault::CrashAfter(create),
        Fault::CrashAfter(number(": call associate")),
        Fault::LoseReply(delete),
    ] {
        let report = run(&story, 1, &[fault]);
        assert!(report.violation.is_none(), "{fault:?}: {}", report.transcript());
    }
}

#[test]
fn given_addresses_are_used_first_and_a_full_pool_says_who_waits() {
    fn given_one<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let filter = NetworkFilter { is_external: Some(true), ..NetworkFilter::default() };
            let external = cloud.client().list::<Network>(&filter).await.map_err(failed)?;
            let new = NewFloatingIp {
                floating_network_id: external[0].id.clone(),
                description: Some("theirs".to_owned()),
                ..NewFloatingIp::default()
            };
            let address: FloatingIp = cloud.client().create(&new).await.map_err(failed)?;
            cloud.simulator.forgive();
            let spec = json!({"reclaimPolicy": "Retain", "maxIPs": 1,
                "preAllocatedFloatingIPs": [address.floating_ip_address, "203.0.113.254"]});
            create_pool(world, spec).await
        })
    }
    fn full<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            // The machine that waits keeps the cluster from being idle: its join token is renewed.
            world.pass(std::time::Duration::from_secs(240)).await?;
            let full = pool(world)?;
            check(count(&full, "claimedIPs") == 1, format!("{full}"))?;
            check(full["status"]["failedIPs"] == json!(["203.0.113.254"]), format!("{full}"))?;
            let condition = &full["status"]["conditions"].to_string();
            check(condition.contains("MaxIPsReached") && condition.contains("claims that wait"), condition)?;
            check(tagged(cloud).await?.is_empty(), "nothing was created")?;
            let waiting = world.objects()?.list(&KindName::of::<OpenStackMachine>());
            let says = |it: &&Value| it["status"]["conditions"].to_string().contains("spec.maxIPs");
            check(waiting.iter().filter(says).count() == 1, format!("{waiting:?}"))?;
            let (kind, key) = (KindName::of::<OpenStackFloatingIPPool>(), Key::new(NAMESPACE, POOL));
            let more = Patch::Merge(json!({"spec": {"maxIPs": 2}}));
            world.user()?.patch(&kind, &key, None, &more).await.map_err(failed)?;
            world.run_until_idle().await?;
            check(count(&pool(world)?, "claimedIPs") == 2, "raised")?;
            check(tagged(cloud).await?.len() == 1, "one was created")
        })
    }
    fn retained<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(std::time::Duration::from_secs(120)).await?;
            let free = pool(world)?;
            let counts = (count(&free, "claimedIPs"), count(&free, "availableIPs"));
            check(counts == (0, 2), format!("{free}"))?;
            check(given(world)? == (0, 0), "claims stay")?;
            delete_pool(world).await?;
            let left =
                cloud.client().list::<FloatingIp>(&FloatingIpFilter::default()).await.map_err(failed)?;
            let theirs = left.iter().filter(|it| it.description == "theirs" && it.port_id.is_none()).count();
            check(theirs == 1 && tagged(cloud).await?.is_empty(), format!("{left:?}"))
        })
    }
    let acts = [Before(given_one), Apply, Check(two), Check(full), ScaleWorkers(0), Check(retained), Delete];
    fn two<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let kind = KindName::of::<capstan_capi_types::core::MachineDeployment>();
            let key = Key::new(NAMESPACE, format!("{NAME}-workers"));
            let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
            world.user()?.patch(&kind, &key, None, &patch).await.map(drop).map_err(failed)
        })
    }
    goes_well(&Script { bare: true, change: Some(claiming), ..Script::of(&acts) });
}
