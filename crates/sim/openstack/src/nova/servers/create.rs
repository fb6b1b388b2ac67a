//! Creation of servers: what is checked at once.

use serde_json::{Value, json};

use super::super::{body, flavors, groups, keypairs, links, policy, quotas};
use super::{BuildStep, labels, record};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};
use crate::work::Task;

pub(super) fn name_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 255})
}

fn schema(call: &Call) -> Value {
    let uuid = json!({"type": "string", "format": "uuid"});
    let count = json!({"type": ["integer", "string"], "pattern": "^[0-9]*$", "minimum": 1, "minLength": 1});
    let flags = json!([
        true, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", false, "False", "FALSE",
        "false", "0", "OFF", "Off", "off", "NO", "No", "no"
    ]);
    let mut network = json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "uuid": uuid, "fixed_ip": {"type": "string", "format": "ip"},
            "port": {"oneOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]},
        },
    });
    if call.at_least(32) {
        network["properties"]["tag"] = labels::tag_schema();
    }
    let metadata = json!({
        "type": "object", "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": {"type": "string", "maxLength": 255}},
        "additionalProperties": false,
    });
    let device = json!({"type": "object"});
    let mut properties = json!({
        "name": name_schema(),
        "imageRef": {"oneOf": [{"type": "string", "format": "uuid"}, {"type": "string", "maxLength": 0}]},
        "flavorRef": {"type": ["string", "integer"], "minLength": 1},
        "adminPass": {"type": "string"},
        "metadata": metadata,
        "networks": {"type": "array", "items": network},
        "OS-DCF:diskConfig": {"type": "string", "enum": ["AUTO", "MANUAL"]},
        "accessIPv4": {"type": "string", "format": "ipv4"}, "accessIPv6": {"type": "string", "format": "ipv6"},
        "personality": {"type": "array"},
        "availability_zone": {"type": "string", "minLength": 1, "maxLength": 255},
        "block_device_mapping": {"type": "array"}, "block_device_mapping_v2": {"type": "array", "items": device},
        "config_drive": {"enum": flags},
        "key_name": {"type": "string", "minLength": 1, "maxLength": 255},
        "min_count": count, "max_count": count,
        "return_reservation_id": {"enum": flags},
        "security_groups": {"type": "array", "items": {"type": "object", "additionalProperties": false,
            "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 255}}}},
        "user_data": {"type": "string", "format": "base64", "maxLength": 65535},
    });
    let mut required = vec!["name", "flavorRef"];
    if call.at_least(19) {
        properties["description"] = json!({"type": ["string", "null"], "maxLength": 255});
    }
    if call.at_least(37) {
        required.push("networks");
        properties["networks"] = json!({"oneOf": [{"type": "array", "items": network}, {"type": "string", "enum": ["none", "auto"]}]});
    }
    if call.at_least(52) {
        properties["tags"] = json!({"type": "array", "maxItems": 50, "items": labels::tag_schema()});
    }
    if call.at_least(63) {
        properties["trusted_image_certificates"] = json!({"type": ["array", "null"]});
    }
    if call.at_least(67) {
        properties["block_device_mapping_v2"]["items"] = json!({"type": "object"});
    }
    if call.at_least(74) {
        properties["host"] = json!({"type": "string"});
        properties["hypervisor_hostname"] = json!({"type": "string"});
    }
    if call.at_least(90) {
        properties["hostname"] = json!({"type": "string", "minLength": 2, "maxLength": 63});
    }
    let group = json!({"oneOf": [{"type": "string", "format": "uuid"}, {"type": "array", "items": {"type": "string", "format": "uuid"}}]});
    let hints = json!({"type": "object", "properties": {"group": group}});
    json!({
        "type": "object", "required": ["server"],
        "properties": {
            "server": {"type": "object", "required": required, "properties": properties, "additionalProperties": false},
            "os:scheduler_hints": hints, "OS-SCH-HNT:scheduler_hints": hints,
        },
        "additionalProperties": false,
    })
}

fn number(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::String(text)) => matches!(text.to_lowercase().as_str(), "true" | "1" | "on" | "yes"),
        _ => false,
    }
}

