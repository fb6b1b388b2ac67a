//! `tests/topology-diff/admission.yaml`: requests that break a rule about classes and topologies. Each is sent as a dry
//! run to both planes, which must refuse it in the same words or accept it alike.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::Planes;
use super::scenario::Action;
use super::source::Source;
use crate::api::Reply;
use crate::cargo;
use crate::differences::Difference;
use crate::peers::Cache;

const NAMESPACE: &str = "admission";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Classes with their templates.
    classes: Vec<Source>,
    /// Valid objects that requests are about.
    objects: Vec<Value>,
    requests: Vec<Request>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    name: String,
    #[serde(rename = "do")]
    action: Action,
}

fn load() -> Result<Table> {
    let path = cargo::root().join("tests/topology-diff/admission.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

/// Sends every request to both planes and compares whether and why it is refused.
pub async fn compare(planes: &Planes, cache: &Cache) -> Result<Vec<Difference>> {
    let table = load()?;
    planes.prepare(std::iter::once(NAMESPACE)).await?;
    let mut objects = Vec::new();
    for source in &table.classes {
        objects.extend(source.read(cache, &BTreeMap::new(), None)?);
    }
    let sides = [&planes.theirs, &planes.ours];
    for objects in [objects, table.objects.clone()] {
        for object in objects {
            for side in sides {
                let created = side.act(NAMESPACE, &Action::Create(object.clone()), false).await?.success();
                created.with_context(|| format!("{}: {}", side.name, super::source::label(&object)))?;
            }
        }
        // Classes are reconciled before there are clusters.
        tokio::try_join!(planes.theirs.at_rest(), planes.ours.at_rest())?;
    }
    let mut found = Vec::new();
    let mut refused = 0;
    for request in &table.requests {
        let theirs = answer(&planes.theirs.act(NAMESPACE, &request.action, true).await?);
        let ours = answer(&planes.ours.act(NAMESPACE, &request.action, true).await?);
        refused += usize::from(theirs != ACCEPTED);
        if theirs != ours {
            found.push(Difference {
                scenario: NAMESPACE.to_owned(),
                step: request.name.clone(),
                object: "request".to_owned(),
                path: String::new(),
                theirs,
                ours,
            });
        }
    }
    let (all, different) = (table.requests.len(), found.len());
    println!("  {all} requests, {refused} refused by Cluster API, {different} differences");
    Ok(found)
}

const ACCEPTED: &str = "accepted";

/// The message of a refusal, without who says it: our rules run in the server.
fn answer(reply: &Reply) -> String {
    static WEBHOOK: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"admission webhook "[^"]*" denied the request: "#).ok());
    if reply.status.is_success() {
        return ACCEPTED.to_owned();
    }
    let body = reply.json().unwrap_or_default();
    let message = body["message"].as_str().unwrap_or_default();
    match WEBHOOK.as_ref() {
        Some(webhook) => webhook.replace(message, "").into_owned(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_readable() {
        assert!(!load().unwrap().requests.is_empty());
    }
}
