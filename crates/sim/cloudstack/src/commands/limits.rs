//! What accounts may have.

use super::{domain_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::model::identity::{Account, Domain, Resource};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listResourceLimits",
        "resourcetype:number resourcetypename account domainid:domain projectid:project listall:flag \
         id:number",
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

/// Whose limits a call is about.
enum Owner {
    Account(Key<Account>),
    Domain(Key<Domain>),
}

impl Owner {
    /// Users are shown their own limits, whatever they ask for.
    fn of(cloud: &Cloud, call: &Call) -> Result<Self> {
        let named = match (call.text("account"), call.key(&cloud.domains, "domainid")) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(ApiError::invalid("Account must be specified with domainId parameter"));
            }
            (Some(name), Some(domain)) => {
                let found = cloud.account_named(name, domain);
                Some(found.ok_or_else(|| {
                    ApiError::invalid(format!(
                        "Unable to find account by name {name} in domain with specified id"
                    ))
                })?)
            }
        };
        if !call.caller.is_admin() {
            return Ok(Self::Account(call.caller.account));
        }
        let named =
            named.or_else(|| call.key(&cloud.projects, "projectid").map(|key| cloud.projects[key].account));
        let domain = call.key(&cloud.domains, "domainid");
        if let Some(domain) = domain
            && !cloud.is_within(domain, cloud.accounts[call.caller.account].domain)
        {
            return Err(ApiError::not_yours());
        }
        if let Some(account) = named {
            cloud.allow(call.caller, account)?;
            return Ok(Self::Account(account));
        }
        Ok(domain.map_or(Self::Account(call.caller.account), Self::Domain))
    }
}

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = Owner::of(cloud, call)?;
    let mut resources = match (call.text("resourcetypename"), call.number("resourcetype")) {
        (Some(name), _) => vec![
            Resource::ALL
                .into_iter()
                .find(|resource| resource.name() == name)
                .ok_or_else(|| ApiError::invalid("Please specify a valid resource type name."))?,
        ],
        (None, Some(number)) => vec![resource(number)?],
        (None, None) => Resource::ALL.to_vec(),
    };
    // Those that somebody set stand first, in the order in which they were set.
    let limits = match owner {
        Owner::Account(account) => &cloud.accounts[account].limits,
        Owner::Domain(domain) => &cloud.domains[domain].limits,
    };
    let set: Vec<_> = limits.explicit().collect();
    resources.sort_by_key(|resource| {
        (set.iter().position(|held| held == resource).unwrap_or(usize::MAX), resource.number())
    });
    let shown = resources.into_iter().map(|resource| match owner {
        Owner::Account(account) => cloud.show_limit(account, resource),
        Owner::Domain(domain) => cloud.show_domain_limit(domain, resource),
    });
    // Paging is checked and not applied.
    let shown: Vec<_> = shown.collect();
    Ok(Answer::Page("resourcelimit", shown.len(), shown))
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
