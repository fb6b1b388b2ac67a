//! Asynchronous jobs.

use serde_json::{Value, json};

use super::sync;
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Job, failure};
use crate::model::table::Key;
use crate::render::{Fields, time};

pub(super) const COMMANDS: &[Command] = &[
    sync("queryAsyncJobResult", "jobid:job", query),
    sync(
        "listAsyncJobs",
        "startdate:date resourceid resourcetype account domainid:domain listall:flag \
         managementserverid:managementserver",
        list,
    ),
];

fn query(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let Some(job) = call.key(&cloud.jobs, "jobid") else {
        return Err(ApiError::invalid(
            "Expected parameter job id or parameters resource type and resource id",
        ));
    };
    let owner = cloud.jobs[job].account;
    if !cloud.may_operate(call.caller, owner) {
        return Err(ApiError::denied(format!(
            "Account {} is not authorized to see job id={}",
            cloud.accounts[call.caller.account].name,
            job.number()
        )));
    }
    Ok(Answer::Body(cloud.show_job(job)))
}

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    let since = call.text("startdate");
    if call.text("resourceid").is_some() && call.text("resourcetype").is_none() {
        return Err(ApiError::invalid("resourceid parameter must be used with resourcetype parameter"));
    }
    let is_about = |job: &Job| {
        call.text("resourcetype").is_none_or(|kind| {
            let (held, uuid) = (job.instance.0.unwrap_or_default(), job.instance.1.as_deref());
            held.eq_ignore_ascii_case(kind) && call.filled("resourceid").is_none_or(|id| uuid == Some(id))
        })
    };
    let shown = cloud
        .jobs
        .iter()
        .filter(|job| {
            job.outcome.is_none()
                && cloud.shows(call, scope, job.account)
                && is_about(job)
                && call.keyword_in(&[&cloud.class(job)])
                && since.is_none_or(|since| time(job.created).as_str() >= since)
        })
        .map(|job| cloud.show_job(job.key))
        .collect();
    Ok(Answer::List("asyncjobs", shown))
}

impl Cloud {
    /// Name of the Java class of a job's command.
    fn class(&self, job: &Job) -> String {
        let admin = self.accounts[job.account].role == crate::RoleType::RootAdmin
            && job.command.name == "destroyVirtualMachine";
        let class = if admin { "admin.vm.DestroyVMCmdByAdmin" } else { job.command.class };
        format!("org.apache.cloudstack.api.command.{class}")
    }

    fn show_job(&self, key: Key<Job>) -> Value {
        let row = &self.jobs[key];
        let account = &self.accounts[row.account];
        let mut fields = Fields::of(json!({
            "accountid": account.uuid,
            "account": account.name,
            "domainid": self.domains[account.domain].uuid,
            "domainpath": self.domain_path(account.domain),
            "userid": self.users[row.user].uuid,
            "cmd": self.class(row),
            "jobprocstatus": 0,
            "created": time(row.created),
            "jobid": row.uuid,
        }));
        fields.maybe("jobinstancetype", row.instance.0).maybe("jobinstanceid", row.instance.1.as_deref());
        match &row.outcome {
            None => {
                fields
                    .put("jobstatus", 0)
                    .put("jobresultcode", 0)
                    .put("managementserverid", self.management_server.as_str())
                    .put("managementservername", "localhost");
            }
            Some(outcome) => {
                let (status, code, result) = match outcome {
                    Ok(result) => (1, 0, result.clone()),
                    Err(error) => (2, error.code, failure(error)),
                };
                fields
                    .put("jobstatus", status)
                    .put("jobresultcode", code)
                    .put("jobresulttype", "object")
                    .put("jobresult", result)
                    .maybe("completed", row.completed.map(time));
            }
        }
        fields.done()
    }
}
