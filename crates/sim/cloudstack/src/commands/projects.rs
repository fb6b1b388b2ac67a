//! Projects.

use serde_json::json;

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::identity::{Project, Resource, RoleType};

pub(super) const COMMANDS: &[Command] = &[
    sync("listProjects", "id:project name account domainid:domain listall:flag state", list),
    job(
        "createProject",
        "name! displaytext account domainid:domain accountid:account userid:user",
        "user.project.CreateProjectCmd",
        create,
    ),
    job("suspendProject", "id:project!", "user.project.SuspendProjectCmd", suspend),
    job("activateProject", "id:project!", "user.project.ActivateProjectCmd", activate),
    job("deleteProject", "id:project! cleanup:flag", "user.project.DeleteProjectCmd", delete),
];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let everything = call.is("listall") || call.text("id").is_some();
    let own = &cloud.accounts[call.caller.account];
    let mut owner = None;
    match (call.text("account"), call.key(&cloud.domains, "domainid")) {
        (name, domain) if !call.caller.is_admin() => {
            if name.is_some_and(|name| name != own.name) || domain.is_some_and(|domain| domain != own.domain)
            {
                return Err(ApiError::denied("Can't list projects of others; unauthorized"));
            }
        }
        (Some(name), None) => {
            return Err(ApiError::invalid(format!(
                "could not find account {name} because domain is not specified"
            )));
        }
        (name, Some(domain)) => {
            if !call.caller.is_root() && !cloud.is_within(domain, own.domain) {
                return Err(ApiError::not_yours());
            }
            let found = name.map(|name| {
                cloud.account_named(name, domain).ok_or_else(|| {
                    ApiError::invalid(format!("Unable to find account {name} in domain {}", domain.number()))
                })
            });
            owner = found.transpose()?;
        }
        (None, None) => {}
    }
    // The newest first.
    let shown = cloud
        .projects
        .iter()
        .rev()
        .filter(|project| {
            let mine = project.owner == owner.unwrap_or(call.caller.account);
            (mine
                || (everything && call.caller.is_admin() && cloud.may_operate(call.caller, project.account)))
                && call.selects(&cloud.projects, "id", project.key)
                && call.names("name", &project.name)
                && call.keyword_in(&[&project.name, &project.display_text])
                && call.names("state", if project.active { "Active" } else { "Suspended" })
        })
        .map(|project| cloud.show_project(project.key))
        .collect();
    Ok(Answer::List("project", shown))
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = cloud.owner(call)?;
    let domain = cloud.accounts[owner].domain;
    let name = call.text("name").unwrap_or_default().to_owned();
    if cloud
        .projects
        .iter()
        .any(|project| project.domain == domain && project.name.eq_ignore_ascii_case(&name))
    {
        return Err(ApiError::invalid(format!(
            "Project with name {name} already exists in domain id={}",
            domain.number()
        )));
    }
    cloud.within_limit(owner, Resource::Project, 1)?;
    let account_name = format!("PrjAcct-{name}-{}", domain.number());
    let account = cloud.add_account(&account_name, domain, RoleType::User, false);
    let display_text = call.filled("displaytext").unwrap_or(&name).to_owned();
    let it = Project { name, display_text, domain, account, owner, active: true };
    let uuid = cloud.fresh_uuid();
    let key = cloud.projects.insert(uuid.clone(), cloud.now, it);
    cloud.accounts[account].project = Some(key);
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"project": cloud.show_project(key)}))
    });
    Ok(Answer::Job(Submission { id: Some(uuid), ..submission.about("None") }))
}

fn suspend(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    set_active(cloud, call, false)
}

fn activate(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    set_active(cloud, call, true)
}

/// Machines of a suspended project are stopped.
fn set_active(cloud: &mut Cloud, call: &Call, active: bool) -> Result<Answer> {
    let key = call.the(&cloud.projects, "id")?;
    cloud.allow(call.caller, cloud.projects[key].account)?;
    Ok(Answer::Job(Submission::once(cloud.settings.timings.power, move |cloud, _| {
        cloud.projects[key].active = active;
        if !active {
            let account = cloud.projects[key].account;
            let vms: Vec<_> = cloud.vms.iter().filter(|vm| vm.account == account).map(|vm| vm.key).collect();
            for vm in vms {
                cloud.power_off(vm);
            }
        }
        Ok(json!({"project": cloud.show_project(key)}))
    })))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.projects, "id")?;
    cloud.allow(call.caller, cloud.projects[key].account)?;
    Ok(Answer::Job(Submission::once(cloud.settings.timings.network, move |cloud, _| {
        cloud.projects.remove(key);
        let account = cloud.projects[key].account;
        cloud.accounts.remove(account);
        Ok(success())
    })))
}
