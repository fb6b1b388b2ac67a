//! A cloud that does not answer is no cluster that is down.

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachine};
use capstan_sim_openstack::{Fault, Service, Target};
use serde_json::Value;

use crate::cloud::Cloud;
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

fn status<'a>(object: &'a Value, condition: &str) -> Option<&'a str> {
    let mut all = object["status"]["conditions"].as_array()?.iter();
    all.find(|it| it["type"] == condition)?["status"].as_str()
}

/// Everything is ready, and clusters and servers say whether their cloud answers.
fn is_ready(world: &World<'_>, silent: bool) -> Result<(), Violation> {
    let objects = world.objects()?;
    for kind in [
        KindName::of::<OpenStackCluster>(),
        KindName::of::<OpenStackMachine>(),
        KindName::of::<OpenStackServer>(),
    ] {
        for object in objects.list(&kind) {
            let reachable = status(&object, "CloudReachable");
            let reported = kind.kind == "OpenStackMachine" || reachable == silent.then_some("False");
            if status(&object, "Ready") != Some("True") || !reported {
                let text = format!("{}: {}", object["kind"], object["status"]["conditions"]);
                return Err(Violation::new("as last seen", text));
            }
        }
    }
    Ok(())
}

#[test]
fn clusters_and_machines_stay_ready_while_the_cloud_does_not_answer() {
    fn silence<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            for service in [Service::Network, Service::Compute] {
                let on = Target { service: Some(service), ..Target::default() };
                let down = Fault::Error { on, status: 503, message: String::new() };
                cloud.simulator.inject(down).map_err(failed)?;
            }
            world.pass(std::time::Duration::from_secs(300)).await?;
            is_ready(world, true)?;
            cloud.simulator.heal();
            world.pass(std::time::Duration::from_secs(300)).await?;
            is_ready(world, false)
        })
    }
    let story = Script { bare: true, ..Script::of(&[Create, Check(silence), Delete]) };
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
