//! Quotas and limits.

use serde_json::json;

use super::{body, policy};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

const DEFAULTS: &[(&str, i64)] = &[
    ("volumes", 10),
    ("per_volume_gigabytes", -1),
    ("snapshots", 10),
    ("gigabytes", 1000),
    ("backups", 10),
    ("backup_gigabytes", 1000),
    ("groups", 10),
];

fn quota(cloud: &Cloud, project: &str) -> Object {
    let mut quota = cloud.quota("volume_quotas", project, DEFAULTS);
    let types: Vec<String> = cloud.all("volume_types").map(|it| it.text("name").to_owned()).collect();
    let names: Vec<String> = types
        .iter()
        .flat_map(|kind| ["volumes", "gigabytes", "snapshots"].map(|name| format!("{name}_{kind}")))
        .collect();
    for name in names {
        let set = cloud.get("volume_quotas", project).and_then(|it| it.get(&name)).cloned();
        quota.insert(name, set.unwrap_or_else(|| json!(-1)));
    }
    quota
}

fn used(cloud: &Cloud, project: &str, name: &str) -> i64 {
    let own = |kind: &'static str| cloud.all(kind).filter(move |it| it.text("_project") == project);
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    match name {
        "volumes" => count(own("volumes").count()),
        "snapshots" => count(own("snapshots").count()),
        "gigabytes" => own("volumes").chain(own("snapshots")).map(|it| it.number("size")).sum(),
        _ => 0,
    }
}

fn over(text: String) -> Fail {
    let body = json!({"overLimit": {"code": 413, "message": text, "retryAfter": "0"}});
    Fail::reply(Reply::json(413, body).with("retry-after", "0"))
}

/// Refuses a volume beyond the quota.
pub(super) fn check(cloud: &Cloud, project: &str, size: i64) -> Result<(), Fail> {
    let limit = quota(cloud, project).number("volumes");
    if limit >= 0 && used(cloud, project, "volumes") >= limit {
        return Err(over(format!(
            "VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded for quota 'volumes'."
        )));
    }
    check_growth(cloud, project, size)
}

pub(super) fn check_growth(cloud: &Cloud, project: &str, size: i64) -> Result<(), Fail> {
    let limit = quota(cloud, project).number("gigabytes");
    let used = used(cloud, project, "gigabytes");
    if limit >= 0 && used + size > limit {
        return Err(over(format!(
            "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested {size}G, quota is {limit}G and {used}G has been consumed."
        )));
    }
    Ok(())
}

pub(super) fn check_snapshots(cloud: &Cloud, project: &str, size: i64) -> Result<(), Fail> {
    let limit = quota(cloud, project).number("snapshots");
    if limit >= 0 && used(cloud, project, "snapshots") >= limit {
        return Err(over(format!(
            "SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) exceeded"
        )));
    }
    check_growth(cloud, project, size)
}

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    let admin = call.caller.is_admin();
    let own = |project: &str| admin || call.caller.project() == project;
    let with_id = |project: &str, mut quota: Object| {
        quota.insert("id".to_owned(), json!(project));
        Reply::ok(json!({"quota_set": quota}))
    };
    Some(match (call.method.as_str(), rest) {
        ("GET", [project]) => {
            if !own(project) {
                return Some(Err(policy("volume_extension:quotas:show")));
            }
            let usage = call.param("usage").is_some_and(|it| it.eq_ignore_ascii_case("true"));
            let quota = quota(cloud, project)
                .into_iter()
                .map(|(name, limit)| match usage {
                    true => {
                        let used = used(cloud, project, &name);
                        (name, json!({"limit": limit, "in_use": used, "reserved": 0, "allocated": 0}))
                    }
                    false => (name, limit),
                })
                .map(|(name, mut value)| {
                    if let Some(value) = value.as_object_mut() {
                        value.remove("allocated");
                    }
                    (name, value)
                })
                .collect();
            Ok(with_id(project, quota))
        }
        ("GET", [project, "defaults"]) => {
            let defaults = DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
            let mut quota = quota(cloud, "");
            quota.extend(defaults);
            Ok(with_id(project, quota))
        }
        ("PUT", [project]) => match admin {
            true => update(cloud, call, project),
            false => Err(policy("volume_extension:quotas:update")),
        },
        ("DELETE", [project]) => match admin {
            true => {
                cloud.remove("volume_quotas", project);
                Ok(Reply::nothing(200))
            }
            false => Err(policy("volume_extension:quotas:delete")),
        },
        _ => return None,
    })
}

fn update(cloud: &mut Cloud, call: &Call, project: &str) -> Handled {
    let given = body(call, "quota_set")?;
    let known = quota(cloud, project);
    let mut set =
        cloud.get("volume_quotas", project).cloned().unwrap_or_else(|| object(json!({"id": project})));
    for (name, value) in
        given.iter().filter(|(name, _)| !matches!(name.as_str(), "tenant_id" | "force" | "skip_validation"))
    {
        if !known.contains_key(name) {
            return Err(Fail::bad(format!("Bad key(s) in quota set: {name}")));
        }
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        let number = number.ok_or_else(|| Fail::bad(format!("{name} must be an integer")))?;
        set.insert(name.clone(), json!(number));
    }
    cloud.put("volume_quotas", set);
    Ok(Reply::ok(json!({"quota_set": quota(cloud, project)})))
}

pub(super) fn limits(cloud: &Cloud, call: &Call) -> Reply {
    let project = call.caller.project();
    let quota = quota(cloud, project);
    Reply::ok(json!({"limits": {"rate": [], "absolute": {
        "maxTotalVolumes": quota["volumes"], "maxTotalSnapshots": quota["snapshots"],
        "maxTotalVolumeGigabytes": quota["gigabytes"], "maxTotalBackups": quota["backups"],
        "maxTotalBackupGigabytes": quota["backup_gigabytes"], "totalVolumesUsed": used(cloud, project, "volumes"),
        "totalGigabytesUsed": used(cloud, project, "gigabytes"), "totalSnapshotsUsed": used(cloud, project, "snapshots"),
        "totalBackupsUsed": 0, "totalBackupGigabytesUsed": 0,
    }}}))
}
