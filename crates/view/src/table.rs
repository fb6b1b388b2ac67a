//! Objects of one kind as a table, with the columns that tell most about it.

use capstan_object::Time;
use jiff::Timestamp;
use serde_json::Value;

use crate::text::{coloured, word};
use crate::{Paint, Part, Standing, age, one_line};

/// What a table shows.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// Objects come from several namespaces.
    pub namespaces: bool,
    /// Nothing is left out.
    pub wide: bool,
}

/// Draws objects as the API serves them, as of `now`; what is no object is left out.
pub fn table(objects: &[Value], columns: Columns, now: Timestamp, paint: Paint) -> String {
    let rows: Vec<Vec<(&str, String)>> =
        objects.iter().filter_map(|object| Some(row(object, &Part::of(object)?, columns, now))).collect();
    let Some(first) = rows.first() else { return String::new() };
    let standings = objects.iter().filter_map(Part::of).map(|part| part.standing());
    let heads: Vec<String> = first.iter().map(|(head, _)| (*head).to_owned()).collect();
    let width = |n: usize| {
        let cells = rows.iter().filter_map(|row| row.get(n)).map(|(_, cell)| cell.chars().count());
        cells.chain([heads[n].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = line(&heads, &widths, None, paint);
    for (row, standing) in rows.iter().zip(standings) {
        let cells: Vec<String> = row.iter().map(|(_, cell)| cell.clone()).collect();
        let state = row.iter().position(|(head, _)| *head == "STATE");
        text.push_str(&line(&cells, &widths, state.map(|n| (n, standing)), paint));
    }
    text
}

fn line(cells: &[String], widths: &[usize], state: Option<(usize, Standing)>, paint: Paint) -> String {
    let mut text = String::new();
    for (n, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let gap = " ".repeat(width + 2 - cell.chars().count());
        match state {
            Some((place, standing)) if place == n => text.push_str(&coloured(standing, cell, paint)),
            _ => text.push_str(cell),
        }
        text.push_str(&gap);
    }
    format!("{}\n", text.trim_end())
}

fn row(object: &Value, part: &Part, columns: Columns, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut row = Vec::new();
    if columns.namespaces {
        row.push(("NAMESPACE", part.namespace.clone()));
    }
    row.push(("NAME", part.name.clone()));
    let own = match part.kind.as_str() {
        "Cluster" => cluster(object, part, columns.wide),
        "Machine" => machine(object, part, columns.wide),
        _ => other(object, part),
    };
    row.extend(own);
    row.push(("AGE", part.created.map(|created: Time| age(created, now)).unwrap_or_default()));
    row.push(("SAYS", says(part, columns.wide)));
    row
}

fn cluster(object: &Value, part: &Part, wide: bool) -> Vec<(&'static str, String)> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |role: &Value| match role["desiredReplicas"].as_i64() {
        Some(wanted) => format!("{}/{wanted}", role["readyReplicas"].as_i64().unwrap_or_default()),
        None => "-".to_owned(),
    };
    let versions = status["controlPlane"]["versions"].as_array();
    let found: Vec<&str> =
        versions.into_iter().flatten().filter_map(|item| item["version"].as_str()).collect();
    let version = if found.is_empty() { part.version.clone().unwrap_or_default() } else { found.join(",") };
    let mut row = vec![
        ("STATE", word(part)),
        ("CONTROL-PLANE", count(&status["controlPlane"])),
        ("WORKERS", count(&status["workers"])),
        ("VERSION", dash(version)),
    ];
    if wide {
        let endpoint = &spec["controlPlaneEndpoint"];
        row.push((
            "ENDPOINT",
            dash(
                endpoint["host"]
                    .as_str()
                    .map_or(String::new(), |host| format!("{host}:{}", endpoint["port"])),
            ),
        ));
        row.push(("INFRASTRUCTURE", text(&spec["infrastructureRef"]["kind"])));
    }
    row
}

fn machine(object: &Value, part: &Part, wide: bool) -> Vec<(&'static str, String)> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let control_plane = &object["metadata"]["labels"]["cluster.x-k8s.io/control-plane"];
    let role = if control_plane.is_null() { "worker" } else { "control-plane" };
    let mut row = vec![
        ("CLUSTER", text(&spec["clusterName"])),
        ("STATE", word(part)),
        ("ROLE", role.to_owned()),
        ("NODE", text(&status["nodeRef"]["name"])),
        ("VERSION", dash(part.version.clone().unwrap_or_default())),
    ];
    if wide {
        let addresses = status["addresses"].as_array().into_iter().flatten();
        let addresses: Vec<&str> = addresses
            .filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("IP")))
            .filter_map(|item| item["address"].as_str())
            .collect();
        row.push(("ADDRESSES", dash(addresses.join(","))));
        row.push(("FAILURE-DOMAIN", text(&spec["failureDomain"])));
        row.push(("PROVIDER-ID", text(&spec["providerID"])));
    }
    row
}

fn other(object: &Value, part: &Part) -> Vec<(&'static str, String)> {
    let label = &object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"];
    let named = &object["spec"]["clusterName"];
    vec![
        ("CLUSTER", text(if named.is_null() { label } else { named })),
        ("STATE", word(part)),
        ("READY", part.copies.map_or("-".to_owned(), |(ready, wanted)| format!("{ready}/{wanted}"))),
        ("VERSION", dash(part.version.clone().unwrap_or_default())),
    ]
}

/// What is not as wanted, in a sentence; nothing of what does well.
fn says(part: &Part, wide: bool) -> String {
    /// What usually fits beside the other columns.
    const SHORT: usize = 60;
    let complaint = match part.standing() {
        Standing::Well | Standing::Silent => None,
        _ => part.complaint(),
    };
    let Some(complaint) = complaint else { return String::new() };
    let says = if complaint.message.is_empty() { &complaint.reason } else { &complaint.message };
    let says = format!("{}: {}", complaint.kind, one_line(says));
    if wide || says.chars().count() <= SHORT {
        return says;
    }
    says.chars().take(SHORT - 1).chain(['…']).collect()
}

fn text(value: &Value) -> String {
    dash(value.as_str().unwrap_or_default().to_owned())
}

fn dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
