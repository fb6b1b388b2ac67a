//! Rules of access lists.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::load_balancers::port;
use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::network::{Acl, AclRule, Ports};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listNetworkACLs",
        "id:aclrule networkid:network traffictype aclid:acl protocol action account domainid:domain \
         projectid:project listall:flag",
        list_rules,
    ),
    job(
        "createNetworkACL",
        "protocol! startport:number endport:number cidrlist:long icmptype:number icmpcode:number \
         networkid:network aclid:acl traffictype number:number action reason",
        "user.network.CreateNetworkACLCmd",
        create_rule,
    ),
    job(
        "updateNetworkACLItem",
        "id:aclrule! protocol startport:number endport:number cidrlist:long icmptype:number icmpcode:number \
         traffictype number:number action reason partialupgrade:flag",
        "user.network.UpdateNetworkACLItemCmd",
        update_rule,
    ),
    job("deleteNetworkACL", "id:aclrule!", "user.network.DeleteNetworkACLCmd", delete_rule),
];

impl Cloud {
    fn show_acl_rule(&self, rule: Key<AclRule>, full: bool) -> Value {
        let row = &self.acl_rules[rule];
        let acl = &self.acls[row.acl];
        let mut shown = json!({
            "id": row.uuid,
            "protocol": row.protocol,
            "traffictype": if row.egress { "Egress" } else { "Ingress" },
            "state": "Active",
            "cidrlist": row.cidrs.join(","),
            "tags": self.short_tags(&row.uuid),
            "aclid": acl.uuid,
            "aclname": acl.name,
            "number": row.number,
            "action": if row.allow { "Allow" } else { "Deny" },
        });
        if let Some(ports) = row.ports {
            shown["startport"] = ports.start.to_string().into();
            shown["endport"] = ports.end.to_string().into();
        }
        if let Some((kind, code)) = row.icmp {
            shown["icmptype"] = kind.into();
            shown["icmpcode"] = code.into();
        }
        if let Some(reason) = &row.reason {
            shown["reason"] = reason.as_str().into();
        }
        if full {
            shown["fordisplay"] = true.into();
        }
        shown
    }
}

fn list_rules(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let network = call.key(&cloud.networks, "networkid");
    let mut rules: Vec<_> = cloud.acl_rules.iter().collect();
    rules.sort_by_key(|rule| (rule.number, rule.key));
    let mut shown = Vec::new();
    for rule in rules {
        let direction = if rule.egress { "Egress" } else { "Ingress" };
        if cloud.shows_acl(call, rule.acl)?
            && call.selects(&cloud.acl_rules, "id", rule.key)
            && call.selects(&cloud.acls, "aclid", rule.acl)
            && call.names("traffictype", direction)
            && call.names("protocol", &rule.protocol)
            && call.names("action", if rule.allow { "Allow" } else { "Deny" })
            && network.is_none_or(|network| cloud.networks[network].acl == Some(rule.acl))
        {
            shown.push(cloud.show_acl_rule(rule.key, call.caller.is_root()));
        }
    }
    Ok(Answer::List("networkacl", shown))
}

fn create_rule(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let network = call.key(&cloud.networks, "networkid");
    let named = network.and_then(|network| cloud.networks[network].acl);
    let Some(acl) = call.key(&cloud.acls, "aclid").or(named) else {
        return Err(ApiError::invalid("Cannot create Network ACL Item. ACL ID or network Id is required"));
    };
    if cloud.acls[acl].vpc.is_none()
        && ["default_deny", "default_allow"].contains(&cloud.acls[acl].name.as_str())
    {
        return Err(ApiError::invalid("Default ACL cannot be modified"));
    }
    cloud.allow_acl(call, acl, "Only Root Admins can create rules for a global ACL.")?;
    let last = cloud.acl_rules.iter().filter(|rule| rule.acl == acl).map(|rule| rule.number).max();
    let number = number(cloud, call, acl, None)?.unwrap_or_else(|| last.unwrap_or(0) + 1);
    let it = described(call, (acl, number), None)?;
    let uuid = cloud.fresh_uuid();
    let key = cloud.acl_rules.insert(uuid.clone(), cloud.now, it);
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"networkacl": cloud.show_acl_rule(key, full)}))
    });
    Ok(Answer::Job(Submission { id: Some(uuid), ..submission }))
}

fn delete_rule(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.acl_rules, "id")?;
    let acl = cloud.acl_rules[key].acl;
    cloud.allow_acl(call, acl, "Only Root Admin can delete global ACL rules.")?;
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        cloud.acl_rules.forget(key);
        Ok(success())
    })))
}

