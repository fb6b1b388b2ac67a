//! Lists of images.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{denied, show};
use crate::cloud::Cloud;
use crate::keystone::same_name;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};

const CONTROLS: &[&str] = &[
    "limit",
    "marker",
    "sort",
    "sort_key",
    "sort_dir",
    "fields",
    "member_status",
    "os_hidden",
    "tag",
    "visibility",
];
const SORT_KEYS: &[&str] =
    &["name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at"];

pub(super) fn list(cloud: &Cloud, call: &Call) -> Handled {
    if call.caller.project.is_none() && !call.caller.is_admin() {
        return Err(denied("get_images"));
    }
    let limit = match call.param("limit") {
        None => 25,
        Some(text) => {
            let limit: i64 = text.parse().map_err(|_| Fail::bad("limit param must be an integer"))?;
            usize::try_from(limit).map_err(|_| Fail::bad("limit param must be positive"))?
        }
    };
    let visibility = call.param("visibility");
    if let Some(word) =
        visibility.filter(|it| !matches!(*it, "public" | "private" | "shared" | "community" | "all"))
    {
        return Err(Fail::bad(format!("Invalid visibility value: {word}")));
    }
    let hidden = call.param("os_hidden").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    let project = call.caller.project();
    let wanted_member = call.param("member_status").unwrap_or("accepted");
    let shown_to = |it: &Object| {
        let own = it.text("owner") == project;
        let shared = it.text("visibility") == "shared"
            && cloud.all("image_members").any(|member| {
                member.text("image_id") == it.text("id")
                    && member.text("member_id") == project
                    && (wanted_member == "all" || member.text("status") == wanted_member)
            });
        match visibility {
            Some("all") => {
                own || shared
                    || matches!(it.text("visibility"), "public" | "community")
                    || call.caller.is_admin()
            }
            Some(word) => {
                it.text("visibility") == word
                    && (own || shared || matches!(word, "public" | "community") || call.caller.is_admin())
            }
            None => own || shared || it.text("visibility") == "public" || call.caller.is_admin(),
        }
    };
    let mut rows: Vec<Object> = cloud
        .all("images")
        .filter(|it| it.flag("os_hidden") == hidden && shown_to(it) && matches(call, it))
        .cloned()
        .collect();
    sort(call, &mut rows)?;
    if let Some(marker) = call.param("marker") {
        let at = rows.iter().position(|it| it.text("id") == marker);
        let at = at.ok_or_else(|| Fail::bad(format!("No image found with ID {marker}")))?;
        rows.drain(..=at);
    }
    let full = rows.len() >= limit && limit > 0;
    rows.truncate(limit);
    // Of a repeated parameter the links keep the last.
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (name, value) in call.query.iter().filter(|(name, _)| name != "marker") {
        match pairs.iter_mut().find(|(held, _)| held == name) {
            Some(held) => held.1.clone_from(value),
            None => pairs.push((name.clone(), value.clone())),
        }
    }
    let encode = |text: &str| percent_encoding::utf8_percent_encode(text, QUERY).to_string();
    let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let query = query.join("&");
    let first = if query.is_empty() { "/v2/images".to_owned() } else { format!("/v2/images?{query}") };
    let mut body = json!({"first": first, "schema": "/v2/schemas/images"});
    if let Some(last) = rows.last().filter(|_| full) {
        let more = if query.is_empty() { String::new() } else { format!("{query}&") };
        body["next"] = json!(format!("/v2/images?{more}marker={}", last.text("id")));
    }
    body["images"] = rows.iter().map(|it| Value::Object(show(it))).collect();
    Ok(Reply::ok(body))
}

const QUERY: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn matches(call: &Call, it: &Object) -> bool {
    let tags = it.texts("tags");
    call.params("tag").all(|tag| tags.contains(&tag))
        && call.query.iter().filter(|(name, _)| !CONTROLS.contains(&name.as_str())).all(|(name, wanted)| {
            match name.as_str() {
                "size_min" => {
                    wanted.parse::<i64>().is_ok_and(|least| it.has("size") && it.number("size") >= least)
                }
                "size_max" => {
                    wanted.parse::<i64>().is_ok_and(|most| it.has("size") && it.number("size") <= most)
                }
                "created_at" | "updated_at" => compare_time(it.text(name), wanted),
                _ => {
                    let held = match it.get(name) {
                        Some(Value::String(text)) => text.clone(),
                        Some(Value::Null) | None => return false,
                        Some(Value::Bool(flag)) => return flag.to_string() == wanted.to_lowercase(),
                        Some(other) => other.to_string(),
                    };
                    match wanted.strip_prefix("in:") {
                        Some(list) => list.split(',').any(|one| same_name(&held, one.trim_matches('"'))),
                        None => same_name(&held, wanted),
                    }
                }
            }
        })
}

fn compare_time(held: &str, wanted: &str) -> bool {
    let (operator, time) = match wanted.split_once(':') {
        Some((operator @ ("gt" | "gte" | "lt" | "lte" | "eq" | "neq"), time)) => (operator, time),
        _ => ("eq", wanted),
    };
    let order = held.cmp(time);
    match operator {
        "gt" => order == Ordering::Greater,
        "gte" => order != Ordering::Less,
        "lt" => order == Ordering::Less,
        "lte" => order != Ordering::Greater,
        "neq" => order != Ordering::Equal,
        _ => order == Ordering::Equal,
    }
}

fn sort(call: &Call, rows: &mut [Object]) -> Result<(), Fail> {
    let mut keys: Vec<(String, bool)> = Vec::new();
    if let Some(sort) = call.param("sort") {
        for part in sort.split(',') {
            let (key, direction) = part.split_once(':').unwrap_or((part, "desc"));
            keys.push((key.to_owned(), direction == "asc"));
        }
    } else {
        let directions: Vec<&str> = call.params("sort_dir").collect();
        for (index, key) in call.params("sort_key").enumerate() {
            let direction = directions.get(index).or(directions.first()).copied().unwrap_or("desc");
            keys.push((key.to_owned(), direction == "asc"));
        }
    }
    for (key, _) in &keys {
        if !SORT_KEYS.contains(&key.as_str()) {
            let known = SORT_KEYS.join(", ");
            return Err(Fail::bad(format!(
                "Invalid sort key: {key}. It must be one of the following: {known}."
            )));
        }
    }
    if keys.is_empty() {
        rows.reverse();
        return Ok(());
    }
    rows.sort_by(|a, b| {
        for (key, ascending) in &keys {
            let order = match (a.get(key), b.get(key)) {
                (Some(Value::Number(x)), Some(Value::Number(y))) => x.as_i64().cmp(&y.as_i64()),
                (Some(x), Some(y)) => {
                    x.as_str().map(str::to_lowercase).cmp(&y.as_str().map(str::to_lowercase))
                }
                _ => Ordering::Equal,
            };
            if order != Ordering::Equal {
                return if *ascending { order } else { order.reverse() };
            }
        }
        Ordering::Equal
    });
    Ok(())
}
