//! Access lists of tiers.

use serde_json::{Value, json};

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::network::{Acl, AclRule};
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

    /// Whether a caller is shown a list.
    pub(super) fn shows_acl(&self, call: &Call, acl: Key<Acl>) -> Result<bool> {
        let scope = self.scope(call)?;
        Ok(self.acls[acl].vpc.is_none_or(|vpc| self.shows(call, scope, self.vpcs[vpc].account)))
    }

    /// Refuses changes of a list that is not the caller's.
    pub(super) fn allow_acl(&self, call: &Call, acl: Key<Acl>, refusal: &str) -> Result<()> {
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
