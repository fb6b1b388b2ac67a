//! What accounts may have.

use super::{domain_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::{Cloud, Scope};
use crate::error::{ApiError, Result};
use crate::model::identity::Resource;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listResourceLimits",
        "resourcetype:number account domainid:domain projectid:project listall:flag",
        list,
    ),
    domain_admin(sync(
        "updateResourceLimit",
        "resourcetype:number! max:number account domainid:domain projectid:project",
        update,
    )),
    domain_admin(sync(
        "updateResourceCount",
        "resourcetype:number account domainid:domain! projectid:project",
        recount,
    )),
];

fn resource(number: i64) -> Result<Resource> {
    Resource::ALL
        .into_iter()
        .find(|resource| i64::try_from(resource.number()) == Ok(number))
        .ok_or_else(|| ApiError::invalid("Please specify valid resource type"))
}

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    // With a project's id, the server lists the caller's own limits.
    let account = match cloud.scope(call)? {
        Scope::Account(account) if cloud.accounts[account].project.is_none() => account,
        _ => call.caller.account,
    };
    let mut resources = match call.number("resourcetype") {
        Some(number) => vec![resource(number)?],
        None => Resource::ALL.to_vec(),
    };
    // Those that somebody set stand first, in the order in which they were set.
    let set: Vec<_> = cloud.accounts[account].limits.explicit().collect();
    resources.sort_by_key(|resource| {
        (set.iter().position(|held| held == resource).unwrap_or(usize::MAX), resource.number())
    });
    let shown = resources.into_iter().map(|resource| cloud.show_limit(account, resource)).collect();
    Ok(Answer::List("resourcelimit", shown))
}

fn update(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let resource = resource(call.number("resourcetype").unwrap_or(-1))?;
    let max = call.number("max").unwrap_or(-1);
    let domain = call.key(&cloud.domains, "domainid").unwrap_or(cloud.accounts[call.caller.account].domain);
    if call.text("account").is_none() && call.text("projectid").is_none() {
        if !cloud.is_within(domain, cloud.accounts[call.caller.account].domain) {
            return Err(ApiError::not_yours());
        }
        cloud.domains[domain].limits.set(resource, max);
        return Ok(Answer::Object("resourcelimit", cloud.show_domain_limit(domain, resource)));
    }
    if let Some(name) = call.text("account")
        && cloud.account_named(name, domain).is_none()
    {
        return Err(ApiError::invalid(format!(
            "Unable to find account by name {name} in domain with specified id"
        )));
    }
    let account = cloud.owner(call)?;
    cloud.accounts[account].limits.set(resource, max);
    Ok(Answer::Object("resourcelimit", cloud.show_limit(account, resource)))
}

fn recount(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let account = cloud.owner(call)?;
    let resources = match call.number("resourcetype") {
        Some(number) => vec![resource(number)?],
        None => Resource::ALL.to_vec(),
    };
    let shown = resources.into_iter().map(|resource| cloud.show_count(account, resource)).collect();
    Ok(Answer::List("resourcecount", shown))
}
