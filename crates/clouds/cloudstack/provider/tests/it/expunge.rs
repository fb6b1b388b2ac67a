//! Deletion by an account that may not expunge: CloudStack keeps the network for up to two days.

use std::time::Duration;

use capstan_capi_types::core::Cluster;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackIsolatedNetwork};
use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;

use crate::cloud::Cloud;
use crate::failures::says;
use crate::manifests::{NAME, NAMESPACE};
use crate::story::Act::{Check, Create, Delete};
use crate::story::{CheckResult, Mishap, Script, failed};

const WHEN: [&str; 5] = [
    "E-CS-EXPUNGE: CloudStack expunges the virtual machines of the network between",
    "by its default settings",
    "expunge.delay",
    "an administrator can expunge them at once",
    "allow.user.expunge.recover.vm",
];

fn it_is_deleted_and_says_what_it_waits_for<'a>(
    world: &'a mut World<'_>,
    cloud: &'a Cloud,
) -> CheckResult<'a> {
    Box::pin(async move {
        let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
        world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
        world.run_until_idle().await?;
        let orders = || cloud.calls().get("deleteNetwork").copied().unwrap_or_default();
        for _ in 0..3 {
            world.pass(Duration::from_secs(6 * 3600)).await?;
            let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
            says(&networks.into_iter().next().unwrap_or_default(), &WHEN)?;
            let cluster = world.objects()?.get(&KindName::of::<CloudStackCluster>(), &key);
            says(&cluster.unwrap_or_default(), &WHEN[..1])?;
            if orders() != 0 {
                return Err(Violation::new("L7", "deleteNetwork was sent before the machines were expunged"));
            }
        }
        world.pass(Duration::from_secs(2 * 86_400)).await?;
        world.run_until_idle().await?;
        match (orders(), world.objects()?.get(&kind, &key)) {
            (1, None) => Ok(()),
            (orders, left) => Err(failed(format!("{orders} orders of deleteNetwork; left is {left:?}"))),
        }
    })
}

/// Every word of the documentation of the role, commands among them.
fn documented() -> impl Iterator<Item = &'static str> {
    let text = include_str!("../../../../../../docs/cloudstack.md");
    text.split(|character: char| !character.is_ascii_alphanumeric())
}

fn the_role_is_as_documented<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move { cloud.simulator.set_role("capstan", documented()).map_err(failed) })
}

fn the_role_has_no_expunge<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let role = documented().filter(|command| *command != "expungeVirtualMachine");
        cloud.simulator.set_role("capstan", role).map_err(failed)
    })
}

/// A cluster comes and goes where `allow.user.expunge.recover.vm` is set, under a role.
fn goes_well_under(role: Mishap, failed_jobs: u64) {
    let acts = [Check(role), Create, Delete];
    let story = Script { bare: true, failed_jobs: Some(failed_jobs), ..Script::of(&acts) };
    let mut story = story.expunging_soon();
    story.settings.allow_user_expunge_recover_vm = true;
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn the_documented_role_may_expunge_where_the_setting_allows_it() {
    goes_well_under(the_role_is_as_documented, 0);
}

#[test]
fn a_role_that_may_not_expunge_destroys_its_machines_in_spite_of_the_setting() {
    goes_well_under(the_role_has_no_expunge, 1);
}

#[test]
fn a_network_that_waits_for_an_expunge_says_when_and_is_deleted_with_one_order() {
    let acts = [Create, Check(it_is_deleted_and_says_what_it_waits_for)];
    let report = run(&Script { bare: true, ..Script::of(&acts) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
