//! Tags of resources.

use serde_json::{Value, json};

use super::{Fail, Kind, internal, invalid_input, policy, touch};
use crate::cloud::Cloud;
use crate::table::Fields as _;
use crate::wire::{Body, Call, Handled, Reply, repr};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, kind: &Kind, id: &str, rest: &[&str]) -> Handled {
    let write = call.method != "GET";
    let Some(found) = cloud.get(kind.plural, id).cloned() else {
        return Err(if write { internal() } else { kind.absent(id) });
    };
    if !super::sees(cloud, call, kind.singular, &found) || (write && !call.caller.is_member()) {
        if write {
            let verb = if call.method == "DELETE" { "delete" } else { "update" };
            return Err(policy(&format!("rule:{verb}_{}:tags", kind.singular)));
        }
        return Err(kind.absent(id));
    }
    let mut tags: Vec<String> = found.texts("tags").into_iter().map(str::to_owned).collect();
    let reply = match (call.method.as_str(), rest) {
        ("GET", []) => return Ok(Reply::ok(json!({"tags": tags}))),
        ("GET", [tag]) => {
            return match tags.iter().any(|held| held == tag) {
                true => Ok(Reply::empty(204)),
                false => Err(absent(tag)),
            };
        }
        ("PUT", []) => {
            let body = super::attributes::read(call)?;
            let given = body.get("tags").ok_or_else(|| invalid_input("Invalid tags body"))?;
            let Value::Array(list) = given else {
                return Err(invalid_input(format!("{} is not a list", repr(given))));
            };
            for (index, tag) in list.iter().enumerate() {
                if list[..index].contains(tag) {
                    return Err(invalid_input(format!("Duplicate items in the list: {}", repr(tag))));
                }
                check(tag)?;
            }
            tags = list.iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
            Reply::ok(json!({"tags": tags}))
        }
        ("PUT", [tag]) => {
            check(&json!(tag))?;
            if !tags.iter().any(|held| held == tag) {
                tags.push((*tag).to_owned());
            }
            Reply { status: 201, headers: Vec::new(), body: Body::Json(Value::Null) }
        }
        ("DELETE", []) => {
            tags.clear();
            Reply::empty(204)
        }
        ("DELETE", [tag]) => {
            if !tags.iter().any(|held| held == tag) {
                return Err(absent(tag));
            }
            tags.retain(|held| held != tag);
            Reply::empty(204)
        }
        _ => return Err(super::not_found()),
    };
    tags.sort();
    cloud.set(kind.plural, id, "tags", tags);
    touch(cloud, kind.plural, id);
    Ok(reply)
}

fn absent(tag: &str) -> Fail {
    Fail::new(404, "TagNotFound", format!("Tag {tag} could not be found."))
}

fn check(tag: &Value) -> Result<(), Fail> {
    match tag.as_str() {
        None => Err(invalid_input(format!("{} is not a valid string", repr(tag)))),
        Some(text) if text.chars().count() > 255 => {
            Err(invalid_input(format!("{} exceeds maximum length of 255", repr(tag))))
        }
        Some("") => Err(invalid_input("'' Blank strings are not permitted")),
        Some(_) => Ok(()),
    }
}
