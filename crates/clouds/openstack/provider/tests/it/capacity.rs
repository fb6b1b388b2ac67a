//! What `capstan plan` asks of a cloud.

use std::sync::Arc;

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_provider::{Clouds, OpenStack, code};
use capstan_openstack_types::v1beta2::OpenStackMachine;
use capstan_provider_kit::{Amount, CapacityQuestion, PlannedMachine, Provider as _, Size};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{NAME, NAMESPACE};
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("capacity", what)) }
}

fn planned(name: &str, infrastructure: Value, new: bool) -> PlannedMachine {
    PlannedMachine {
        key: Key::new(NAMESPACE, name),
        cluster: NAME.to_owned(),
        of: format!("MachineDeployment/{name}"),
        version: "v1.36.0".to_owned(),
        failure_domain: String::new(),
        new,
        infrastructure: Arc::new(infrastructure),
    }
}

#[test]
fn machines_are_judged_and_sized_and_quotas_reported_without_anything_being_created() {
    fn ask<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let objects = world.objects()?;
            let mut all = Vec::new();
            for kind in [
                KindName::of::<capstan_capi_types::core::Cluster>(),
                KindName::of::<capstan_openstack_types::v1beta2::OpenStackCluster>(),
            ] {
                all.extend(objects.list(&kind));
            }
            let present = objects.list(&KindName::of::<OpenStackMachine>());
            let mut good = present[0].clone();
            good["spec"]["ports"] = json!([{}, {}]);
            let mut older = good.clone();
            older["spec"]["image"]["filter"]["name"] = "ubuntu-2404-kube-v1.35.0".into();
            let mut imageless = good.clone();
            imageless["spec"]["image"]["filter"]["name"] = "nothing".into();
            let mut small = good.clone();
            small["spec"]["flavor"]["filter"]["name"] = "m1.tiny".into();
            let mut machines = vec![planned("there", present[0].clone(), false)];
            let new = [("good", good), ("older", older), ("imageless", imageless), ("small", small)];
            machines.extend(new.map(|(name, spec)| planned(name, spec, true)));
            machines[1].failure_domain = "moon".to_owned();

            let before = cloud.simulator.leaks(None).len();
            let client = world.user()?;
            let question =
                CapacityQuestion { client: &client, manifest: &[], objects: &all, machines: &machines };
            let provider = OpenStack::reaching(Clouds::new(Arc::new(cloud.clone())));
            let capacity = provider.capacity().ok_or_else(|| failed("no capacity"))?;
            let answer = capacity.answer(question).await;
            let refused = |of: &str, code: capstan_controller::Code| {
                let prefix = format!("MachineDeployment/{of}: {code}: ");
                answer.refusals.iter().filter(|it| it.why.starts_with(&prefix)).count()
            };
            check(refused("good", code::NOT_FOUND) == 1, format!("the zone: {:?}", answer.refusals))?;
            check(refused("older", code::IMAGE) == 1, format!("{:?}", answer.refusals))?;
            check(refused("imageless", code::NOT_FOUND) == 1, format!("{:?}", answer.refusals))?;
            check(refused("small", code::IMAGE) == 1, format!("{:?}", answer.refusals))?;
            check(answer.refusals.len() == 4 && answer.warnings.is_empty(), format!("{answer:?}"))?;
            let size = |name: &str| answer.sizes.get(&Key::new(NAMESPACE, name)).copied();
            let there = size("there");
            check(there.is_some() && there == size("good"), format!("{:?}", answer.sizes))?;
            check(size("small") == Some(Size { cpus: 1, memory_mib: 512 }), format!("{:?}", answer.sizes))?;
            let [quota] = answer.quotas.as_slice() else { return Err(failed("one project has one quota")) };
            check(quota.machines.len() == machines.len(), format!("{:?}", quota.machines))?;
            let left = quota.left.as_ref().map_err(failed)?;
            check(left.machines == Some(Amount::Limited(8)), format!("two of ten run: {left:?}"))?;
            let other = |what: &str| {
                let found = quota.others.iter().find(|it| it.what == what);
                found.map(|it| (it.besides, it.by_machine.values().sum::<u64>()))
            };
            check(other("ports") == Some((0, 9)), format!("{:?}", other("ports")))?;
            check(other("networks") == Some((0, 0)), "the cluster has its network")?;
            check(other("load balancers").is_none(), "the cluster has its load balancer")?;
            check(cloud.simulator.leaks(None).len() == before, "something was created")
        })
    }
    let report = run(&Script { bare: true, ..Script::of(&[Create, Check(ask), Delete]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
