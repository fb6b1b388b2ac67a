//! Tags.

use std::time::Duration;

use serde_json::{Value, json};

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::compute::Tag;
use crate::model::identity::Account;
use crate::model::table::{Key, Table};
use crate::render::Fields;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listTags",
        "key value resourceid resourcetype customer account domainid:domain projectid:project listall:flag",
        list,
    ),
    job("createTags", "resourceids:long! resourcetype! tags:map!", "user.tag.CreateTagsCmd", create),
    job("deleteTags", "resourceids:long! resourcetype! tags:map", "user.tag.DeleteTagsCmd", delete),
];

/// How long the jobs take. A real server is done with them before it can answer the next call, a few hundredths of a
/// second later, and clients that ask without waiting for the job rely on it.
const TAGGING: Duration = Duration::ZERO;

/// What can carry tags, as the API writes it.
const TAGGABLE: [&str; 14] = [
    "UserVm",
    "Network",
    "PublicIpAddress",
    "Volume",
    "Template",
    "LoadBalancer",
    "Account",
    "Vpc",
    "Project",
    "FirewallRule",
    "PortForwardingRule",
    "AffinityGroup",
    "User",
    "Domain",
];

/// What the API knows but does not let be tagged.
const UNTAGGABLE: [&str; 4] = ["Zone", "Host", "ServiceOffering", "Storage"];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    let mut rows: Vec<&Tag> = cloud
        .tags
        .iter()
        .filter(|tag| {
            cloud.shows(call, scope, tag.account)
                && call.names("key", &tag.key)
                && call.names("value", &tag.value)
                && call.text("resourceid").is_none_or(|id| tag.resource == id)
                && call.names("resourcetype", tag.resource_type)
        })
        .collect();
    rows.sort_by_key(|tag| std::cmp::Reverse(tag.resource_type));
    let shown = rows.into_iter().map(|tag| show(cloud, tag)).collect();
    Ok(Answer::List("tag", shown))
}

fn show(cloud: &Cloud, tag: &Tag) -> Value {
    let mut fields = Fields::of(json!({
        "key": tag.key,
        "value": tag.value,
        "resourcetype": tag.resource_type,
        "resourceid": tag.resource,
    }));
    fields.owner(cloud, tag.account);
    fields.done()
}

/// Pairs of a call; a value may be missing.
fn pairs(call: &Call) -> Vec<(String, Option<String>)> {
    call.params
        .maps("tags")
        .into_iter()
        .filter_map(|entry| {
            let of = |name: &str| {
                entry.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
            };
            Some((of("key")?, of("value")))
        })
        .collect()
}

fn known_type(name: &str) -> Result<&'static str> {
    if let Some(known) = TAGGABLE.into_iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(known);
    }
    if UNTAGGABLE.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Err(ApiError::invalid(format!("The resource type {name} doesn't support resource tags")));
    }
    Err(ApiError::invalid(format!("Invalid resource type {name}")))
}

/// Resources of a call: UUIDs as sent.
fn resources(call: &Call) -> Vec<String> {
    let list = call.text("resourceids").unwrap_or_default();
    list.split(',').map(str::to_owned).filter(|id| !id.is_empty()).collect()
}

impl Cloud {
    /// UUID and owner of something that can carry tags.
    fn taggable(&self, kind: &str, id: &str) -> Option<(String, Key<Account>)> {
        fn row<T>(
            table: &Table<T>,
            id: &str,
            owner: impl Fn(&T) -> Option<Key<Account>>,
        ) -> Option<(String, Key<Account>)> {
            let row = &table[table.find(id)?];
            (!row.removed).then(|| owner(row).map(|owner| (row.uuid.clone(), owner))).flatten()
        }
        match kind {
            "UserVm" => row(&self.vms, id, |it| Some(it.account)),
            "Network" => row(&self.networks, id, |it| Some(it.account)),
            "PublicIpAddress" => row(&self.ips, id, |it| it.held.as_ref().map(|held| held.account)),
            "Volume" => row(&self.volumes, id, |it| Some(it.account)),
            "Template" => row(&self.templates, id, |it| Some(it.account)),
            "LoadBalancer" => row(&self.lb_rules, id, |it| Some(it.account)),
            "Account" => {
                let key = self.accounts.find(id)?;
                Some((self.accounts[key].uuid.clone(), key))
            }
            "Vpc" => row(&self.vpcs, id, |it| Some(it.account)),
            "Project" => row(&self.projects, id, |it| Some(it.account)),
            "FirewallRule" => row(&self.firewall_rules, id, |it| Some(it.account)),
            "PortForwardingRule" => row(&self.forwardings, id, |it| Some(it.account)),
            "AffinityGroup" => row(&self.affinity_groups, id, |it| Some(it.account)),
            "User" => row(&self.users, id, |it| Some(it.account)),
            _ => None,
        }
    }
}

fn create(_: &mut Cloud, call: &Call) -> Result<Answer> {
    let (ids, pairs, caller) = (resources(call), pairs(call), call.caller);
    let kind = call.text("resourcetype").unwrap_or_default().to_owned();
    Ok(Answer::Job(Submission::once(TAGGING, move |cloud, _| {
        let kind = known_type(&kind)?;
        let mut fresh = Vec::new();
        for id in &ids {
            let (resource, account) = cloud.taggable(kind, id).ok_or_else(|| {
                ApiError::invalid(format!("Unable to find resource by uuid {id} and type {kind}"))
            })?;
            if !cloud.may_operate(caller, account) {
                return Err(ApiError { code: 530, ..ApiError::not_yours() });
            }
            for (key, value) in &pairs {
                let Some(value) = value.clone().filter(|value| !value.is_empty()) else {
                    return Err(ApiError::invalid(format!(
                        "Value for the key {key} is either null or empty"
                    )));
                };
                let taken = cloud
                    .tags
                    .iter()
                    .chain(&fresh)
                    .any(|tag| tag.resource == resource && tag.key.eq_ignore_ascii_case(key));
                if taken {
                    return Err(ApiError::runtime(format!("tag {key} already on {kind} with id {resource}")));
                }
                fresh.push(Tag {
                    resource_type: kind,
                    resource: resource.clone(),
                    key: key.clone(),
                    // The database keeps no more.
                    value: value.chars().take(255).collect(),
                    account,
                });
            }
        }
        cloud.tags.append(&mut fresh);
        Ok(success())
    })))
}

fn delete(_: &mut Cloud, call: &Call) -> Result<Answer> {
    let (ids, pairs, caller) = (resources(call), pairs(call), call.caller);
    let kind = call.text("resourcetype").unwrap_or_default().to_owned();
    Ok(Answer::Job(Submission::once(TAGGING, move |cloud, _| {
        let kind = known_type(&kind)?;
        let matches = |tag: &Tag| {
            tag.resource_type == kind
                && ids.contains(&tag.resource)
                && (pairs.is_empty()
                    || pairs.iter().any(|(key, value)| {
                        tag.key.eq_ignore_ascii_case(key)
                            && value.as_ref().is_none_or(|value| tag.value == *value)
                    }))
        };
        let found: Vec<_> = cloud.tags.iter().filter(|tag| matches(tag)).map(|tag| tag.account).collect();
        if found.iter().any(|account| !cloud.may_operate(caller, *account)) {
            return Err(ApiError { code: 530, ..ApiError::not_yours() });
        }
        if found.is_empty() {
            return Err(ApiError::runtime("Failed to delete tags"));
        }
        cloud.tags.retain(|tag| !matches(tag));
        Ok(success())
    })))
}
