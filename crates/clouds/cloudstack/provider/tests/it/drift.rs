//! What others open or forbid in the networks of a healthy cluster shows within a minute, and is left as it is.

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
use crate::takeover::command;
use crate::vpc::{a_tier_with_a_list_is_there, let_out, list};

/// A poll of the event log, and the lists after it.
const NOTICED: Duration = Duration::from_secs(65);

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("drift", what)
}

/// What the network's condition says a minute later; nothing if all is as it should be.
async fn reported(world: &mut World<'_>, parts: &[&str]) -> Result<(), Violation> {
    world.pass(NOTICED).await?;
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

/// Has the tier use a list.
async fn replaced(cloud: &Cloud, name: &str) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let question = ListNetworkAclLists { name: Some(name.to_owned()), ..Default::default() };
    let lists = tenant.list(&question).await.map_err(failed)?;
    let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
    let (Some(list), Some(tier)) = (lists.first(), networks.first()) else { return Err(wrong("no list")) };
    let ids = [("aclid", list.id.as_str()), ("networkid", tier.id.as_str())];
    command(cloud, &[&[("command", "replaceNetworkACLList")][..], &ids].concat()).await
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
        replaced(cloud, "default_deny").await?;
        reported(world, &["E-CS-ACL", "access list default_deny", "blocks tcp 443 out, udp 53 out"]).await?;
        replaced(cloud, "strict").await?;
        reported(world, &[]).await
    })
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
        let rule = operator.run(&request).await.map_err(failed)?.id;
        reported(world, &["not created here admit others", rule.as_str(), "0.0.0.0/0"]).await?;
        operator.run(&DeleteFirewallRule { id: rule }).await.map_err(failed)?;
        reported(world, &[]).await
    })
}

#[test]
fn a_firewall_rule_that_admits_more_than_the_manifest_is_reported_within_a_minute_and_left() {
    let acts = [Create, Check(somebody_opens_it_to_all), Delete];
    let story = Script { bare: true, change: Some(restricted), ..Script::of(&acts) };
    let report = run(&story.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
