//! Machine templates: the capacity in their status.

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_types::v1beta2::OpenStackMachineTemplate;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::NAMESPACE;
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

const WORKERS: &str = "stacky-workers";

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("templates", what)) }
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn template(world: &World<'_>, name: &str) -> Result<Value, Violation> {
    let found = world.objects()?.get(&KindName::of::<OpenStackMachineTemplate>(), &Key::new(NAMESPACE, name));
    found.ok_or_else(|| failed(format!("no template {name}")))
}

#[test]
fn templates_report_the_capacity_of_their_flavor() {
    fn change(body: &mut Value) {
        if body["metadata"]["name"] == "stacky-control-plane" {
            body["spec"]["template"]["spec"]["rootVolume"] = json!({"sizeGiB": 25});
        }
    }
    fn capacity<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let workers = template(world, WORKERS)?["status"].clone();
            let expected = json!({"cpu": "4", "memory": "8Gi", "storage": "80Gi"});
            check(workers["capacity"] == expected, format!("{workers}"))?;
            let control_plane = template(world, "stacky-control-plane")?["status"].clone();
            let expected = json!({"cpu": "2", "memory": "4Gi", "storage": "25Gi"});
            check(control_plane["capacity"] == expected, format!("{control_plane}"))?;
            let conditions = workers["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
            check(ready, format!("{workers}"))
        })
    }
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&[Create, Check(capacity), Delete]) });
}
