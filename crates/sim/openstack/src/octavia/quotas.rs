//! Quotas: unlimited unless set.

use serde_json::{Value, json};

use super::{denied, kind};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

const DEFAULTS: &[(&str, i64)] = &[
    ("load_balancer", -1),
    ("listener", -1),
    ("member", -1),
    ("pool", -1),
    ("health_monitor", -1),
    ("l7policy", -1),
    ("l7rule", -1),
];

/// The word of a quota for a kind.
pub(super) fn word(singular: &str) -> &'static str {
    match singular {
        "listener" => "listener",
        "pool" => "pool",
        "member" => "member",
        "healthmonitor" => "health_monitor",
        "l7policy" => "l7policy",
        _ => "load_balancer",
    }
}

/// Refuses resources beyond the quota.
pub(super) fn check(cloud: &Cloud, project: &str, name: &str, count: i64) -> Result<(), Fail> {
    let limit = cloud.quota("balancer_quotas", project, DEFAULTS).number(name);
    let what = kind(&name.replace('_', ""));
    let used = cloud.all(what.1).filter(|it| it.text("project_id") == project).count();
    if limit >= 0 && i64::try_from(used).unwrap_or(i64::MAX) + count > limit && count > 0 {
        return Err(Fail::forbidden(format!("Quota has been met for resources: {}", what.2)));
    }
    Ok(())
}

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Handled {
    let admin = call.caller.is_admin();
    let quota =
        |cloud: &Cloud, project: &str| json!({"quota": cloud.quota("balancer_quotas", project, DEFAULTS)});
    match (call.method.as_str(), rest) {
        ("GET", []) => {
            let own: Vec<Value> = cloud
                .all("balancer_quotas")
                .filter(|it| admin || it.text("id") == call.caller.project())
                .map(|it| {
                    let mut quota = cloud.quota("balancer_quotas", it.text("id"), DEFAULTS);
                    quota.insert("project_id".to_owned(), it["id"].clone());
                    Value::Object(quota)
                })
                .collect();
            Ok(Reply::ok(json!({"quotas": own, "quotas_links": []})))
        }
        ("GET", ["defaults"]) | ("GET", [_, "default"]) => match admin || rest.len() == 2 {
            true => Ok(Reply::ok(quota(cloud, ""))),
            false => Err(denied()),
        },
        ("GET", [project]) => match admin || call.caller.project() == *project {
            true => Ok(Reply::ok(quota(cloud, project))),
            false => Err(denied()),
        },
        ("PUT", [project]) => {
            if !admin {
                return Err(denied());
            }
            let given: Object = call.object("quota").unwrap_or_default();
            let mut set = cloud
                .get("balancer_quotas", project)
                .cloned()
                .unwrap_or_else(|| object(json!({"id": project})));
            for (name, value) in given {
                let name = match name.as_str() {
                    "loadbalancer" => "load_balancer".to_owned(),
                    "healthmonitor" => "health_monitor".to_owned(),
                    _ => name,
                };
                set.insert(name, value);
            }
            cloud.put("balancer_quotas", set);
            Ok(Reply::json(202, quota(cloud, project)))
        }
        ("DELETE", [project]) => {
            if !admin {
                return Err(denied());
            }
            cloud.remove("balancer_quotas", project);
            Ok(Reply::empty(202))
        }
        _ => Err(Fail::missing("")),
    }
}
