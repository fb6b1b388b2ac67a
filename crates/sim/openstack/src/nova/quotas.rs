//! Quota sets and limits.

use serde_json::{Value, json};

use super::{body, policy};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

const DEFAULTS: &[(&str, i64)] = &[
    ("cores", 20),
    ("fixed_ips", -1),
    ("floating_ips", -1),
    ("injected_file_content_bytes", 10_240),
    ("injected_file_path_bytes", 255),
    ("injected_files", 5),
    ("instances", 10),
    ("key_pairs", 100),
    ("metadata_items", 128),
    ("ram", 51_200),
    ("security_group_rules", -1),
    ("security_groups", -1),
    ("server_group_members", 10),
    ("server_groups", 10),
];
const FILES: &[&str] = &["injected_file_content_bytes", "injected_file_path_bytes", "injected_files"];
const NETWORK: &[&str] = &["fixed_ips", "floating_ips", "security_group_rules", "security_groups"];

/// What a project uses: instances, cores, memory.
fn used(cloud: &Cloud, project: &str, name: &str) -> i64 {
    let servers =
        cloud.all("servers").filter(|it| it.text("tenant_id") == project && it.text("vm_state") != "deleted");
    let flavor = |it: &Object, field: &str| it.object("flavor").map_or(0, |flavor| flavor.number(field));
    match name {
        "instances" => i64::try_from(servers.count()).unwrap_or(i64::MAX),
        "cores" => servers.map(|it| flavor(it, "vcpus")).sum(),
        "ram" => servers.map(|it| flavor(it, "ram")).sum(),
        "server_groups" => {
            let count = cloud.all("server_groups").filter(|it| it.text("project_id") == project).count();
            i64::try_from(count).unwrap_or(i64::MAX)
        }
        _ => 0,
    }
}

fn quota(cloud: &Cloud, project: &str) -> Object {
    cloud.quota("compute_quotas", project, DEFAULTS)
}

fn limit(cloud: &Cloud, project: &str, name: &str) -> i64 {
    quota(cloud, project).number(name)
}

