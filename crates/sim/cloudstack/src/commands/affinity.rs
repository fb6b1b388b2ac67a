//! Affinity groups.

use serde_json::json;

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::compute::{AffinityGroup, AffinityKind};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync("listAffinityGroupTypes", "", list_types),
    sync(
        "listAffinityGroups",
        "id:affinitygroup name type virtualmachineid:vm account domainid:domain projectid:project listall:flag",
        list,
    ),
    job(
        "createAffinityGroup",
        "name! type! description account domainid:domain projectid:project",
        "user.affinitygroup.CreateAffinityGroupCmd",
        create,
    ),
    job(
        "deleteAffinityGroup",
        "id:affinitygroup name account domainid:domain projectid:project",
        "user.affinitygroup.DeleteAffinityGroupCmd",
        delete,
    ),
];

fn list_types(_: &mut Cloud, _: &Call) -> Result<Answer> {
    Ok(Answer::List(
        "affinityGroupType",
        AffinityKind::ALL.iter().map(|kind| json!({"type": kind.name()})).collect(),
    ))
}

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    // Those of a machine are listed whatever else is asked for.
    if let Some(vm) = call.key(&cloud.vms, "virtualmachineid") {
        let row = &cloud.vms[vm];
        if row.removed {
            return Err(ApiError::invalid(format!(
                "Unable to list affinity groups for virtual machine instance {}; instance not found.",
                vm.number()
            )));
        }
        cloud.allow(call.caller, row.account)?;
        let shown = row.affinity.iter().map(|group| cloud.show_affinity_group(*group)).collect();
        return Ok(Answer::List("affinitygroup", shown));
    }
    let scope = cloud.scope(call)?;
    let shown = cloud
        .affinity_groups
        .iter()
        .filter(|group| {
            cloud.shows(call, scope, group.account)
                && call.selects(&cloud.affinity_groups, "id", group.key)
                && call.names("name", &group.name)
                && call.names("type", group.kind.name())
                && call.keyword_in(&[&group.name, group.kind.name()])
        })
        .map(|group| cloud.show_affinity_group(group.key))
        .collect();
    Ok(Answer::List("affinitygroup", shown))
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = cloud.owner(call)?;
    let name = call.text("name").unwrap_or_default().to_owned();
    let wanted = call.text("type").unwrap_or_default();
    let kind =
        AffinityKind::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(wanted)).ok_or_else(
            || ApiError::invalid(format!("Unable to create affinity group, no processor for type {wanted}")),
        )?;
    if named(cloud, &name, owner).is_some() {
        return Err(ApiError::invalid(format!(
            "Unable to create affinity group, a group with name {name} already exists."
        )));
    }
    let description = call.filled("description").map(str::to_owned);
    let uuid = cloud.fresh_uuid();
    let it = AffinityGroup { name, description, account: owner, kind };
    let key = cloud.affinity_groups.insert(uuid.clone(), cloud.now, it);
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"affinitygroup": cloud.show_affinity_group(key)}))
    });
    Ok(Answer::Job(Submission { id: Some(uuid), ..submission.about("AffinityGroup") }))
}

fn named(
    cloud: &Cloud,
    name: &str,
    owner: Key<crate::model::identity::Account>,
) -> Option<Key<AffinityGroup>> {
    let found = cloud
        .affinity_groups
        .iter()
        .find(|group| group.account == owner && group.name.eq_ignore_ascii_case(name));
    found.map(|group| group.key)
}

impl Cloud {
    /// Members do not keep a group.
    pub(crate) fn remove_affinity_group(&mut self, key: Key<AffinityGroup>) {
        for vm in self.vms.iter_mut() {
            vm.affinity.retain(|group| *group != key);
        }
        let uuid = self.affinity_groups[key].uuid.clone();
        self.untag(&uuid);
        self.affinity_groups.forget(key);
    }
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let after = cloud.settings.timings.rule;
    if let Some(key) = call.key(&cloud.affinity_groups, "id") {
        let row = &cloud.affinity_groups[key];
        if !cloud.may_operate(call.caller, row.account) {
            return Err(ApiError::denied(format!(
                "Account {} does not have permission to operate with resource {}",
                cloud.accounts[call.caller.account].name, row.name
            )));
        }
        let submission = Submission::once(after, move |cloud, _| {
            if !cloud.affinity_groups[key].removed {
                cloud.remove_affinity_group(key);
            }
            Ok(success())
        });
        return Ok(Answer::Job(submission.about("AffinityGroup")));
    }
    let owner = cloud.owner(call)?;
    let name = call.filled("name").map(str::to_owned);
    Ok(Answer::Job(Submission::once(after, move |cloud, _| {
        let Some(name) = name else {
            return Err(ApiError::invalid(
                "Either the affinity group Id or group name must be specified to delete the group",
            ));
        };
        let found = named(cloud, &name, owner);
        let key = found.ok_or_else(|| ApiError::invalid(format!("Unable to find affinity group {name}")))?;
        cloud.remove_affinity_group(key);
        Ok(success())
    })))
}
