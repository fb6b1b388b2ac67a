//! What others open or forbid in the networks of a healthy cluster shows within a minute, or within about ten where only
//! the log of an administrator has it, and is left as it is.

use std::time::Duration;

use capstan_cloudstack_client::commands::{
    CreateFirewallRule, DeleteFirewallRule, ListFirewallRules, ListNetworkAclLists, ListNetworkAcls,
    ListNetworks,
};
use capstan_cloudstack_types::v1beta3::CloudStackIsolatedNetwork;
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::failures::says;
use crate::story::Act::{Check, Create, Delete};
use crate::story::CheckResult;
use crate::story::{Script, failed};
use crate::takeover::{command, command_of};
use crate::vpc::{a_tier_with_a_list_is_there, let_out, list};

/// A poll of the event log, and the lists after it.
const NOTICED: Duration = Duration::from_secs(80);
/// The lists of what the event log does not show.
const NOTICED_WITHOUT_EVENT: Duration = Duration::from_secs(760);

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("drift", what)
}

/// What the network's condition says a minute later; nothing if all is as it should be.
async fn reported(world: &mut World<'_>, parts: &[&str]) -> Result<(), Violation> {
    reported_within(world, NOTICED, parts).await
}

/// The same after some time.
async fn reported_within(world: &mut World<'_>, time: Duration, parts: &[&str]) -> Result<(), Violation> {
    world.pass(time).await?;
    let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
    let network = networks.into_iter().next().unwrap_or_default();
    says(&network, &["True", "Provisioned"])?;
    says(&network, parts)?;
    let text = network["status"]["conditions"].to_string();
    match parts.is_empty() && (text.contains("E-CS-") || text.contains("not created here")) {
        true => Err(wrong(format!("it is still reported: {text}"))),
        false => Ok(()),
    }
}

/// The id of the tier's rule about a port.
async fn rule(cloud: &Cloud, port: u16) -> Result<String, Violation> {
    let question = ListNetworkAcls { aclid: Some(list(cloud).await?), ..Default::default() };
    let rules = cloud.client("capstan").list(&question).await.map_err(failed)?;
    let rule = rules.into_iter().find(|rule| rule.startport == Some(port));
    rule.map(|rule| rule.id).ok_or_else(|| wrong(format!("no rule about port {port}")))
}

/// Somebody has the tier use a list.
async fn replaced(cloud: &Cloud, account: &str, name: &str) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let question = ListNetworkAclLists { name: Some(name.to_owned()), ..Default::default() };
    let lists = tenant.list(&question).await.map_err(failed)?;
    let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
    let (Some(list), Some(tier)) = (lists.first(), networks.first()) else { return Err(wrong("no list")) };
    let ids = [("aclid", list.id.as_str()), ("networkid", tier.id.as_str())];
    command_of(cloud, account, &[&[("command", "replaceNetworkACLList")][..], &ids].concat()).await
}

fn names_are_looked_up<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(let_out(cloud, "udp", "53"))
}

fn the_list_is_changed<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        reported(world, &[]).await?;
        let names = rule(cloud, 53).await?;
        command(cloud, &[("command", "deleteNetworkACL"), ("id", &names)]).await?;
        reported(world, &["E-CS-ACL", "access list strict", "blocks udp 53 out"]).await?;
        let_out(cloud, "udp", "53").await?;
        reported(world, &[]).await?;
        let web = rule(cloud, 443).await?;
        let update = [("command", "updateNetworkACLItem"), ("id", web.as_str())];
        command(cloud, &[&update[..], &[("action", "deny")]].concat()).await?;
        reported(world, &["E-CS-ACL", "blocks tcp 443 out"]).await?;
        command(cloud, &[&update[..], &[("action", "allow")]].concat()).await?;
        reported(world, &[]).await?;
        replaced(cloud, "capstan", "default_deny").await?;
        reported(world, &["E-CS-ACL", "access list default_deny", "blocks tcp 443 out, udp 53 out"]).await?;
        replaced(cloud, "capstan", "strict").await?;
        reported(world, &[]).await
    })
}

