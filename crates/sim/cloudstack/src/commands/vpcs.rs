//! VPCs.

use ipnet::Ipv4Net;
use serde_json::json;

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::identity::Resource;
use crate::model::network::Vpc;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listVPCs",
        "id:vpc name zoneid:zone account domainid:domain projectid:project listall:flag \
         vpcofferingid:vpcoffering",
        list,
    ),
    job(
        "createVPC",
        "name! displaytext zoneid:zone! vpcofferingid:vpcoffering! cidr cidrsize:number account \
         domainid:domain projectid:project asnumber:number publicmtu:number",
        "user.vpc.CreateVPCCmd",
        create,
    ),
    job("updateVPC", "id:vpc! name displaytext", "user.vpc.UpdateVPCCmd", update),
    job("deleteVPC", "id:vpc!", "user.vpc.DeleteVPCCmd", delete),
];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    let tags = cloud.tag_filter(call)?;
    let shown = cloud
        .vpcs
        .iter()
        .rev()
        .filter(|vpc| {
            cloud.shows(call, scope, vpc.account)
                && call.selects(&cloud.vpcs, "id", vpc.key)
                && call.selects(&cloud.zones, "zoneid", vpc.zone)
                && call.selects(&cloud.vpc_offerings, "vpcofferingid", vpc.offering)
                && call.names_partly("name", &vpc.name)
                && call.keyword_in(&[&vpc.name, &vpc.display_text])
                && cloud.is_tagged(&tags, &vpc.uuid)
        })
        .map(|vpc| cloud.show_vpc(vpc.key, call.caller.is_root()))
        .collect();
    Ok(Answer::List("vpc", shown))
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let (zone, offering) =
        (call.the(&cloud.zones, "zoneid")?, call.the(&cloud.vpc_offerings, "vpcofferingid")?);
    let owner = cloud.owner(call)?;
    if !cloud.vpc_offerings[offering].enabled {
        let refused = ApiError::invalid("Unable to find vpc offering in Enabled state by specified id");
        return Err(refused.about(&cloud.vpc_offerings[offering].uuid, "vpcOfferingId"));
    }
    let range = cloud.range_of_routed_vpc(call, zone)?;
    let text = call.filled("cidr").unwrap_or_default();
    let cidr: Ipv4Net = match range {
        Some(range) => range,
        None => text.parse().map_err(|_| ApiError::invalid(format!("Invalid CIDR specified {text}")))?,
    };
    if range.is_none() && !cidr.network().is_private() {
        return Err(ApiError::invalid(format!("Guest Cidr {cidr} is not RFC1918 compliant")));
    }
    cloud.within_limit(owner, Resource::Vpc, 1)?;
    let name = call.text("name").unwrap_or_default().to_owned();
    let display_text = call.filled("displaytext").unwrap_or(&name).to_owned();
    let it = Vpc { name, display_text, account: owner, zone, cidr, offering };
    let uuid = cloud.fresh_uuid();
    let key = cloud.vpcs.insert(uuid.clone(), cloud.now, it);
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.power, move |cloud, _| {
        // The router of a VPC starts with the VPC and takes its source NAT address.
        let (account, zone) = (cloud.vpcs[key].account, cloud.vpcs[key].zone);
        let ip = cloud.take_address(account, zone, None, None, Some(key))?;
        if let Some(held) = &mut cloud.ips[ip].held {
            (held.source_nat, held.state) = (true, "Allocated");
        }
        Ok(json!({"vpc": cloud.show_vpc(key, full)}))
    });
    Ok(Answer::Job(Submission { id: Some(uuid), ..submission.about("None") }))
}

fn update(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.vpcs, "id")?;
    cloud.allow(call.caller, cloud.vpcs[key].account)?;
    let text = |name: &str| call.filled(name).map(str::to_owned);
    let (name, display_text, full) = (text("name"), text("displaytext"), call.caller.is_root());
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let row = &mut cloud.vpcs[key];
        row.name = name.unwrap_or_else(|| row.name.clone());
        row.display_text = display_text.unwrap_or_else(|| row.display_text.clone());
        Ok(json!({"vpc": cloud.show_vpc(key, full)}))
    });
    Ok(Answer::Job(submission.about("Vpc")))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.vpcs, "id")?;
    cloud.allow(call.caller, cloud.vpcs[key].account)?;
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let tiers = cloud.networks.iter().filter(|network| network.vpc == Some(key)).count();
        if tiers > 0 {
            return Err(ApiError::invalid(format!(
                "Can't delete VPC {} as its used by {tiers} networks",
                cloud.vpcs[key].name
            )));
        }
        let ips: Vec<_> = cloud
            .ips
            .iter()
            .filter(|ip| ip.held.as_ref().is_some_and(|held| held.vpc == Some(key)))
            .map(|ip| ip.key)
            .collect();
        for ip in ips {
            cloud.release(ip);
        }
        let uuid = cloud.vpcs[key].uuid.clone();
        cloud.untag(&uuid);
        cloud.remove_acls(key);
        cloud.vpcs.remove(key);
        Ok(success())
    });
    Ok(Answer::Job(submission.about("Vpc")))
}
