//! Access lists of tiers, and their rules.

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
        "listNetworkACLLists",
        "id:acl name account domainid:domain networkid:network projectid:project vpcid:vpc listall:flag",
        list,
    ),
    job(
        "createNetworkACLList",
        "name! description vpcid:vpc",
        "user.network.CreateNetworkACLListCmd",
        create,
    ),
    job("deleteNetworkACLList", "id:acl!", "user.network.DeleteNetworkACLListCmd", delete),
    job(
        "replaceNetworkACLList",
        "aclid:acl! networkid:network gatewayid:none",
        "user.network.ReplaceNetworkACLListCmd",
        replace,
    ),
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
    job("deleteNetworkACL", "id:aclrule!", "user.network.DeleteNetworkACLCmd", delete_rule),
];

impl Cloud {
    /// The two access lists that every cloud has: nothing passes, everything passes.
    pub(crate) fn default_acls(&mut self) {
        for (name, description, allow) in [
            ("default_deny", "Default Network ACL Deny All", false),
            ("default_allow", "Default Network ACL Allow All", true),
        ] {
            let it = Acl { name: name.to_owned(), description: description.to_owned(), vpc: None };
            let uuid = self.fresh_uuid();
            let acl = self.acls.insert(uuid.clone(), self.now, it);
            for (number, egress) in [(1, false), (2, true)] {
                let rule = AclRule {
                    acl,
                    number,
                    egress,
                    allow,
                    protocol: "all".to_owned(),
                    ports: None,
                    icmp: None,
                    cidrs: vec!["0.0.0.0/0".to_owned()],
                    reason: None,
                };
                // No id of its own, so that those of everything else do not depend on these rules.
                let own = format!("{}{number:04x}", uuid.get(..32).unwrap_or_default());
                self.acl_rules.insert(own, self.now, rule);
            }
        }
    }

    fn show_acl(&self, acl: Key<Acl>, full: bool) -> Value {
        let row = &self.acls[acl];
        let mut shown = json!({"id": row.uuid, "name": row.name, "description": row.description});
        if let Some(vpc) = row.vpc {
            shown["vpcid"] = self.vpcs[vpc].uuid.as_str().into();
            shown["vpcname"] = self.vpcs[vpc].name.as_str().into();
        }
        if full {
            shown["fordisplay"] = true.into();
        }
        shown
    }

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

    /// Whether a caller is shown a list.
    fn shows_acl(&self, call: &Call, acl: Key<Acl>) -> Result<bool> {
        let scope = self.scope(call)?;
        Ok(self.acls[acl].vpc.is_none_or(|vpc| self.shows(call, scope, self.vpcs[vpc].account)))
    }

    /// Refuses changes of a list that is not the caller's.
    fn allow_acl(&self, call: &Call, acl: Key<Acl>, refusal: &str) -> Result<()> {
        match self.acls[acl].vpc {
            Some(vpc) => self.allow(call.caller, self.vpcs[vpc].account),
            None if call.caller.is_root() => Ok(()),
            None => Err(ApiError::denied(refusal)),
        }
    }

    /// Removes the lists of a VPC.
    pub(crate) fn remove_acls(&mut self, vpc: Key<crate::model::network::Vpc>) {
        let lists: Vec<_> = self.acls.iter().filter(|acl| acl.vpc == Some(vpc)).map(|acl| acl.key).collect();
        lists.into_iter().for_each(|acl| self.remove_acl(acl));
    }

