//! Actions on servers.

use serde_json::{Value, json};

use super::super::{flavors, policy};
use super::{build, find, locked, not_ready, record, set_state, show};
use crate::cloud::Cloud;
use crate::guests;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply, validate};
use crate::work::Task;

/// An action: its word in policies, the states it is possible in, the task state while it runs.
struct Action {
    name: &'static str,
    word: &'static str,
    rule: &'static str,
    states: &'static [&'static str],
    task: &'static str,
}

const fn action(
    name: &'static str,
    word: &'static str,
    rule: &'static str,
    states: &'static [&'static str],
    task: &'static str,
) -> Action {
    Action { name, word, rule, states, task }
}

const RUNNING: &[&str] = &["active", "stopped", "paused", "suspended"];

const ACTIONS: &[Action] = &[
    action("os-start", "start", "servers:start", &["stopped"], "powering-on"),
    action("os-stop", "stop", "servers:stop", &["active", "rescued", "error"], "powering-off"),
    action(
        "reboot",
        "reboot",
        "servers:reboot",
        &["active", "stopped", "paused", "suspended", "error"],
        "rebooting",
    ),
    action("rebuild", "rebuild", "servers:rebuild", &["active", "stopped", "error"], "rebuilding"),
    action("resize", "resize", "servers:resize", &["active", "stopped"], "resize_prep"),
    action("confirmResize", "confirmResize", "servers:confirm_resize", &["resized"], ""),
    action("revertResize", "revertResize", "servers:revert_resize", &["resized"], "resize_reverting"),
    action("pause", "pause", "os-pause-server:pause", &["active"], "pausing"),
    action("unpause", "unpause", "os-pause-server:unpause", &["paused"], "unpausing"),
    action("suspend", "suspend", "os-suspend-server:suspend", &["active"], "suspending"),
    action("resume", "resume", "os-suspend-server:resume", &["suspended"], "resuming"),
    action("shelve", "shelve", "os-shelve:shelve", RUNNING, "shelving"),
    action("shelveOffload", "shelveOffload", "os-shelve:shelve_offload", &["shelved"], "shelving_offloading"),
    action("unshelve", "unshelve", "os-shelve:unshelve", &["shelved", "shelved_offloaded"], "unshelving"),
    action("createImage", "createImage", "servers:create_image", RUNNING, "image_snapshot"),
];

pub(super) fn act(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let body = match call.json() {
        Some(Value::Object(body)) if body.len() == 1 => body,
        _ => return Err(Fail::bad("Malformed request body")),
    };
    let (name, argument) = body.into_iter().next().unwrap_or_default();
    let known = ACTIONS.iter().find(|it| it.name == name);
    let other = matches!(
        name.as_str(),
        "os-getConsoleOutput"
            | "lock"
            | "unlock"
            | "forceDelete"
            | "os-resetState"
            | "migrate"
            | "os-migrateLive"
            | "addSecurityGroup"
            | "removeSecurityGroup"
            | "os-getVNCConsole"
            | "changePassword"
            | "evacuate"
            | "restore"
            | "injectNetworkInfo"
            | "resetNetwork"
    );
    if known.is_none() && !other {
        return Err(Fail::bad(format!("There is no such action: {name}")));
    }
    check_argument(&name, &argument)?;
    let server = find(cloud, call, id)?;
    if let Some(rule) = admin_rule(&name)
        && !call.caller.is_admin()
    {
        return Err(policy(rule));
    }
    let rule = known.map_or_else(|| other_rule(&name), |it| it.rule);
    if !call.caller.is_member() {
        return Err(policy(rule));
    }
    // Until the scheduler has seen it, a server is in no cell.
    if server.text("vm_state") == "building" && server.text("task_state") == "scheduling" {
        return Err(super::absent(id));
    }
    let unplaced = server.text("host").is_empty() && server.text("vm_state") != "shelved_offloaded";
    if let Some(known) = known {
        if server.flag("locked") && !call.caller.is_admin() {
            return Err(locked(id));
        }
        if unplaced || server.text("vm_state") == "building" {
            return Err(not_ready(id));
        }
        if !known.states.contains(&server.text("vm_state")) {
            return Err(Fail::conflict(format!(
                "Cannot '{}' instance {id} while it is in vm_state {}",
                known.word,
                server.text("vm_state")
            )));
        }
        if server.has("task_state") {
            return Err(Fail::conflict(format!(
                "Cannot '{}' instance {id} while it is in task_state {}",
                known.word,
                server.text("task_state")
            )));
        }
        return start(cloud, call, &server, known, &argument);
    }
    match name.as_str() {
        "os-getConsoleOutput" => {
            if unplaced {
                return Err(not_ready(id));
            }
            console(cloud, &server, &argument)
        }
        "os-getVNCConsole" => Err(Fail::bad("Unavailable console type novnc.")),
        "lock" | "unlock" => {
            cloud.set("servers", id, "locked", name == "lock");
            let reason = argument.get("locked_reason").cloned().unwrap_or_default();
            cloud.set("servers", id, "locked_reason", if name == "lock" { reason } else { Value::Null });
            record(cloud, call, id, &name);
            Ok(Reply::nothing(202))
        }
        "forceDelete" => {
            if server.flag("locked") && !call.caller.is_admin() {
                return Err(locked(id));
            }
            build::begin_delete(cloud, call, &server);
            Ok(Reply::nothing(202))
        }
        "os-resetState" => {
            set_state(cloud, id, Some(argument["state"].as_str().unwrap_or("error")), None);
            Ok(Reply::nothing(202))
        }
        "addSecurityGroup" | "removeSecurityGroup" => security_group(cloud, &server, &name, &argument),
        _ => Ok(Reply::nothing(202)),
    }
}