/// An administrator denies what a list allowed, and has the tier use another list.
fn the_list_is_an_administrators_matter<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        reported(world, &[]).await?;
        let names = rule(cloud, 53).await?;
        let late = NOTICED_WITHOUT_EVENT;
        command_of(cloud, "admin", &[("command", "deleteNetworkACL"), ("id", &names)]).await?;
        reported_within(world, late, &["E-CS-ACL", "access list strict", "blocks udp 53 out"]).await?;
        replaced(cloud, "admin", "default_allow").await?;
        reported_within(world, late, &[]).await?;
        replaced(cloud, "admin", "default_deny").await?;
        reported_within(world, late, &["E-CS-ACL", "access list default_deny", "blocks tcp 443 out"]).await
    })
}

#[test]
fn an_access_list_that_an_administrator_changes_is_reported_within_about_ten_minutes() {
    let acts = [
        Check(a_tier_with_a_list_is_there),
        Check(names_are_looked_up),
        Create,
        Check(the_list_is_an_administrators_matter),
    ];
    let story = Script { bare: true, ..Script::of(&acts) };
    let report = run(&story.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Calls of an hour in which nothing happens.
fn an_idle_hour_is_cheap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        // Until everything was listed once since the cluster was set up.
        world.pass(NOTICED_WITHOUT_EVENT).await?;
        let before = cloud.calls();
        world.pass(Duration::from_secs(3600)).await?;
        let after = cloud.calls();
        let spent: u64 = after.values().sum::<u64>() - before.values().sum::<u64>();
        match spent {
            0..=120 => Ok(()),
            more => Err(wrong(format!("{more} calls in an hour of nothing: {before:?} and then {after:?}"))),
        }
    })
}

#[test]
fn lists_of_what_the_event_log_does_not_show_keep_an_idle_hour_within_two_calls_a_minute() {
    let restricted =
        Script { change: Some(restricted), ..Script::of(&[Create, Check(an_idle_hour_is_cheap)]) };
    let listed = [
        Check(a_tier_with_a_list_is_there),
        Check(names_are_looked_up),
        Create,
        Check(an_idle_hour_is_cheap),
    ];
    for story in [restricted, Script::of(&listed)] {
        let report = run(&Script { bare: true, ..story }.expunging_soon(), 1, &[]);
        assert!(report.violation.is_none(), "{}", report.transcript());
    }
}

#[test]
fn an_access_list_that_somebody_changes_under_a_healthy_cluster_is_reported_within_a_minute() {
    let acts = [
        Check(a_tier_with_a_list_is_there),
        Check(names_are_looked_up),
        Create,
        Check(the_list_is_changed),
        Delete,
    ];
    let story = Script { bare: true, events_of_others: 30, ..Script::of(&acts) };
    let report = run(&story.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn restricted(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        body["metadata"]["annotations"] = json!({"capstan.dev/api-server-cidrs": "0.0.0.0/1,128.0.0.0/1"});
    }
}

fn somebody_opens_it_to_all<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        reported(world, &[]).await?;
        let operator = cloud.client("admin");
        let rules = cloud.client("capstan").list(&ListFirewallRules::default()).await.map_err(failed)?;
        let ours = rules.iter().find(|rule| rule.startport == Some(6443));
        let address = ours.and_then(|rule| rule.ipaddressid.clone()).ok_or_else(|| wrong("no rule"))?;
        let request = CreateFirewallRule {
            ipaddressid: address,
            protocol: "tcp".to_owned(),
            startport: Some(6443),
            endport: Some(6443),
            cidrlist: vec!["0.0.0.0/0".to_owned()],
            icmptype: None,
            icmpcode: None,
        };
        for (client, noticed) in [(cloud.client("capstan"), NOTICED), (operator, NOTICED_WITHOUT_EVENT)] {
            let rule = client.run(&request).await.map_err(failed)?.id;
            let parts = ["not created here admit others", rule.as_str(), "0.0.0.0/0"];
            reported_within(world, noticed, &parts).await?;
            client.run(&DeleteFirewallRule { id: rule }).await.map_err(failed)?;
            // That a rule is deleted is in the log of its owner, whoever does it.
            reported(world, &[]).await?;
        }
        Ok(())
    })
}

#[test]
fn a_firewall_rule_that_admits_more_than_the_manifest_is_reported_whoever_made_it_and_left() {
    let acts = [Create, Check(somebody_opens_it_to_all), Delete];
    let story = Script { bare: true, change: Some(restricted), ..Script::of(&acts) };
    let report = run(&story.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