pub(super) fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    let body = body(call, &schema(call))?;
    if !call.caller.is_member() {
        return Err(policy("servers:create"));
    }
    let given = body.object("server").cloned().unwrap_or_default();
    let (least, most) = (number(given.get("min_count")), number(given.get("max_count")));
    let least = least.unwrap_or(1);
    let most = most.unwrap_or(least);
    if least > most {
        return Err(Fail::bad("min_count must be <= max_count"));
    }
    let hints = body
        .object("os:scheduler_hints")
        .or(body.object("OS-SCH-HNT:scheduler_hints"))
        .cloned()
        .unwrap_or_default();
    let zone = given.text("availability_zone");
    if zone.contains(':') && !call.caller.is_admin() {
        return Err(policy("servers:create:forced_host"));
    }
    let (zone, forced) = zone.split_once(':').unwrap_or((zone, ""));
    if !zone.is_empty() && !cloud.all("hosts").any(|host| host.text("zone") == zone) {
        return Err(Fail::bad("The requested availability zone is not available"));
    }
    let networks = networks(cloud, call, &given)?;
    let flavor_id =
        given.get("flavorRef").map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    let flavor =
        flavors::find(cloud, call, &flavor_id.unwrap_or_default()).map_err(|fail| Fail::bad(fail.message))?;
    let devices = given.list("block_device_mapping_v2").to_vec();
    let image = image(cloud, call, &given, &flavor, &devices)?;
    volumes(cloud, call, &given, &devices)?;
    if let Some(key) = given.get("key_name").and_then(Value::as_str) {
        keypairs::find(cloud, &call.caller.user, key).map_err(|_| Fail::bad("Invalid key_name provided."))?;
    }
    let security_groups = security_groups(cloud, call, &given)?;
    let group = match hints.get("group") {
        Some(Value::String(id)) => {
            groups::find(cloud, call, id).map_err(|fail| Fail::bad(fail.message))?.text("id").to_owned()
        }
        _ => String::new(),
    };
    quotas::check_metadata(cloud, call, given.object("metadata").map_or(0, Object::len))?;
    quotas::check_servers(cloud, call, most, &flavor)?;
    if !group.is_empty() {
        quotas::check_members(cloud, call, &group, most)?;
    }
    let reservation = format!("r-{}", &cloud.hex()[..8]);
    let mut first = None;
    for index in 0..most {
        let name = given.text("name");
        let name = if most > 1 { format!("{name}-{}", index + 1) } else { name.to_owned() };
        let id = cloud.uuid();
        let count = cloud.all("servers").count() + 1;
        let hostname: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' })
            .collect::<String>()
            .to_lowercase();
        let row = object(json!({
            "id": id, "name": name, "tenant_id": call.caller.project(), "user_id": call.caller.user,
            "created": cloud.stamp(), "updated": cloud.stamp(), "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})),
            "flavor": flavor, "image": image.as_ref().map_or("", |it| it.text("id")),
            "image_properties": image.as_ref().map(image_properties), "_kubernetes": kubernetes(cloud, image.as_ref(), &devices),
            "key_name": given.get("key_name").cloned().unwrap_or_default(), "config_drive": is_true(given.get("config_drive")),
            "_user_data": given.get("user_data").cloned().unwrap_or_default(),
            "description": match call.at_least(19) { true => given.get("description").cloned().unwrap_or_default(), false => json!(name) },
            "tags": given.get("tags").cloned().unwrap_or_else(|| json!([])), "security_groups": security_groups,
            "accessIPv4": given.text("accessIPv4"), "accessIPv6": given.text("accessIPv6"),
            "OS-DCF:diskConfig": given.get("OS-DCF:diskConfig").cloned().unwrap_or_else(|| json!("MANUAL")),
            "vm_state": "building", "task_state": "scheduling", "power_state": 0, "locked": false, "locked_reason": null,
            "host": "", "zone": "", "wanted_zone": given.get("availability_zone").map(|_| zone), "forced_host": forced,
            "group": group, "hints": hints, "networks": networks, "ports": [], "volumes": [], "devices": devices,
            "launched_at": null, "terminated_at": null, "actions": [], "reservation": reservation,
            "instance_name": format!("instance-{count:08x}"), "hostname": given.get("hostname").cloned().unwrap_or_else(|| json!(hostname)),
        }));
        cloud.put("servers", row);
        reserve(cloud, &id, &networks);
        crate::cinder::reserve_devices(cloud, &id);
        record(cloud, call, &id, "create");
        let after = cloud.settings.timings.schedule;
        cloud.later(after, Task::ServerBuild { id: id.clone(), step: BuildStep::Schedule });
        first.get_or_insert(id);
    }
    if is_true(given.get("return_reservation_id")) {
        return Ok(Reply::json(202, json!({"reservation_id": reservation})));
    }
    let id = first.unwrap_or_default();
    let shown: Vec<Value> = security_groups.iter().map(|name| json!({"name": name})).collect();
    let password = given.get("adminPass").cloned().unwrap_or_else(|| json!(cloud.hex()[..12]));
    let server = json!({
        "id": id, "links": links(call, "servers", &id), "OS-DCF:diskConfig": given.get("OS-DCF:diskConfig").cloned().unwrap_or_else(|| json!("MANUAL")),
        "security_groups": shown, "adminPass": password,
    });
    let location = format!("{}/v2.1/servers/{id}", call.base);
    Ok(Reply::json(202, json!({"server": server})).with("location", location))
}

