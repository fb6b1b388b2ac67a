//! Quotas.

use serde_json::{Value, json};

use super::{Fail, Kind, bad_request, invalid_input, kind_of, policy};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Handled, Reply, repr};

const DEFAULTS: &[(&str, i64)] = &[
    ("network", 100),
    ("subnet", 100),
    ("subnetpool", -1),
    ("port", 500),
    ("router", 10),
    ("floatingip", 50),
    ("rbac_policy", 10),
    ("security_group", 10),
    ("security_group_rule", 100),
    ("trunk", -1),
];

fn used(cloud: &Cloud, project: &str, kind: &str) -> i64 {
    let count = cloud.all(kind_of(kind).plural).filter(|it| it.text("project_id") == project).count();
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Refuses a resource beyond the project's quota.
pub(super) fn check(cloud: &Cloud, project: &str, kind: &Kind) -> Result<(), Fail> {
    let limit = cloud.quota("network_quotas", project, DEFAULTS).get(kind.singular).and_then(Value::as_i64);
    let needed = if kind.singular == "security_group" && super::ports::default_group(cloud, project).is_none()
    {
        2
    } else {
        1
    };
    match limit {
        Some(limit) if limit >= 0 && used(cloud, project, kind.singular) + needed > limit => {
            let text = format!("Quota exceeded for resources: ['{}'].", kind.singular);
            Err(Fail::new(409, "OverQuota", text))
        }
        _ => Ok(()),
    }
}

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Handled {
    let admin = call.caller.is_admin();
    let own = |project: &str| admin || call.caller.project() == project;
    match (call.method.as_str(), rest) {
        ("GET", []) => {
            if !admin {
                return Err(policy("rule:get_quota"));
            }
            let projects: Vec<Value> = cloud
                .all("network_quotas")
                .map(|set| {
                    let mut quota = cloud.quota("network_quotas", set.text("id"), DEFAULTS);
                    quota.insert("project_id".to_owned(), set["id"].clone());
                    quota.insert("tenant_id".to_owned(), set["id"].clone());
                    Value::Object(quota)
                })
                .collect();
            Ok(Reply::ok(json!({"quotas": projects})))
        }
        ("GET", [project]) => {
            if !own(project) {
                return Err(policy("rule:get_quota"));
            }
            Ok(Reply::ok(json!({"quota": cloud.quota("network_quotas", project, DEFAULTS)})))
        }
        ("GET", [_, "default"]) => {
            let defaults: Object =
                DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            Ok(Reply::ok(json!({"quota": defaults})))
        }
        ("GET", [project, "details" | "details.json"]) => {
            if !own(project) {
                return Err(policy("rule:get_quota"));
            }
            let quota: Object = cloud
                .quota("network_quotas", project, DEFAULTS)
                .into_iter()
                .map(|(name, limit)| {
                    let used = used(cloud, project, &name);
                    (name, json!({"limit": limit, "used": used, "reserved": 0}))
                })
                .collect();
            Ok(Reply::ok(json!({"quota": quota})))
        }
        ("PUT", [project]) => {
            let body = super::attributes::read(call)?;
            let given = body.object("quota").cloned();
            let given = given.ok_or_else(|| bad_request("Unable to find 'quota' in request body"))?;
            if !admin {
                return Err(policy("rule:update_quota"));
            }
            let mut set = cloud
                .get("network_quotas", project)
                .cloned()
                .unwrap_or_else(|| object(json!({"id": project})));
            for (name, value) in given {
                if !DEFAULTS.iter().any(|(known, _)| *known == name) {
                    return Err(bad_request(format!("Unrecognized attribute(s) '{name}'")));
                }
                let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                let number =
                    number.ok_or_else(|| invalid_input(format!("{} is not an integer", repr(&value))))?;
                set.insert(name, json!(number));
            }
            cloud.put("network_quotas", set);
            Ok(Reply::ok(json!({"quota": cloud.quota("network_quotas", project, DEFAULTS)})))
        }
        ("DELETE", [project]) => {
            if !admin {
                return Err(policy("rule:delete_quota"));
            }
            let text = format!("Quota for project {project} could not be found.");
            cloud
                .remove("network_quotas", project)
                .ok_or_else(|| Fail::new(404, "TenantQuotaNotFound", text))?;
            Ok(Reply::empty(204))
        }
        _ => Err(super::not_found()),
    }
}
