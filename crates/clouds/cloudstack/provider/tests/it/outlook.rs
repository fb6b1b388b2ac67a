//! What a cloud would say to orders that nobody makes.

use std::sync::Arc;

use capstan_cloudstack_client::model::Amount;
use capstan_cloudstack_provider::{Clouds, Prospect, code};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachine, CloudStackMachineSpec};
use capstan_controller::KindName;
use capstan_harness::{World, run};
use capstan_object::Key;
use capstan_provider_kit::{Secret, Size};

use crate::cloud::Cloud;
use crate::manifests::{KEYS, NAMESPACE};
use crate::story::Act::Create;
use crate::story::CheckResult;
use crate::story::{Script, failed};

#[test]
fn orders_are_judged_and_sized_and_what_is_left_is_reported_without_any_being_made() {
    fn ask<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let objects = world.objects()?;
            let cluster = objects.list(&KindName::of::<CloudStackCluster>()).pop().unwrap_or_default();
            let cluster: CloudStackCluster = serde_json::from_value(cluster).map_err(failed)?;
            let machines = objects.list(&KindName::of::<CloudStackMachine>());
            let spec: CloudStackMachineSpec =
                serde_json::from_value(machines[0]["spec"].clone()).map_err(failed)?;
            let keys = world.user()?.get::<Secret>(&Key::new(NAMESPACE, KEYS)).await.map_err(failed)?;
            let keys = keys.unwrap_or_default();

            let mut good = Prospect { spec, version: "v1.36.0".to_owned() };
            good.spec.offering.name = "Small Instance".to_owned();
            let older = Prospect { version: "v1.35.0".to_owned(), ..good.clone() };
            let mut imageless = good.clone();
            imageless.spec.template.name = "no-such-image".to_owned();
            let mut unoffered = good.clone();
            unoffered.spec.offering.name = "No Such Instance".to_owned();
            let orders = [good, older, imageless, unoffered];

            let clouds = Clouds::new(Arc::new(cloud.clone()));
            let before = cloud.names("virtualmachine");
            // As a manifest names it: by the zone's name, which nobody has looked up yet.
            let domain = &cluster.spec.failure_domains[0];
            let outlook = clouds.outlook(domain, &keys, &orders).await.map_err(|it| failed(it.message))?;
            let said: Vec<_> =
                outlook.verdicts.iter().map(|it| it.error.as_ref().map(|it| it.code)).collect();
            let expected = [None, Some(code::TEMPLATE), Some(code::NOT_FOUND), Some(code::NOT_FOUND)];
            assert_eq!(said, expected, "{outlook:?}");
            let sizes: Vec<Option<Size>> = outlook.verdicts.iter().map(|it| it.size).collect();
            let small = Some(Size { cpus: 2, memory_mib: 2048 });
            assert_eq!(sizes, [small, small, small, None]);
            let left = outlook.left.map_err(failed)?;
            let most = left.vmlimit.ok_or_else(|| failed("no limit"))?;
            let (Amount::Limited(most), Some(Amount::Limited(available))) = (most, left.vmavailable) else {
                return Err(failed(format!("no limits: {left:?}")));
            };
            assert_eq!(most - available, 2, "two machines run");
            assert_eq!(cloud.names("virtualmachine"), before, "nothing is ordered");
            Ok(())
        })
    }
    let report = run(&Script { mishap_at_end: Some(ask), bare: true, ..Script::of(&[Create]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
