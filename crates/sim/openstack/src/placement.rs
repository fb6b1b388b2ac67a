//! Placement 1.39: resource providers and what fits on them.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::nova::versions;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

/// Virtual processors per real one.
const CPU_RATIO: i64 = 4;

pub(crate) fn versions(call: &Call) -> Option<Reply> {
    call.path.is_empty().then(|| {
        let version = json!({
            "id": "v1.0", "max_version": "1.39", "min_version": "1.0", "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        });
        let reply = Reply::ok(json!({"versions": [version]}));
        reply.with("openstack-api-version", "placement 1.0").with("vary", "openstack-api-version")
    })
}

pub(crate) fn handle(cloud: &mut Cloud, call: &mut Call) -> Reply {
    if let Some(text) = versions::asked(call, "placement").filter(|it| it != "latest") {
        let parsed: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        let Some([major, minor]) = parsed.as_deref() else {
            let bad = text.split('.').find(|part| part.parse::<u32>().is_err()).unwrap_or(&text);
            let why = format!(
                "Invalid microversion: invalid version string: {text}; invalid literal for int() with base 10: '{bad}'"
            );
            return refuse(call, Fail::bad(why));
        };
        if *major != 1 || *minor > 39 {
            let text = format!("Unacceptable version header: {text}");
            return refuse(call, Fail::new(406, "", text));
        }
        call.version = (*major, *minor);
    } else {
        let latest = versions::asked(call, "placement").is_some();
        call.version = if latest { (1, 39) } else { (1, 0) };
    }
    let version = format!("placement {}.{}", call.version.0, call.version.1);
    let reply = route(cloud, call).unwrap_or_else(|fail| refuse(call, fail));
    let reply = reply.with("openstack-api-version", version);
    if !matches!(reply.status, 403 | 404) { reply.with("vary", "openstack-api-version") } else { reply }
}

/// Errors in Placement's shape.
pub(crate) fn refuse(call: &Call, fail: Fail) -> Reply {
    let (title, text) = match fail.status {
        400 => (
            "Bad Request",
            "The server could not comply with the request since it is either malformed or otherwise incorrect.",
        ),
        403 => ("Forbidden", "Access was denied to this resource."),
        404 => ("Not Found", "The resource could not be found."),
        406 => ("Not Acceptable", "The resource could not be generated that was acceptable to your browser."),
        409 => ("Conflict", "There was a conflict when trying to complete your request."),
        _ => (
            "Internal Server Error",
            "The server has either erred or is incapable of performing the requested operation.",
        ),
    };
    let mut error = json!({
        "status": fail.status, "title": title, "detail": format!("{text}\n\n {}  ", fail.message),
        "request_id": call.request_id,
    });
    if call.at_least(23) {
        error["code"] = json!("placement.undefined_code");
    }
    if fail.status == 406 {
        error["max_version"] = json!("1.39");
        error["min_version"] = json!("1.0");
    }
    Reply::json(fail.status, json!({"errors": [error]}))
}

fn denied(rule: &str) -> Fail {
    Fail::forbidden(format!("Policy does not allow placement:{rule} to be performed."))
}

/// Capacity and use of a host, by resource class.
fn inventory(cloud: &Cloud, host: &Object) -> [(&'static str, i64, i64); 3] {
    let used = crate::nova::used_on(cloud, host.text("id"));
    [
        ("VCPU", host.number("vcpus") * CPU_RATIO, used.0),
        ("MEMORY_MB", host.number("memory"), used.1),
        ("DISK_GB", host.number("disk"), used.2),
    ]
}

fn provider(call: &Call, host: &Object) -> Value {
    let id = host.text("uuid");
    let mut words = vec!["inventories", "usages"];
    if call.at_least(1) {
        words.push("aggregates");
    }
    if call.at_least(6) {
        words.push("traits");
    }
    if call.at_least(11) {
        words.push("allocations");
    }
    let mut links = vec![json!({"rel": "self", "href": format!("/resource_providers/{id}")})];
    links.extend(
        words.iter().map(|word| json!({"rel": word, "href": format!("/resource_providers/{id}/{word}")})),
    );
    let mut shown = json!({"uuid": id, "name": host["id"], "generation": 1, "links": links});
    if call.at_least(14) {
        shown["parent_provider_uuid"] = Value::Null;
        shown["root_provider_uuid"] = json!(id);
    }
    shown
}

fn route(cloud: &Cloud, call: &Call) -> Handled {
    let admin = call.caller.is_admin();
    match (call.method.as_str(), call.segments().as_slice()) {
        ("GET", ["resource_providers"]) => {
            if !admin {
                return Err(denied("resource_providers:list"));
            }
            let all: Vec<Value> = cloud.all("hosts").map(|host| provider(call, host)).collect();
            Ok(Reply::ok(json!({"resource_providers": all})))
        }
        ("GET", ["resource_providers", id, rest @ ..]) => {
            if !admin {
                return Err(denied("resource_providers:show"));
            }
            let found = cloud.all("hosts").find(|host| host.text("uuid") == *id);
            let host =
                found.ok_or_else(|| Fail::missing(format!("No resource provider with uuid {id} found")))?;
            let inventory = inventory(cloud, host);
            match rest {
                [] => Ok(Reply::ok(provider(call, host))),
                ["inventories"] => {
                    let all: Object = inventory
                        .iter()
                        .map(|(class, total, _)| ((*class).to_owned(), json!({"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": 1.0})))
                        .collect();
                    Ok(Reply::ok(json!({"resource_provider_generation": 1, "inventories": all})))
                }
                ["usages"] => {
                    let all: Object =
                        inventory.iter().map(|(class, _, used)| ((*class).to_owned(), json!(used))).collect();
                    Ok(Reply::ok(json!({"resource_provider_generation": 1, "usages": all})))
                }
                _ => Err(Fail::missing("")),
            }
        }
        ("GET", ["usages"]) => usages(cloud, call),
        ("GET", ["allocation_candidates"]) => {
            if !admin {
                return Err(denied("allocation_candidates:list"));
            }
            candidates(cloud, call)
        }
        _ => Err(Fail::missing("")),
    }
}

fn usages(cloud: &Cloud, call: &Call) -> Handled {
    let project = call.param("project_id").unwrap_or_default();
    if project != call.caller.project() && !call.caller.is_admin() {
        return Err(denied("usages"));
    }
    let (mut vcpus, mut memory, mut disk) = (0, 0, 0);
    for server in
        cloud.all("servers").filter(|it| it.text("tenant_id") == project && !it.text("host").is_empty())
    {
        let flavor = server.object("flavor").cloned().unwrap_or_default();
        vcpus += flavor.number("vcpus");
        memory += flavor.number("ram");
        disk += if server.text("image").is_empty() { 0 } else { flavor.number("disk") };
    }
    let usages = match vcpus {
        0 => json!({}),
        _ => json!({"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": disk}),
    };
    Ok(Reply::ok(json!({"usages": usages})))
}

fn candidates(cloud: &Cloud, call: &Call) -> Handled {
    let mut wanted: Vec<(String, i64)> = Vec::new();
    for part in call.param("resources").unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
        let (class, amount) = part.split_once(':').unwrap_or((part, ""));
        if !matches!(class, "VCPU" | "MEMORY_MB" | "DISK_GB") {
            return Err(Fail::bad(format!(
                "Invalid resource class in resources parameter: No such resource class {class}."
            )));
        }
        let amount = amount.parse().map_err(|_| {
            Fail::bad(format!("Requested resource {class} expected positive integer amount. Got: {amount}."))
        })?;
        wanted.push((class.to_owned(), amount));
    }
    let (mut requests, mut summaries) = (Vec::new(), Object::new());
    for host in cloud.all("hosts") {
        let inventory = inventory(cloud, host);
        let fits = wanted.iter().all(|(class, amount)| {
            inventory.iter().any(|(held, capacity, used)| held == class && used + amount <= *capacity)
        });
        if !fits {
            continue;
        }
        let id = host.text("uuid");
        let resources: Object = wanted.iter().map(|(class, amount)| (class.clone(), json!(amount))).collect();
        let mut request = json!({"allocations": {id: {"resources": resources}}});
        if call.at_least(34) {
            request["mappings"] = json!({"": [id]});
        }
        requests.push(request);
        let held: Object = inventory
            .iter()
            .map(|(class, capacity, used)| ((*class).to_owned(), json!({"capacity": capacity, "used": used})))
            .collect();
        let mut summary = object(json!({"resources": held}));
        if call.at_least(17) {
            summary.insert(
                "traits".to_owned(),
                json!(["COMPUTE_NODE", "COMPUTE_VOLUME_MULTI_ATTACH", "COMPUTE_NET_ATTACH_INTERFACE"]),
            );
        }
        if call.at_least(29) {
            summary.insert("parent_provider_uuid".to_owned(), Value::Null);
            summary.insert("root_provider_uuid".to_owned(), json!(id));
        }
        summaries.insert(id.to_owned(), Value::Object(summary));
    }
    Ok(Reply::ok(json!({"allocation_requests": requests, "provider_summaries": summaries})))
}