    fn remove_acl(&mut self, acl: Key<Acl>) {
        let rules: Vec<_> =
            self.acl_rules.iter().filter(|rule| rule.acl == acl).map(|rule| rule.key).collect();
        for rule in rules {
            self.acl_rules.forget(rule);
        }
        self.acls.forget(acl);
    }
}

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    if let Some(vpc) = call.key(&cloud.vpcs, "vpcid") {
        cloud.allow(call.caller, cloud.vpcs[vpc].account)?;
    }
    let network = call.key(&cloud.networks, "networkid");
    let mut shown = Vec::new();
    for acl in cloud.acls.iter().rev() {
        let of_vpc =
            call.text("vpcid").is_none_or(|vpc| acl.vpc.is_none() || acl.vpc == cloud.vpcs.find(vpc));
        if of_vpc
            && cloud.shows_acl(call, acl.key)?
            && call.selects(&cloud.acls, "id", acl.key)
            && call.names("name", &acl.name)
            && call.keyword_in(&[&acl.name, &acl.description])
            && network.is_none_or(|network| cloud.networks[network].acl == Some(acl.key))
        {
            shown.push(cloud.show_acl(acl.key, call.caller.is_root()));
        }
    }
    Ok(Answer::List("networkacllist", shown))
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vpc = call.key(&cloud.vpcs, "vpcid");
    match vpc {
        Some(vpc) => cloud.allow(call.caller, cloud.vpcs[vpc].account)?,
        None if call.caller.is_root() => {}
        None => return Err(ApiError::denied("Only Root Admin can create global ACLs.")),
    }
    let name = call.text("name").unwrap_or_default().to_owned();
    let description = call.filled("description").unwrap_or_default().to_owned();
    let uuid = cloud.fresh_uuid();
    let key = cloud.acls.insert(uuid.clone(), cloud.now, Acl { name, description, vpc });
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"networkacllist": cloud.show_acl(key, full)}))
    });
    Ok(Answer::Job(Submission { id: Some(uuid), ..submission }))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.acls, "id")?;
    let refused = match cloud.acls[key].name.as_str() {
        "default_deny" | "default_allow" if cloud.acls[key].vpc.is_none() => {
            Some(ApiError::invalid("Default ACL cannot be removed"))
        }
        _ => cloud.allow_acl(call, key, "Only Root Admin can delete global ACLs.").err(),
    };
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if let Some(refused) = refused {
            return Err(refused);
        }
        if cloud.networks.iter().any(|network| network.acl == Some(key)) {
            return Err(ApiError::runtime("ACL is still associated with tiers"));
        }
        cloud.remove_acl(key);
        Ok(success())
    });
    Ok(Answer::Job(submission))
}

fn replace(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let acl = call.the(&cloud.acls, "aclid")?;
    let Some(network) = call.key(&cloud.networks, "networkid") else {
        return Err(ApiError::invalid(
            "Network id and private gateway can't be passed at the same time or both be null",
        ));
    };
    let row = &cloud.networks[network];
    let refused = match (row.vpc, cloud.acls[acl].vpc) {
        (None, _) => Some(ApiError::invalid(format!("Network is not part of a VPC: {}", row.uuid))),
        (Some(vpc), Some(of)) if vpc != of => {
            Some(ApiError::invalid("the Network and the ACL do not belong to the same VPC"))
        }
        _ => cloud.allow(call.caller, row.account).err(),
    };
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| match refused {
        Some(refused) => Err(refused),
        None => {
            cloud.networks[network].acl = Some(acl);
            Ok(success())
        }
    });
    Ok(Answer::Job(submission))
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
    let of_list = || cloud.acl_rules.iter().filter(|rule| rule.acl == acl);
    let number = match call.number("number") {
        Some(number) if number < 1 => {
            return Err(ApiError::invalid(format!(
                "Invalid number [{number}]. Number cannot be smaller than 1 (one)."
            )));
        }
        Some(number) if of_list().any(|rule| rule.number == number) => {
            return Err(ApiError::invalid(format!(
                "ACL item with number {number} already exists in ACL: {}",
                cloud.acls[acl].uuid
            )));
        }
        Some(number) => number,
        None => of_list().map(|rule| rule.number).max().unwrap_or(0) + 1,
    };
    let allow = match call.filled("action").map(str::to_lowercase).as_deref() {
        None | Some("allow") => true,
        Some("deny") => false,
        Some(_) => {
            let given = call.text("action").unwrap_or_default();
            return Err(ApiError::invalid(format!(
                "Invalid action [{given}]. Permitted actions are Allow and Deny"
            )));
        }
    };
    let egress = call.filled("traffictype").is_some_and(|kind| kind.eq_ignore_ascii_case("egress"));
    let protocol = call.text("protocol").unwrap_or_default().trim().to_lowercase();
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
        None => None,
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
        .unwrap_or_else(|| vec!["0.0.0.0/0".to_owned()]);
    if let Some(bad) = cidrs.iter().find(|cidr| cidr.parse::<IpNet>().is_err()) {
        return Err(ApiError::parameter(format!("Source cidrs formatting error {bad}")));
    }
    let it = AclRule {
        acl,
        number,
        egress,
        allow,
        protocol,
        ports,
        icmp: icmp.then(|| (given("icmptype").unwrap_or(-1), given("icmpcode").unwrap_or(-1))),
        cidrs,
        reason: call.filled("reason").map(str::to_owned),
    };
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