/// The number that a call gives a rule.
fn number(cloud: &Cloud, call: &Call, acl: Key<Acl>, own: Option<Key<AclRule>>) -> Result<Option<i64>> {
    let Some(number) = call.number("number") else { return Ok(None) };
    if number < 1 {
        let text = format!("Invalid number [{number}]. Number cannot be smaller than 1 (one).");
        return Err(ApiError::invalid(text));
    }
    let mut others = cloud.acl_rules.iter().filter(|rule| rule.acl == acl && Some(rule.key) != own);
    if others.any(|rule| rule.number == number) {
        let list = &cloud.acls[acl].uuid;
        let text = format!("ACL item with number {number} already exists in ACL: {list}");
        return Err(ApiError::invalid(text));
    }
    Ok(Some(number))
}

/// The rule that a call describes. What it does not say stays as it was before.
fn described(call: &Call, (acl, number): (Key<Acl>, i64), before: Option<&AclRule>) -> Result<AclRule> {
    let allow = match call.filled("action").map(str::to_lowercase).as_deref() {
        None => before.is_none_or(|rule| rule.allow),
        Some("allow") => true,
        Some("deny") => false,
        Some(_) => {
            let given = call.text("action").unwrap_or_default();
            return Err(ApiError::invalid(format!(
                "Invalid action [{given}]. Permitted actions are Allow and Deny"
            )));
        }
    };
    let egress = call.filled("traffictype").map(|kind| kind.eq_ignore_ascii_case("egress"));
    let protocol = call.filled("protocol").map(|text| text.trim().to_lowercase());
    let protocol = protocol.or_else(|| before.map(|rule| rule.protocol.clone())).unwrap_or_default();
    match protocol.parse::<i64>() {
        Ok(number) if !(0..=255).contains(&number) => {
            return Err(ApiError::invalid(format!("Invalid protocol number: {number}")));
        }
        Err(_) if !["tcp", "udp", "icmp", "all"].contains(&protocol.as_str()) => {
            return Err(ApiError::invalid(format!(
                "Invalid protocol [{protocol}]. Expected one of: [tcp,udp,icmp,all]"
            )));
        }
        _ => {}
    }
    let ports = match call.number("startport") {
        None => before.and_then(|rule| rule.ports),
        Some(start) => {
            Some(Ports { start: port(start)?, end: port(call.number("endport").unwrap_or(start))? })
        }
    };
    if ports.is_some_and(|ports| ports.start > ports.end) {
        return Err(ApiError::invalid("Start port can't be bigger than end port"));
    }
    let icmp = protocol == "icmp";
    if icmp && ports.is_some() {
        return Err(ApiError::invalid("Can't specify start/end port when protocol is ICMP"));
    }
    let given = |name: &str| call.number(name);
    if !icmp && (given("icmptype").is_some() || given("icmpcode").is_some()) {
        return Err(ApiError::invalid("Can specify icmpCode and icmpType for ICMP protocol only"));
    }
    let cidrs: Vec<String> = call
        .filled("cidrlist")
        .map(|list| list.split(',').map(|one| one.trim().to_owned()).collect())
        .or_else(|| before.map(|rule| rule.cidrs.clone()))
        .unwrap_or_else(|| vec!["0.0.0.0/0".to_owned()]);
    if let Some(bad) = cidrs.iter().find(|cidr| cidr.parse::<IpNet>().is_err()) {
        return Err(ApiError::parameter(format!("Source cidrs formatting error {bad}")));
    }
    Ok(AclRule {
        acl,
        number,
        egress: egress.or(before.map(|rule| rule.egress)).unwrap_or(false),
        allow,
        protocol,
        ports,
        icmp: icmp.then(|| (given("icmptype").unwrap_or(-1), given("icmpcode").unwrap_or(-1))),
        cidrs,
        reason: call.filled("reason").map(str::to_owned).or_else(|| before?.reason.clone()),
    })
}

/// Changes a rule. Everything that the call does not name is kept, unless it asks for a rule that is written anew.
fn update_rule(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.acl_rules, "id")?;
    let acl = cloud.acl_rules[key].acl;
    cloud.allow_acl(call, acl, "Only Root Admins can update network ACLs.")?;
    let number = number(cloud, call, acl, Some(key))?.unwrap_or(cloud.acl_rules[key].number);
    let before = call.flag("partialupgrade").unwrap_or(true).then(|| &*cloud.acl_rules[key]);
    let it = described(call, (acl, number), before)?;
    let full = call.caller.is_root();
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        *cloud.acl_rules[key] = it;
        Ok(json!({"networkacl": cloud.show_acl_rule(key, full)}))
    })))
}
