//! Lists of volumes and snapshots.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{absent, snapshots, volumes};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};

const KNOWN: &[&str] = &[
    "limit",
    "marker",
    "offset",
    "sort",
    "sort_key",
    "sort_dir",
    "all_tenants",
    "with_count",
    "name",
    "status",
    "metadata",
    "bootable",
    "migration_status",
    "availability_zone",
    "group_id",
    "size",
    "glance_metadata",
    "volume_id",
    "user_id",
    "project_id",
    "id",
    "created_at",
    "updated_at",
    "consumes_quota",
    "use_quota",
];
const SORT_KEYS: &[&str] = &[
    "id",
    "name",
    "status",
    "size",
    "created_at",
    "updated_at",
    "availability_zone",
    "bootable",
    "display_name",
    "project_id",
    "user_id",
    "host",
    "volume_type_id",
    "launched_at",
    "migration_status",
];

pub(super) fn list(cloud: &Cloud, call: &Call, kind: &'static str, detail: bool) -> Handled {
    let limit = match call.param("limit") {
        None => 1000,
        Some(text) => {
            let limit: i64 = text.parse().map_err(|_| Fail::bad("limit param must be an integer"))?;
            usize::try_from(limit).map_err(|_| Fail::bad("limit param must be positive"))?.min(1000)
        }
    };
    if call.at_least(31) {
        let unknown: Vec<&str> =
            call.query.iter().map(|(name, _)| name.as_str()).filter(|name| !KNOWN.contains(name)).collect();
        if !unknown.is_empty() {
            return Err(Fail::bad(format!(
                "Invalid filters {} are found in query options.",
                unknown.join(", ")
            )));
        }
    }
    let everyone = call.caller.is_admin() && call.param("all_tenants").is_some_and(|it| it != "0");
    let project = call.param("project_id").filter(|_| everyone);
    let metadata: Option<Object> =
        call.param("metadata").and_then(|text| serde_json::from_str(&text.replace('\'', "\"")).ok());
    let matches = |it: &Object| {
        let equal =
            |name: &str| call.param(name).is_none_or(|wanted| it.text(name).eq_ignore_ascii_case(wanted));
        (everyone || it.text("_project") == call.caller.project())
            && project.is_none_or(|project| it.text("_project") == project)
            && ["name", "status", "bootable", "availability_zone", "volume_id", "user_id", "id"]
                .iter()
                .all(|name| equal(name))
            && call.param("size").is_none_or(|wanted| it.number("size").to_string() == wanted)
            && metadata.as_ref().is_none_or(|wanted| {
                wanted.iter().all(|(key, value)| {
                    it.object("metadata").is_some_and(|held| held.get(key) == Some(value))
                })
            })
    };
    let mut rows: Vec<&Object> = cloud.all(kind).filter(|it| matches(it)).collect();
    rows.reverse();
    sort(call, &mut rows)?;
    let count = rows.len();
    if let Some(marker) = call.param("marker") {
        let at = rows.iter().position(|it| it.text("id") == marker).ok_or_else(|| absent(kind, marker))?;
        rows.drain(..=at);
    }
    if let Some(offset) = call.param("offset").and_then(|it| it.parse::<usize>().ok()) {
        rows.drain(..offset.min(rows.len()));
    }
    let full = call.param("limit").is_some() && limit > 0 && rows.len() >= limit;
    rows.truncate(limit);
    let shown: Vec<Value> = rows
        .iter()
        .map(|it| match (kind, detail) {
            ("volumes", true) => volumes::detail(call, it),
            ("volumes", false) => volumes::brief(call, it),
            (_, true) => snapshots::detail(call, it),
            (_, false) => snapshots::basic(call, it),
        })
        .collect();
    let mut body = json!({kind: shown});
    if let Some(last) = rows.last().filter(|_| full) {
        let query = call.page_query(last.text("id")).replace(':', "%3A");
        let tail = call.raw_path.rsplit('/').next().unwrap_or(kind);
        let below = if tail == "detail" { format!("{kind}/detail") } else { kind.to_owned() };
        let href = format!("{}/v3/{}/{below}?{query}", call.base, call.caller.project());
        body[format!("{kind}_links")] = json!([{"rel": "next", "href": href}]);
    }
    if call.at_least(45)
        && call.param("with_count").is_some_and(|it| it.eq_ignore_ascii_case("true") || it == "1")
    {
        body["count"] = json!(count);
    }
    Ok(Reply::ok(body))
}

fn sort(call: &Call, rows: &mut [&Object]) -> Result<(), Fail> {
    let mut keys: Vec<(String, bool)> = Vec::new();
    if let Some(sort) = call.param("sort") {
        for part in sort.split(',') {
            let (key, direction) = part.split_once(':').unwrap_or((part, "desc"));
            keys.push((key.to_owned(), direction == "asc"));
        }
    } else if let Some(key) = call.param("sort_key") {
        keys.push((key.to_owned(), call.param("sort_dir") == Some("asc")));
    }
    if keys.iter().any(|(key, _)| !SORT_KEYS.contains(&key.as_str())) {
        return Err(Fail::bad("Invalid input received: Invalid sort key"));
    }
    if keys.is_empty() {
        return Ok(());
    }
    rows.sort_by(|a, b| {
        for (key, ascending) in &keys {
            let order = match (a.get(key), b.get(key)) {
                (Some(Value::Number(x)), Some(Value::Number(y))) => x.as_i64().cmp(&y.as_i64()),
                _ => a.text(key).to_lowercase().cmp(&b.text(key).to_lowercase()),
            };
            if order != Ordering::Equal {
                return if *ascending { order } else { order.reverse() };
            }
        }
        a.text("id").cmp(b.text("id"))
    });
    Ok(())
}
