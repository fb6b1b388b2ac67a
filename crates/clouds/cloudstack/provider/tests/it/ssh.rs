//! Ports of a public address that lead to SSH of machines, beside firewall rules of the operator.

use std::time::Duration;

use capstan_cloudstack_client::commands::{
    CreateFirewallRule, ListFirewallRules, ListPortForwardingRules, ListPublicIpAddresses,
};
use capstan_cloudstack_client::model::{FirewallRule, PortForwardingRule};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachine};
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::NAME;
use crate::sites;
use crate::story::Act::{Check, Create, Delete};
use crate::story::CheckResult;
use crate::story::{Script, failed, patch};

/// Whom the operator lets in by hand.
const OFFICE: &str = "10.9.0.0/16";
const EVERYBODY: &str = "0.0.0.0/0";
/// Everybody, by another name: the simulation itself connects too.
const HALVES: &str = "0.0.0.0/1,128.0.0.0/1";

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("SSH", what)
}

fn with_ssh(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        body["metadata"]["annotations"] = json!({"capstan.dev/ssh-port-forwarding": "true"});
    }
}

/// Firewall rules on ports for SSH: the port, and whom they let in.
async fn openings(cloud: &Cloud) -> Result<Vec<(u16, String)>, Violation> {
    let rules = cloud.client("capstan").list(&ListFirewallRules::default()).await.map_err(failed)?;
    let shown = |rule: &FirewallRule| {
        let port = rule.startport.filter(|port| (2222..2300).contains(port))?;
        Some((port, rule.cidrlist.clone().unwrap_or_default()))
    };
    let mut shown: Vec<_> = rules.iter().filter_map(shown).collect();
    shown.sort();
    Ok(shown)
}

async fn are(cloud: &Cloud, expected: &[(u16, &str)]) -> Result<(), Violation> {
    let ports = cloud.client("capstan").list(&ListPortForwardingRules::default()).await.map_err(failed)?;
    let found = openings(cloud).await?;
    let same = found.iter().map(|(port, who)| (*port, who.as_str())).eq(expected.iter().copied());
    match same && ports.len() == 2 {
        true => Ok(()),
        false => Err(wrong(format!("{found:?} and not {expected:?}; {ports:?}"))),
    }
}

/// Has the manifest name who may come in, and waits until all machines were looked at.
async fn restricted(world: &mut World<'_>, cidrs: Option<&str>) -> Result<(), Violation> {
    let annotations = json!({"capstan.dev/api-server-cidrs": cidrs});
    patch::<CloudStackCluster>(world, NAME, json!({"metadata": {"annotations": annotations}})).await?;
    world.pass(Duration::from_secs(150)).await
}

fn who_may_connect_changes<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        are(cloud, &[(2222, EVERYBODY), (2223, EVERYBODY)]).await?;
        let tenant = cloud.client("capstan");
        let rules = tenant.list(&ListFirewallRules::default()).await.map_err(failed)?;
        let on = rules.iter().find(|rule| rule.startport == Some(2222)).and_then(|it| it.ipaddressid.clone());
        let request = CreateFirewallRule {
            ipaddressid: on.ok_or_else(|| wrong("no rule"))?,
            protocol: "tcp".to_owned(),
            startport: Some(2222),
            endport: Some(2222),
            cidrlist: vec![OFFICE.to_owned()],
            icmptype: None,
            icmpcode: None,
        };
        tenant.run(&request).await.map_err(failed)?;
        restricted(world, Some(HALVES)).await?;
        are(cloud, &[(2222, HALVES), (2222, OFFICE), (2223, HALVES)]).await?;
        let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
        let conditions: Vec<String> =
            machines.iter().map(|it| it["status"]["conditions"].to_string()).collect();
        if !conditions
            .iter()
            .any(|it| it.contains(":2222; firewall rules that were not created here admit others"))
        {
            return Err(wrong(format!("the rule of the operator is not reported: {conditions:?}")));
        }
        restricted(world, None).await?;
        // Where the operator decides who comes in, nobody else is let in without being named.
        are(cloud, &[(2222, OFFICE), (2223, EVERYBODY)]).await
    })
}

/// The operator's rule, and the address that was there before.
fn the_rule_of_the_operator_is_left<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let tenant = cloud.client("capstan");
        let rules = tenant.list(&ListPortForwardingRules::default()).await.map_err(failed)?;
        let addresses = tenant.list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
        let left = openings(cloud).await?;
        match left.as_slice() {
            [(2222, who)] if who == OFFICE && rules.is_empty() && !addresses.is_empty() => Ok(()),
            _ => Err(wrong(format!("left are {left:?} and {rules:?}"))),
        }
    })
}

#[test]
fn ports_for_ssh_admit_whom_the_manifest_names_and_the_operators_rule_on_them_stays() {
    let acts = [Check(sites::a_network_with_an_address), Create, Check(who_may_connect_changes)];
    let story = Script { bare: true, change: Some(with_ssh), delete_at_end: true, ..Script::of(&acts) };
    let story = Script { mishap_at_end: Some(the_rule_of_the_operator_is_left), ..story };
    let report = run(&story.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn with_ssh_on_a_tier(body: &mut Value) {
    sites::in_a_vpc(body);
    with_ssh(body);
}

/// All machines are forwarded, for those who may connect; the forwarding rules say it themselves.
async fn are_forwarded_to(world: &World<'_>, cloud: &Cloud, who: &str) -> Result<(), Violation> {
    let rules = cloud.client("capstan").list(&ListPortForwardingRules::default()).await.map_err(failed)?;
    let admits = |rule: &PortForwardingRule| rule.cidrlist.as_deref().unwrap_or_default() == who;
    let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
    let is_reported = |machine: &Value| {
        let conditions = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "SSHForwarded" && it["status"] == "True")
    };
    match rules.len() == 2 && rules.iter().all(admits) && machines.iter().all(is_reported) {
        true => Ok(()),
        false => {
            let conditions: Vec<_> =
                machines.iter().map(|it| it["status"]["conditions"].to_string()).collect();
            Err(wrong(format!("{rules:?} are not for {who:?}: {conditions:?}")))
        }
    }
}

fn machines_on_a_tier_are_reached<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        are_forwarded_to(world, cloud, "").await?;
        restricted(world, Some(HALVES)).await?;
        are_forwarded_to(world, cloud, HALVES).await?;
        restricted(world, None).await?;
        are_forwarded_to(world, cloud, "").await?;
        match cloud.calls().contains_key("createFirewallRule") {
            true => Err(wrong("a tier has no firewall")),
            false => Ok(()),
        }
    })
}

#[test]
fn machines_on_a_tier_are_forwarded_by_rules_that_admit_whom_the_manifest_names() {
    let acts = [Create, Check(machines_on_a_tier_are_reached), Delete];
    let story = Script { bare: true, change: Some(with_ssh_on_a_tier), ..Script::of(&acts) };
    let report = run(&story.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
