//! Lists of servers.

use regex::RegexBuilder;
use serde_json::Value;

use super::super::{listed, page, policy};
use super::show;
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled};

/// Whether a parameter is one of the API's.
pub(in crate::nova) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

const KNOWN: &[&str] = &[
    "user_id",
    "project_id",
    "tenant_id",
    "launch_index",
    "image_ref",
    "image",
    "kernel_id",
    "ramdisk_id",
    "hostname",
    "key_name",
    "instance_type_id",
    "flavor",
    "reservation_id",
    "launched_at",
    "terminated_at",
    "availability_zone",
    "name",
    "display_name",
    "description",
    "locked_by",
    "uuid",
    "root_device_name",
    "config_drive",
    "access_ip_v4",
    "access_ip_v6",
    "auto_disk_config",
    "progress",
    "sort_key",
    "sort_dir",
    "all_tenants",
    "soft_deleted",
    "deleted",
    "status",
    "changes-since",
    "changes-before",
    "ip",
    "ip6",
    "created_at",
    "vm_state",
    "task_state",
    "power_state",
    "host",
    "node",
    "limit",
    "marker",
    "metadata",
    "tags",
    "tags-any",
    "not-tags",
    "not-tags-any",
    "locked",
    "block_device_mapping",
    "services",
    "system_metadata",
    "info_cache",
    "pci_devices",
    "security_groups",
];

const STATUSES: &[&str] = &[
    "ACTIVE",
    "BUILD",
    "REBOOT",
    "HARD_REBOOT",
    "RESIZE",
    "VERIFY_RESIZE",
    "REVERT_RESIZE",
    "SHUTOFF",
    "PAUSED",
    "SUSPENDED",
    "ERROR",
    "DELETED",
    "SOFT_DELETED",
    "RESCUE",
    "SHELVED",
    "SHELVED_OFFLOADED",
    "MIGRATING",
    "PASSWORD",
    "REBUILD",
];

pub(super) fn list(cloud: &Cloud, call: &Call, detail: bool) -> Handled {
    check(call)?;
    let admin = call.caller.is_admin();
    let flag = |name: &str| call.param(name).is_some_and(|it| !matches!(it, "0" | "False" | "false"));
    let everyone = flag("all_tenants");
    if everyone && !admin {
        return Err(policy(&format!("servers:{}:get_all_tenants", if detail { "detail" } else { "index" })));
    }
    let project = call.param("project_id").or(call.param("tenant_id")).filter(|_| admin && everyone);
    let statuses: Vec<String> = call.params("status").map(str::to_uppercase).collect();
    for status in &statuses {
        if !STATUSES.contains(&status.as_str()) {
            return Err(Fail::bad("Invalid status value"));
        }
        if status == "DELETED" && !admin {
            return Err(Fail::forbidden("Only administrators may list deleted instances"));
        }
    }
    let name = call.param("name").or(call.param("display_name")).map(|pattern| {
        // MySQL's REGEXP knows no shorthand that Rust lacks, and ignores case. Parentheses are literal in the filter.
        let pattern = pattern.replace('(', "\\(").replace(')', "\\)");
        RegexBuilder::new(&pattern).case_insensitive(true).build()
    });
    let name = match name {
        Some(Ok(regex)) => Some(regex),
        Some(Err(_)) => {
            let text = call.param("name").unwrap_or_default();
            return Err(Fail::bad(format!(
                "Invalid input for query parameters name. Value: {text}. '{text}' is not a 'regex'"
            )));
        }
        None => None,
    };
    let matches = |it: &Object| {
        let deleted = it.text("vm_state") == "deleted";
        if deleted && !(admin && flag("deleted")) {
            return false;
        }
        let equal = |param: &str, held: &str| call.param(param).is_none_or(|wanted| wanted == held);
        let tags = it.texts("tags");
        let given = |name: &str| -> Option<Vec<String>> {
            Some(call.param(name)?.split(',').map(str::to_owned).collect())
        };
        let has = |tag: &String| tags.contains(&tag.as_str());
        let address = |param: &str| {
            call.param(param).is_none_or(|pattern| {
                let regex = RegexBuilder::new(pattern).build();
                let held = show::addresses(cloud, it);
                let mut all =
                    held.values().filter_map(Value::as_array).flatten().filter_map(|it| it["addr"].as_str());
                regex.is_ok_and(|regex| all.any(|address| regex.is_match(address)))
            })
        };
        (everyone || it.text("tenant_id") == call.caller.project())
            && project.is_none_or(|project| it.text("tenant_id") == project)
            && name.as_ref().is_none_or(|regex| regex.is_match(it.text("name")))
            && (statuses.is_empty() || statuses.iter().any(|status| status == show::status(it)))
            && equal("image", it.text("image"))
            && equal("flavor", it.object("flavor").map_or("", |it| it.text("id")))
            && equal("key_name", it.text("key_name"))
            && equal("availability_zone", it.text("zone"))
            && equal("uuid", it.text("id"))
            && equal("vm_state", it.text("vm_state"))
            && equal("reservation_id", it.text("reservation"))
            && (!admin || equal("host", it.text("host")))
            && call.param("user_id").is_none_or(|user| it.text("user_id") == user)
            && given("tags").is_none_or(|tags| tags.iter().all(has))
            && given("tags-any").is_none_or(|tags| tags.iter().any(has))
            && given("not-tags").is_none_or(|tags| !tags.iter().all(has))
            && given("not-tags-any").is_none_or(|tags| !tags.iter().any(has))
            && call.param("changes-since").is_none_or(|since| it.text("updated") >= since)
            && address("ip")
            && address("ip6")
    };
    let mut rows: Vec<&Object> = cloud.all("servers").filter(|it| matches(it)).collect();
    rows.reverse();
    if let Some(key) = call.param("sort_key") {
        let field = match key {
            "display_name" => "name",
            "created_at" => "created",
            "updated_at" => "updated",
            "uuid" => "id",
            key => key,
        };
        rows.sort_by_key(|a| a.text(field).to_lowercase());
        if call.param("sort_dir") != Some("asc") {
            rows.reverse();
        }
    }
    let rows = rows
        .into_iter()
        .map(|it| if detail { show::listed(cloud, call, it) } else { show::brief(call, it) })
        .collect();
    Ok(listed("servers", page(call, "servers", rows)?))
}

fn check(call: &Call) -> Result<(), Fail> {
    if call.at_least(75) {
        let unknown =
            call.query.iter().find(|(name, _)| !KNOWN.contains(&name.as_str()) && !name.starts_with('_'));
        if let Some((name, _)) = unknown {
            return Err(Fail::bad(format!("'{name}' does not match any of the regexes: '^_'")));
        }
    }
    for name in ["changes-since", "changes-before"] {
        if let Some(text) = call.param(name) {
            let date =
                text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::DateTime>().is_ok();
            if !date {
                return Err(Fail::bad(format!(
                    "Invalid input for query parameters {name}. Value: {text}. '{text}' is not a 'date-time'"
                )));
            }
        }
    }
    Ok(())
}
