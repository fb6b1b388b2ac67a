//! `capstan console`: what a machine printed.

use std::sync::Arc;

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_openstack_provider::{Clouds, OpenStack};
use capstan_openstack_types::v1beta2::OpenStackMachine;
use capstan_provider_kit::Provider as _;

use crate::cloud::Cloud;
use crate::story::Act::{Check, Create};
use crate::story::{CheckResult, Script, failed};

#[test]
fn the_console_of_a_machine_is_read_with_the_credentials_of_its_cluster() {
    fn read<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let provider = OpenStack::reaching(Clouds::new(Arc::new(cloud.clone())));
            let reader = provider.console().ok_or_else(|| failed("no reader"))?;
            let matches = clap::Command::new("console").get_matches_from(["console"]);
            for machine in world.objects()?.list(&KindName::of::<OpenStackMachine>()) {
                let user = world.user()?;
                let text = reader.read(&user, "m", &machine, &matches).await.map_err(failed)?;
                if text.trim().is_empty() {
                    return Err(Violation::new("console", "it is empty"));
                }
                let mut unmade = machine.clone();
                unmade["metadata"]["name"] = "absent".into();
                let refused = reader.read(&user, "m", &unmade, &matches).await;
                let why = refused.err().map(|error| error.to_string()).unwrap_or_default();
                if !why.contains("machine m has printed nothing yet") {
                    return Err(Violation::new("console", why));
                }
            }
            Ok(())
        })
    }
    let report = run(&Script { bare: true, ..Script::of(&[Create, Check(read)]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
