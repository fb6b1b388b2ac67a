//! Limits of the account: an order beyond them is reported and not sent.

use std::time::Duration;

use capstan_cloudstack_client::Class;
use capstan_cloudstack_client::commands::{
    AssociateIpAddress, DisassociateIpAddress, ListAccounts, ListPublicIpAddresses, ListZones,
    UpdateResourceLimit,
};
use capstan_cloudstack_types::v1beta3::CloudStackIsolatedNetwork;
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};

use crate::cloud::Cloud;
use crate::failures::says;
use crate::story::Act::{Check, Create, Delete, During};
use crate::story::CheckResult;
use crate::story::{Script, failed};

const PUBLIC_ADDRESSES: u32 = 1;

/// An administrator sets a limit of the tenant.
async fn limit(cloud: &Cloud, resourcetype: u32, max: i64) -> Result<(), Violation> {
    let found = cloud.client("capstan").list(&ListAccounts::default()).await.map_err(failed)?;
    let domainid =
        found.into_iter().find_map(|account| account.domainid).ok_or_else(|| failed("no account"))?;
    let request = UpdateResourceLimit { resourcetype, max, account: "capstan".to_owned(), domainid };
    cloud.client("admin").call(&request).await.map(drop).map_err(failed)
}

fn no_address_is_left<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(limit(cloud, PUBLIC_ADDRESSES, 0))
}

fn it_is_reported_and_nothing_is_ordered<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        world.pass(Duration::from_secs(60)).await?;
        let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
        let reported = networks.first().ok_or_else(|| failed("no network object"))?;
        says(
            reported,
            &["False", "E-CS-QUOTA", "public addresses needed: 1", "leaves 0", "raise the limit"],
        )?;
        if let Some(sent) = cloud.calls().get("createNetwork") {
            return Err(failed(format!("{sent} orders were sent")));
        }
        limit(cloud, PUBLIC_ADDRESSES, 20).await
    })
}

#[test]
fn a_network_without_an_address_to_come_is_not_ordered_until_the_limit_is_raised() {
    let acts = [Check(no_address_is_left), During(it_is_reported_and_nothing_is_ordered), Create, Delete];
    let story = Script { bare: true, ..Script::of(&acts) }.expunging_soon();
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Somebody else takes every address of the zone but those that are in use.
fn others_have_all_addresses<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let operator = cloud.client("admin");
        let zones = operator.list(&ListZones::default()).await.map_err(failed)?;
        let zone = zones.into_iter().find(|zone| zone.name == "zone-1").ok_or_else(|| failed("no zone"))?;
        loop {
            let request = AssociateIpAddress { zoneid: Some(zone.id.clone()), ..Default::default() };
            match operator.run(&request).await {
                Ok(_) => {}
                Err(error) if error.class() == Class::Capacity => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
        }
    })
}

/// CloudStack refuses one order. From then on nothing is ordered until somebody gives an address back.
fn one_order_is_refused_and_no_other_is_sent<'a>(
    world: &'a mut World<'_>,
    cloud: &'a Cloud,
) -> CheckResult<'a> {
    Box::pin(async move {
        world.pass(Duration::from_secs(600)).await?;
        let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
        let reported = networks.first().ok_or_else(|| failed("no network object"))?;
        says(reported, &["False", "E-CS-CAPACITY", "no public address of the zone is free"])?;
        let sent = cloud.calls().get("associateIpAddress").copied().unwrap_or_default();
        if sent > 2 {
            return Err(failed(format!("{sent} orders were sent")));
        }
        let operator = cloud.client("admin");
        let held = operator.list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
        let spare: Vec<_> = held.into_iter().filter(|address| !address.issourcenat).take(2).collect();
        for address in spare {
            operator.run(&DisassociateIpAddress { id: address.id }).await.map_err(failed)?;
        }
        Ok(())
    })
}

#[test]
fn a_zone_without_a_free_address_is_reported_and_not_asked_again_and_again() {
    let acts =
        [Check(others_have_all_addresses), During(one_order_is_refused_and_no_other_is_sent), Create, Delete];
    // Each of their addresses is two orders.
    let story = Script { bare: true, events_of_others: 400, ..Script::of(&acts) }.expunging_soon();
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
