//! Lists: filters, sorting, pages, and `fields=`.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{Kind, attributes, bad_request};
use crate::keystone::same_name;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};

const CONTROLS: &[&str] = &[
    "fields",
    "limit",
    "marker",
    "page_reverse",
    "sort_key",
    "sort_dir",
    "tags",
    "tags-any",
    "not-tags",
    "not-tags-any",
    "changed_since",
];
/// Attributes of most resources beside those that a client sets.
const COMMON: &[&str] =
    &["id", "status", "tenant_id", "project_id", "revision_number", "router_id", "shared", "ip_allocation"];

pub(super) fn list(call: &Call, kind: &Kind, mut rows: Vec<Object>) -> Handled {
    let known = attributes::of(kind.singular);
    let unknown: Vec<_> = call
        .query
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| {
            !CONTROLS.contains(name) && !COMMON.contains(name) && !known.iter().any(|it| it.name == *name)
        })
        .collect();
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.iter().map(|name| format!("'{name}'")).collect();
        return Err(bad_request(format!("[{}] is invalid attribute for filtering", names.join(", "))));
    }
    rows.retain(|row| matches(call, row) && tagged(call, row));
    sort(call, &mut rows, known)?;
    let (rows, links) = page(call, kind, rows)?;
    let rows: Vec<Value> = rows.into_iter().map(|row| Value::Object(selected(call, row))).collect();
    let mut body = json!({kind.plural: rows});
    if let Some(links) = links {
        body[format!("{}_links", kind.plural)] = links;
    }
    Ok(Reply::ok(body))
}

/// Only the fields that were asked for.
pub(super) fn selected(call: &Call, mut row: Object) -> Object {
    let fields: Vec<&str> = call.params("fields").flat_map(|names| names.split(',')).collect();
    if !fields.is_empty() {
        row.retain(|name, _| fields.contains(&name.as_str()));
    }
    row
}

fn matches(call: &Call, row: &Object) -> bool {
    let mut names: Vec<&str> = call.query.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    names.into_iter().filter(|name| !CONTROLS.contains(name)).all(|name| {
        let wanted: Vec<&str> = call.params(name).collect();
        match name {
            "fixed_ips" => wanted.iter().all(|wanted| fixed_ip(row, wanted)),
            "security_groups" => wanted
                .iter()
                .flat_map(|it| it.split(','))
                .any(|id| row.texts("security_groups").contains(&id)),
            "tenant_id" => wanted.contains(&row.text("project_id")),
            _ => wanted.iter().any(|wanted| equals(row.get(name).unwrap_or(&Value::Null), wanted)),
        }
    })
}

/// `ip_address=…`, `subnet_id=…` or `ip_address_substr=…`.
fn fixed_ip(row: &Object, wanted: &str) -> bool {
    let Some((field, value)) = wanted.split_once('=') else { return false };
    row.list("fixed_ips").iter().any(|ip| match field {
        "ip_address_substr" => ip["ip_address"].as_str().is_some_and(|held| held.contains(value)),
        _ => ip[field] == value,
    })
}

fn equals(held: &Value, wanted: &str) -> bool {
    match held {
        Value::Null => wanted.is_empty(),
        Value::Bool(held) => attributes::as_bool(&json!(wanted)) == Some(*held),
        Value::Number(held) => held.to_string() == wanted,
        Value::String(held) => same_name(held, wanted),
        _ => false,
    }
}

fn tagged(call: &Call, row: &Object) -> bool {
    let held = row.texts("tags");
    let given = |name: &str| -> Option<Vec<&str>> {
        let all: Vec<&str> =
            call.query.iter().filter(|(n, _)| n == name).flat_map(|(_, v)| v.split(',')).collect();
        (!all.is_empty()).then_some(all)
    };
    given("tags").is_none_or(|tags| tags.iter().all(|tag| held.contains(tag)))
        && given("tags-any").is_none_or(|tags| tags.iter().any(|tag| held.contains(tag)))
        && given("not-tags").is_none_or(|tags| !tags.iter().all(|tag| held.contains(tag)))
        && given("not-tags-any").is_none_or(|tags| !tags.iter().any(|tag| held.contains(tag)))
}

fn sort(call: &Call, rows: &mut [Object], known: &[attributes::Attribute]) -> Result<(), Fail> {
    let keys: Vec<&str> = call.params("sort_key").collect();
    let directions: Vec<&str> = call.params("sort_dir").collect();
    for key in &keys {
        if !COMMON.contains(key) && !known.iter().any(|it| it.name == *key) {
            return Err(bad_request(format!("['{key}'] is invalid attribute for sort keys")));
        }
    }
    if let Some(bad) = directions.iter().find(|it| !matches!(**it, "asc" | "desc")) {
        return Err(bad_request(format!(
            "['{bad}'] is invalid value for sort dirs, valid value is 'asc' and 'desc'"
        )));
    }
    if !directions.is_empty() && directions.len() != keys.len() {
        return Err(bad_request("The number of sort_keys and sort_dirs must be same"));
    }
    rows.sort_by(|one, other| {
        for (index, key) in keys.iter().enumerate() {
            let order = compare(one.get(*key), other.get(*key));
            let order = if directions.get(index) == Some(&"desc") { order.reverse() } else { order };
            if order != Ordering::Equal {
                return order;
            }
        }
        one.text("id").cmp(other.text("id"))
    });
    Ok(())
}

fn compare(one: Option<&Value>, other: Option<&Value>) -> Ordering {
    match (one, other) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Some(Value::String(a)), Some(Value::String(b))) => a.to_lowercase().cmp(&b.to_lowercase()),
        (a, b) => a.map(Value::to_string).cmp(&b.map(Value::to_string)),
    }
}

fn page(call: &Call, kind: &Kind, mut rows: Vec<Object>) -> Result<(Vec<Object>, Option<Value>), Fail> {
    let Some(limit) = call.param("limit") else { return Ok((rows, None)) };
    let limit: usize = limit.parse().map_err(|_| {
        Fail::new(
            400,
            "BadRequest",
            format!("Bad limit request: Limit must be an integer 0 or greater and not '{limit}'."),
        )
    })?;
    if limit == 0 {
        return Ok((rows, None));
    }
    let reverse =
        call.param("page_reverse").and_then(|it| attributes::as_bool(&json!(it))).unwrap_or_default();
    if let Some(marker) = call.param("marker") {
        let at = rows.iter().position(|row| row.text("id") == marker).ok_or_else(|| kind.absent(marker))?;
        if reverse {
            rows.truncate(at);
        } else {
            rows.drain(..=at);
        }
    }
    let more = rows.len() >= limit;
    if reverse && rows.len() > limit {
        rows.drain(..rows.len() - limit);
    } else {
        rows.truncate(limit);
    }
    let kept: Vec<&str> = call
        .raw_query
        .split('&')
        .filter(|pair| !pair.starts_with("marker=") && !pair.starts_with("page_reverse="))
        .collect();
    let base = format!("{}{}?{}", call.base, call.raw_path, kept.join("&"));
    let mut links = Vec::new();
    if let (Some(head), Some(last)) = (rows.first(), rows.last()) {
        if more || reverse {
            links.push(json!({"rel": "next", "href": format!("{base}&marker={}", last.text("id"))}));
        }
        let href = format!("{base}&marker={}&page_reverse=True", head.text("id"));
        links.push(json!({"rel": "previous", "href": href}));
    }
    Ok((rows, (!links.is_empty()).then_some(Value::Array(links))))
}