/// Refuses servers beyond the quota.
pub(super) fn check_servers(cloud: &Cloud, call: &Call, count: i64, flavor: &Object) -> Result<(), Fail> {
    let project = call.caller.project();
    for (name, each) in [("instances", 1), ("cores", flavor.number("vcpus")), ("ram", flavor.number("ram"))] {
        let (limit, used, wanted) = (limit(cloud, project, name), used(cloud, project, name), each * count);
        if limit >= 0 && used + wanted > limit {
            return Err(Fail::forbidden(format!(
                "Quota exceeded for {name}: Requested {wanted}, but already used {used} of {limit} {name}"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_metadata(cloud: &Cloud, call: &Call, count: usize) -> Result<(), Fail> {
    let limit = limit(cloud, call.caller.project(), "metadata_items");
    if limit >= 0 && i64::try_from(count).unwrap_or(i64::MAX) > limit {
        return Err(Fail::forbidden(format!("Maximum number of metadata items exceeds {limit}")));
    }
    Ok(())
}

pub(super) fn check_groups(cloud: &Cloud, call: &Call) -> Result<(), Fail> {
    let project = call.caller.project();
    let limit = limit(cloud, project, "server_groups");
    if limit >= 0 && used(cloud, project, "server_groups") >= limit {
        return Err(Fail::forbidden("Quota exceeded, too many server groups."));
    }
    Ok(())
}

pub(super) fn check_members(cloud: &Cloud, call: &Call, group: &str, count: i64) -> Result<(), Fail> {
    let limit = limit(cloud, call.caller.project(), "server_group_members");
    let held = i64::try_from(super::groups::members(cloud, group).count()).unwrap_or(i64::MAX);
    if limit >= 0 && held + count > limit {
        return Err(Fail::forbidden("Quota exceeded, too many servers in group"));
    }
    Ok(())
}

pub(super) fn check_keypairs(cloud: &Cloud, call: &Call) -> Result<(), Fail> {
    let limit = limit(cloud, call.caller.project(), "key_pairs");
    let held = cloud.all("keypairs").filter(|it| it.text("user_id") == call.caller.user).count();
    if limit >= 0 && i64::try_from(held).unwrap_or(i64::MAX) >= limit {
        return Err(Fail::forbidden("Quota exceeded, too many key pairs."));
    }
    Ok(())
}

/// A quota set as a version shows it.
fn shown(call: &Call, mut quota: Object) -> Object {
    quota.retain(|name, _| {
        let name = name.as_str();
        let gone =
            (call.at_least(36) && NETWORK.contains(&name)) || (call.at_least(57) && FILES.contains(&name));
        !gone
    });
    quota
}

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    let admin = call.caller.is_admin();
    let own = |project: &str| admin || call.caller.project() == project;
    let with_id = |project: &str, mut quota: Object| {
        quota.insert("id".to_owned(), json!(project));
        Reply::ok(json!({"quota_set": quota}))
    };
    Some(match (call.method.as_str(), rest) {
        ("GET", [project]) => match own(project) {
            true => Ok(with_id(project, shown(call, quota(cloud, project)))),
            false => Err(policy("os-quota-sets:show")),
        },
        ("GET", [project, "defaults"]) => {
            let defaults = DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            Ok(with_id(project, shown(call, defaults)))
        }
        ("GET", [project, "detail"]) => match own(project) {
            true => {
                let detail = shown(call, quota(cloud, project))
                    .into_iter()
                    .map(|(name, limit)| {
                        let used = used(cloud, project, &name);
                        (name, json!({"limit": limit, "in_use": used, "reserved": 0}))
                    })
                    .collect();
                Ok(with_id(project, detail))
            }
            false => Err(policy("os-quota-sets:detail")),
        },
        ("PUT", [project]) => match admin {
            true => update(cloud, call, project),
            false => Err(policy("os-quota-sets:update")),
        },
        ("DELETE", [project]) => match admin {
            true => {
                cloud.remove("compute_quotas", project);
                Ok(Reply::nothing(202))
            }
            false => Err(policy("os-quota-sets:delete")),
        },
        _ => return None,
    })
}

fn update(cloud: &mut Cloud, call: &Call, project: &str) -> Handled {
    let number = json!({"type": ["integer", "string"], "pattern": "^-?[0-9]+$", "minimum": -1});
    let mut properties: Object =
        DEFAULTS.iter().map(|(name, _)| ((*name).to_owned(), number.clone())).collect();
    properties.insert(
        "force".to_owned(),
        json!({"enum": [true, "True", "true", "1", false, "False", "false", "0"]}),
    );
    properties.insert("tenant_id".to_owned(), json!({}));
    let set = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let schema = json!({"type": "object", "required": ["quota_set"], "properties": {"quota_set": set}});
    let body = body(call, &schema)?;
    let given = body.object("quota_set").cloned().unwrap_or_default();
    if cloud.get("projects", project).is_none() {
        return Err(Fail::bad(format!("Project ID {project} is not a valid project.")));
    }
    let force = matches!(given.get("force"), Some(Value::Bool(true)))
        || matches!(given.text("force"), "True" | "true" | "1");
    let mut set =
        cloud.get("compute_quotas", project).cloned().unwrap_or_else(|| object(json!({"id": project})));
    for (name, value) in &given {
        if matches!(name.as_str(), "force" | "tenant_id") {
            continue;
        }
        let limit = value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(-1);
        let used = used(cloud, project, name);
        if limit >= 0 && limit < used && !force {
            return Err(Fail::bad(format!(
                "Quota limit {limit} for {name} must be greater than or equal to already used and reserved {used}."
            )));
        }
        set.insert(name.clone(), json!(limit));
    }
    cloud.put("compute_quotas", set);
    Ok(Reply::ok(json!({"quota_set": shown(call, quota(cloud, project))})))
}

pub(super) fn limits(cloud: &Cloud, call: &Call) -> Reply {
    let project = match call.param("tenant_id").filter(|_| call.caller.is_admin()) {
        Some(project) => project,
        None => call.caller.project(),
    };
    let quota = quota(cloud, project);
    let mut absolute = json!({
        "maxTotalCores": quota["cores"], "maxTotalInstances": quota["instances"], "maxTotalKeypairs": quota["key_pairs"],
        "maxServerMeta": quota["metadata_items"], "maxTotalRAMSize": quota["ram"],
        "maxServerGroups": quota["server_groups"], "maxServerGroupMembers": quota["server_group_members"],
        "totalRAMUsed": used(cloud, project, "ram"), "totalCoresUsed": used(cloud, project, "cores"),
        "totalInstancesUsed": used(cloud, project, "instances"),
        "totalServerGroupsUsed": used(cloud, project, "server_groups"),
    });
    if !call.at_least(36) {
        absolute["maxSecurityGroups"] = quota["security_groups"].clone();
        absolute["maxSecurityGroupRules"] = quota["security_group_rules"].clone();
        absolute["maxTotalFloatingIps"] = quota["floating_ips"].clone();
        absolute["totalSecurityGroupsUsed"] = json!(0);
        absolute["totalFloatingIpsUsed"] = json!(0);
    }
    if !call.at_least(39) {
        absolute["maxImageMeta"] = quota["metadata_items"].clone();
    }
    if !call.at_least(57) {
        absolute["maxPersonality"] = quota["injected_files"].clone();
        absolute["maxPersonalitySize"] = quota["injected_file_content_bytes"].clone();
    }
    Reply::ok(json!({"limits": {"rate": [], "absolute": absolute}}))
}