/// Ports that a server was created with are its own from now on.
fn reserve(cloud: &mut Cloud, server: &str, networks: &[Value]) {
    for port in networks.iter().filter_map(|it| it["port"].as_str()) {
        cloud.set("ports", port, "device_id", server);
    }
}

fn networks(cloud: &Cloud, call: &Call, given: &Object) -> Result<Vec<Value>, Fail> {
    let visible = |network: &&Object| {
        call.caller.is_admin()
            || network.text("project_id") == call.caller.project()
            || network.flag("shared")
            || network.flag("router:external")
            || cloud.all("rbac_policies").any(|it| {
                it.text("object_id") == network.text("id")
                    && matches!(it.text("target_tenant"), target if target == "*" || target == call.caller.project())
            })
    };
    let asked = match given.get("networks") {
        Some(Value::String(word)) if word == "none" => return Ok(Vec::new()),
        Some(Value::Array(asked)) if !asked.is_empty() => asked.clone(),
        _ => {
            let own: Vec<&Object> = cloud
                .all("networks")
                .filter(|it| it.text("project_id") == call.caller.project() || it.flag("shared"))
                .filter(|it| !it.flag("router:external"))
                .collect();
            match own.as_slice() {
                [] => return Ok(Vec::new()),
                [one] => vec![json!({"uuid": one["id"]})],
                _ => {
                    let text = "Multiple possible networks found, use a Network ID to be more specific.";
                    return Err(Fail::conflict(text));
                }
            }
        }
    };
    for ask in &asked {
        if let Some(id) = ask["port"].as_str() {
            let port = cloud
                .get("ports", id)
                .filter(|it| call.caller.is_admin() || it.text("project_id") == call.caller.project());
            let port = port.ok_or_else(|| Fail::bad(format!("Port id {id} could not be found.")))?;
            if !port.text("device_id").is_empty() {
                return Err(Fail::conflict(format!("Port {id} is still in use.")));
            }
            if port.list("fixed_ips").is_empty() {
                return Err(Fail::bad(format!("Port {id} requires a FixedIP in order to be used.")));
            }
            continue;
        }
        let Some(id) = ask["uuid"].as_str() else {
            return Err(Fail::bad("Bad networks format: network uuid is not in proper format (None)"));
        };
        let network = cloud.get("networks", id).filter(visible);
        let network = network.ok_or_else(|| Fail::bad(format!("Network {id} could not be found.")))?;
        if !cloud.all("subnets").any(|it| it.text("network_id") == network.text("id")) {
            return Err(Fail::bad(format!("Network {id} requires a subnet in order to boot instances on.")));
        }
        if let Some(address) = ask["fixed_ip"].as_str() {
            let holder = cloud.all("ports").find(|it| {
                it.text("network_id") == id
                    && it.list("fixed_ips").iter().any(|ip| ip["ip_address"] == address)
            });
            if let Some(holder) = holder {
                return Err(Fail::bad(format!(
                    "Fixed IP address {address} is already in use on instance {}.",
                    holder.text("device_id")
                )));
            }
        }
    }
    Ok(asked)
}