fn admin_rule(name: &str) -> Option<&'static str> {
    match name {
        "os-resetState" => Some("os-admin-actions:reset_state"),
        "migrate" => Some("os-migrate-server:migrate"),
        "os-migrateLive" => Some("os-migrate-server:migrate_live"),
        "evacuate" => Some("os-evacuate"),
        "injectNetworkInfo" => Some("os-admin-actions:inject_network_info"),
        _ => None,
    }
}

fn other_rule(name: &str) -> &'static str {
    match name {
        "os-getConsoleOutput" => "os-console-output",
        "lock" => "os-lock-server:lock",
        "unlock" => "os-lock-server:unlock",
        "forceDelete" => "os-deferred-delete:force",
        "addSecurityGroup" => "os-security-groups:add",
        "removeSecurityGroup" => "os-security-groups:remove",
        _ => "os-remote-consoles",
    }
}

fn check_argument(name: &str, argument: &Value) -> Result<(), Fail> {
    let schema = match name {
        "reboot" => json!({"type": "object", "required": ["type"], "additionalProperties": false,
            "properties": {"type": {"enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]}}}),
        "os-getConsoleOutput" => json!({"type": "object", "additionalProperties": false,
            "properties": {"length": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$", "minimum": -1}}}),
        "resize" => json!({"type": "object", "required": ["flavorRef"],
            "properties": {"flavorRef": {"type": ["string", "integer"], "minLength": 1}}}),
        "rebuild" => json!({"type": "object", "required": ["imageRef"]}),
        "createImage" => json!({"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 255}}}),
        "os-resetState" => {
            json!({"type": "object", "required": ["state"], "properties": {"state": {"enum": ["active", "error"]}}})
        }
        "addSecurityGroup" | "removeSecurityGroup" => json!({"type": "object", "required": ["name"]}),
        _ => return Ok(()),
    };
    validate(name, argument, &schema).map_err(Fail::bad)
}

fn console(cloud: &Cloud, server: &Object, argument: &Value) -> Handled {
    let text = guests::console(cloud, server);
    let length = argument.get("length").and_then(|it| it.as_i64().or_else(|| it.as_str()?.parse().ok()));
    let text = match length.and_then(|it| usize::try_from(it).ok()) {
        Some(length) => {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(length)..].join("\n")
        }
        None => text,
    };
    Ok(Reply::ok(json!({"output": text})))
}

fn security_group(cloud: &mut Cloud, server: &Object, action: &str, argument: &Value) -> Handled {
    let id = server.text("id");
    let name = argument["name"].as_str().unwrap_or_default();
    let project = server.text("tenant_id");
    let found = cloud
        .all("security_groups")
        .find(|it| it.text("project_id") == project && (it.text("name") == name || it.text("id") == name))
        .map(|it| (it.text("id").to_owned(), it.text("name").to_owned()));
    let text = format!("Security group {name} not found for project {project}.");
    let (group, name) = found.ok_or_else(|| Fail::missing(text))?;
    let mut names: Vec<String> = server.texts("security_groups").into_iter().map(str::to_owned).collect();
    if action == "addSecurityGroup" {
        if !names.contains(&name) {
            names.push(name);
        }
    } else {
        names.retain(|it| *it != name);
    }
    cloud.set("servers", id, "security_groups", names);
    for port in server.list("ports").iter().filter_map(|it| it["id"].as_str()) {
        let Some(row) = cloud.get("ports", port) else { continue };
        let mut groups: Vec<String> = row.texts("security_groups").into_iter().map(str::to_owned).collect();
        groups.retain(|it| *it != group);
        if action == "addSecurityGroup" {
            groups.push(group.clone());
        }
        cloud.set("ports", port, "security_groups", groups);
    }
    Ok(Reply::nothing(202))
}

fn start(cloud: &mut Cloud, call: &Call, server: &Object, action: &Action, argument: &Value) -> Handled {
    let id = server.text("id").to_owned();
    let mut task = action.task.to_owned();
    let mut reply = Reply::nothing(202);
    match action.name {
        "reboot" if argument["type"].as_str().is_some_and(|it| it.eq_ignore_ascii_case("hard")) => {
            task = "rebooting_hard".to_owned();
        }
        "reboot" if server.text("vm_state") != "active" => {
            return Err(Fail::conflict(format!(
                "Cannot 'reboot' instance {id} while it is in vm_state {}",
                server.text("vm_state")
            )));
        }
        "resize" => {
            let wanted =
                argument.get("flavorRef").map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            let flavor = flavors::find(cloud, call, &wanted.unwrap_or_default())
                .map_err(|fail| Fail::bad(fail.message))?;
            if server.object("flavor").is_some_and(|it| it.text("id") == flavor.text("id")) {
                return Err(Fail::bad("When resizing, instances must change flavor!"));
            }
            cloud.set("servers", &id, "old_flavor", server["flavor"].clone());
            cloud.set("servers", &id, "new_flavor", flavor);
        }
        "confirmResize" => {
            record(cloud, call, &id, "confirmResize");
            let state = if server.number("power_state") == 1 { "active" } else { "stopped" };
            set_state(cloud, &id, Some(state), None);
            return Ok(Reply::nothing(204));
        }
        "rebuild" => {
            let image = argument["imageRef"].as_str().unwrap_or_default();
            cloud.get("images", image).ok_or_else(|| Fail::bad("Cannot find image for rebuild"))?;
            for (from, to) in [("name", "name"), ("metadata", "metadata"), ("imageRef", "image")] {
                if let Some(value) = argument.get(from) {
                    cloud.set("servers", &id, to, value.clone());
                }
            }
            set_state(cloud, &id, None, Some("rebuilding"));
            let row = find(cloud, call, &id)?;
            let mut shown = show::detail(cloud, call, &row);
            if !call.at_least(75)
                && let Some(shown) = shown.as_object_mut()
            {
                show::strip(shown);
            }
            shown["adminPass"] = json!(cloud.hex()[..12]);
            let location = format!("{}/v2.1/servers/{id}", call.base);
            reply = Reply::json(202, json!({"server": shown})).with("location", location);
        }
        "createImage" => {
            let image = cloud.uuid();
            let row = object(json!({
                "id": image, "name": argument["name"], "status": "queued", "visibility": "private", "protected": false,
                "container_format": null, "disk_format": null, "min_disk": 0, "min_ram": 0, "size": null,
                "virtual_size": null, "owner": call.caller.project(), "os_hidden": false, "tags": [], "checksum": null,
                "os_hash_algo": null, "os_hash_value": null, "created_at": cloud.stamp(), "updated_at": cloud.stamp(),
                "instance_uuid": id, "image_type": "snapshot",
            }));
            let mut row = row;
            if let Some(base) = cloud.get("images", server.text("image")) {
                let own = base.iter().filter(|(name, _)| !crate::glance::BASE.contains(&name.as_str()));
                row.extend(own.map(|(name, value)| (name.clone(), value.clone())));
                row.insert("base_image_ref".to_owned(), base["id"].clone());
            }
            let name =
                |table: &str, id: &str| cloud.get(table, id).map(|it| it["name"].clone()).unwrap_or_default();
            row.insert(
                "min_disk".to_owned(),
                json!(server.object("flavor").map_or(0, |it| it.number("disk"))),
            );
            row.insert("boot_roles".to_owned(), json!(call.caller.roles.join(",")));
            row.insert("user_id".to_owned(), json!(call.caller.user));
            row.insert("owner_user_name".to_owned(), name("users", &call.caller.user));
            row.insert("owner_project_name".to_owned(), name("projects", call.caller.project()));
            cloud.put("images", row);
            let after = cloud.settings.timings.power * 2;
            cloud.later(after, Task::ImageStatus { id: image.clone(), status: "active".to_owned() });
            reply = match call.at_least(45) {
                true => Reply::json(202, json!({"image_id": image})),
                false => Reply::nothing(202).with("location", format!("{}/images/{image}", call.base)),
            };
        }
        _ => {}
    }
    record(cloud, call, &id, action.word);
    set_state(cloud, &id, None, Some(&task));
    next_step(cloud, &id, action.name, steps(&task).len().max(1), 1);
    Ok(reply)
}

/// Task states that an action goes through, by the first of them.
fn steps(first: &str) -> &'static [&'static str] {
    match first {
        "rebooting" => &["rebooting", "reboot_pending", "reboot_started"],
        "rebooting_hard" => &["rebooting_hard", "reboot_pending_hard", "reboot_started_hard"],
        "rebuilding" => &["rebuilding", "rebuild_block_device_mapping", "rebuild_spawning"],
        "resize_prep" => &["resize_prep", "resize_migrating", "resize_migrated", "resize_finish"],
        "shelving" => &["shelving", "shelving_image_uploading"],
        "unshelving" => &["unshelving", "spawning"],
        _ => &[],
    }
}

/// Plans the step after `done` steps of so many.
fn next_step(cloud: &mut Cloud, id: &str, action: &str, count: usize, done: usize) {
    let after = cloud.settings.timings.power / u32::try_from(count).unwrap_or(1);
    let action = if done < count { format!("{action}:{done}") } else { action.to_owned() };
    cloud.later(after, Task::ServerAction { id: id.to_owned(), action });
}

/// An action takes effect.
pub(crate) fn finish_action(cloud: &mut Cloud, id: &str, action: &str) {
    let Some(server) = cloud.get("servers", id).cloned() else { return };
    if server.text("task_state") == "deleting" || server.text("vm_state") == "deleted" {
        return;
    }
    if let Some((name, done)) = action.split_once(':') {
        let first = match name {
            "reboot" if server.text("task_state").ends_with("_hard") => "rebooting_hard",
            name => ACTIONS.iter().find(|it| it.name == name).map_or("", |it| it.task),
        };
        let (all, done) = (steps(first), done.parse().unwrap_or(usize::MAX));
        let state = all.get(done).copied().or(all.last().copied());
        if state == Some("resize_finish") {
            cloud.set("servers", id, "flavor", server.get("new_flavor").cloned().unwrap_or_default());
        }
        set_state(cloud, id, None, state);
        return next_step(cloud, id, name, all.len(), done.saturating_add(1));
    }
    let again = |cloud: &mut Cloud, step: &str| {
        let after = cloud.settings.timings.power / 2;
        cloud.later(after, Task::ServerAction { id: id.to_owned(), action: step.to_owned() });
    };
    let power = |cloud: &mut Cloud, state: i64| cloud.set("servers", id, "power_state", state);
    match action {
        "os-start" | "unpause" | "resume" => {
            power(cloud, 1);
            set_state(cloud, id, Some("active"), None);
            if action == "os-start" {
                guests::start(cloud, id);
            }
        }
        "os-stop" => {
            power(cloud, 4);
            set_state(cloud, id, Some("stopped"), None);
            guests::stop(cloud, id);
        }
        "pause" => {
            power(cloud, 3);
            set_state(cloud, id, Some("paused"), None);
        }
        "suspend" => {
            power(cloud, 4);
            set_state(cloud, id, Some("suspended"), None);
        }
        "reboot" => {
            power(cloud, 1);
            set_state(cloud, id, Some("active"), None);
            guests::reboot(cloud, id);
        }
        "rebuild" => {
            let now = cloud.naive() + ".000000";
            cloud.set("servers", id, "launched_at", now);
            let state = if server.text("vm_state") == "stopped" { "stopped" } else { "active" };
            set_state(cloud, id, Some(state), None);
            guests::destroy(cloud, id);
            guests::boot(cloud, id);
        }
        "resize" => {
            let flavor = server.get("new_flavor").cloned().unwrap_or_default();
            cloud.set("servers", id, "flavor", flavor);
            let now = cloud.naive() + ".000000";
            cloud.set("servers", id, "launched_at", now);
            set_state(cloud, id, Some("resized"), None);
        }
        "revertResize" => {
            let flavor = server.get("old_flavor").cloned().unwrap_or_default();
            cloud.set("servers", id, "flavor", flavor);
            let state = if server.number("power_state") == 1 { "active" } else { "stopped" };
            set_state(cloud, id, Some(state), None);
        }
        "shelve" => {
            power(cloud, 4);
            set_state(cloud, id, Some("shelved"), Some("shelving_offloading"));
            guests::stop(cloud, id);
            again(cloud, "shelveOffload");
        }
        "shelveOffload" => {
            cloud.set("servers", id, "host", "");
            set_state(cloud, id, Some("shelved_offloaded"), None);
        }
        "unshelve" => {
            if server.text("host").is_empty() {
                let host = cloud
                    .all("hosts")
                    .next()
                    .map(|it| (it.text("id").to_owned(), it.text("zone").to_owned()));
                if let Some((host, zone)) = host {
                    cloud.set("servers", id, "host", host);
                    cloud.set("servers", id, "zone", zone);
                }
            }
            power(cloud, 1);
            set_state(cloud, id, Some("active"), None);
            guests::start(cloud, id);
        }
        _ => set_state(cloud, id, None, None),
    }
}

/// A server powers off by itself; Nova sees it at once.
pub(crate) fn power_off(cloud: &mut Cloud, id: &str) {
    guests::stop(cloud, id);
    cloud.set("servers", id, "power_state", 4);
    set_state(cloud, id, Some("stopped"), None);
}