fn image(
    cloud: &Cloud,
    call: &Call,
    given: &Object,
    flavor: &Object,
    devices: &[Value],
) -> Result<Option<Object>, Fail> {
    let id = given.text("imageRef");
    let boots = devices.iter().any(|it| number(it.get("boot_index")) == Some(0));
    if id.is_empty() {
        if !boots && devices.is_empty() {
            return Err(Fail::bad("Invalid imageRef provided."));
        }
        return Ok(None);
    }
    let seen = cloud.get("images", id).filter(|it| {
        it.text("owner") == call.caller.project()
            || matches!(it.text("visibility"), "public" | "community")
            || call.caller.is_admin()
            || cloud.all("image_members").any(|member| {
                member.text("image_id") == id && member.text("member_id") == call.caller.project()
            })
    });
    let image = seen.cloned().ok_or_else(|| Fail::bad("Can not find requested image"))?;
    if image.text("status") != "active" {
        return Err(Fail::bad(format!("Image {id} is not active.")));
    }
    if image.number("min_ram") > flavor.number("ram") {
        return Err(Fail::bad("Flavor's memory is too small for requested image."));
    }
    let is_volume =
        |it: &Value| number(it.get("boot_index")) == Some(0) && it["destination_type"] == "volume";
    if devices.iter().any(is_volume) {
        return Ok(Some(image));
    }
    // As large as the image, which the scheduler does not count: the policy is an administrator's.
    if flavor.number("disk") == 0 && !call.caller.is_admin() {
        return Err(Fail::forbidden("Only volume-backed servers are allowed for flavors with zero disk."));
    }
    if flavor.number("disk") > 0 && image.number("min_disk") > flavor.number("disk") {
        return Err(Fail::bad(format!(
            "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is {} bytes, minimum size is {} bytes.",
            flavor.number("disk") << 30,
            image.number("min_disk") << 30
        )));
    }
    Ok(Some(image))
}

/// Kubernetes version on the disk that boots.
fn kubernetes(cloud: &Cloud, image: Option<&Object>, devices: &[Value]) -> Value {
    if let Some(image) = image {
        return image.get("_kubernetes").cloned().unwrap_or_default();
    }
    let root = devices.iter().find(|it| number(it.get("boot_index")) == Some(0));
    let Some(root) = root else { return Value::Null };
    let id = root["uuid"].as_str().unwrap_or_default();
    let source = match root["source_type"].as_str() {
        Some("image") => cloud.get("images", id),
        _ => cloud.get("volumes", id).and_then(|it| cloud.get("images", it.text("_image"))),
    };
    source.and_then(|it| it.get("_kubernetes")).cloned().unwrap_or_default()
}

/// What a server shows of its image's properties.
pub(super) fn image_properties(image: &Object) -> Value {
    let own: Object = image
        .iter()
        .filter(|(name, _)| {
            !name.starts_with('_')
                && !name.starts_with("owner_specified")
                && !crate::glance::BASE.contains(&name.as_str())
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Value::Object(own)
}

fn volumes(cloud: &Cloud, call: &Call, given: &Object, devices: &[Value]) -> Result<(), Fail> {
    for device in devices {
        let id = device["uuid"].as_str().unwrap_or_default();
        let boots = number(device.get("boot_index")) == Some(0);
        match device["source_type"].as_str() {
            Some("volume") => {
                let volume = cloud
                    .get("volumes", id)
                    .filter(|it| it.text("_project") == call.caller.project() || call.caller.is_admin());
                let volume = volume.ok_or_else(|| Fail::bad(format!("Volume {id} could not be found.")))?;
                if boots && volume.text("bootable") != "true" {
                    return Err(Fail::bad(format!("Block Device {id} is not bootable.")));
                }
                if volume.text("status") != "available" {
                    return Err(Fail::bad(format!(
                        "Invalid volume: volume '{id}' status must be 'available'. Currently in '{}'",
                        volume.text("status")
                    )));
                }
            }
            Some("image") if cloud.get("images", id).is_none() => {
                return Err(Fail::bad(format!("Block Device Mapping is Invalid: failed to get image {id}.")));
            }
            Some("image" | "blank")
                if device["destination_type"] == "volume" && number(device.get("volume_size")).is_none() =>
            {
                return Err(Fail::bad(
                    "Images with destination_type 'volume' need to have a non-zero size specified",
                ));
            }
            _ => {}
        }
    }
    let roots = devices.iter().filter(|it| number(it.get("boot_index")) == Some(0)).count();
    if roots == 0 && !devices.is_empty() && given.text("imageRef").is_empty() {
        return Err(Fail::bad(
            "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping combination is not valid.",
        ));
    }
    Ok(())
}

fn security_groups(cloud: &Cloud, call: &Call, given: &Object) -> Result<Vec<String>, Fail> {
    let asked = given.list("security_groups");
    if asked.is_empty() {
        return Ok(vec!["default".to_owned()]);
    }
    let project = call.caller.project();
    let mut names = Vec::new();
    for group in asked {
        let name = group["name"].as_str().unwrap_or_default();
        if name != "default" {
            let found = cloud.all("security_groups").find(|it| {
                it.text("project_id") == project && (it.text("name") == name || it.text("id") == name)
            });
            if found.is_none() {
                return Err(Fail::bad(format!("Security group {name} not found for project {project}.")));
            }
        }
        names.push(name.to_owned());
    }
    Ok(names)
}
