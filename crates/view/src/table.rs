//! Objects of one kind as a table, with columns for that kind.

use capstan_object::Time;
use jiff::Timestamp;
use serde_json::Value;

use crate::printable::in_line;
use crate::text::{coloured, state_word};
use crate::{Paint, Part, State, Topology, age, one_line};

#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Show the namespace.
    pub namespaces: bool,
    /// Show all columns and whole messages.
    pub wide: bool,
    /// All Clusters, for the column of their classes.
    pub clusters: &'a [Value],
}

/// Draws objects as the API serves them, as of `now`. Values that are not objects are skipped.
///
/// Cells are cleaned before they are measured.
pub fn table(objects: &[Value], columns: Columns<'_>, now: Timestamp, paint: Paint) -> String {
    let parts: Vec<(&Value, Part)> =
        objects.iter().filter_map(|object| Some((object, Part::of(object)?))).collect();
    let classes = parts.iter().any(|(_, part)| part.topology.is_some());
    let rows: Vec<Vec<(&str, String)>> =
        parts.iter().map(|(object, part)| row(object, part, classes, columns, now)).collect();
    let Some(first) = rows.first() else { return String::new() };
    let states = parts.iter().map(|(_, part)| part.state());
    let heads: Vec<String> = first.iter().map(|(head, _)| (*head).to_owned()).collect();
    let width = |n: usize| {
        let cells = rows.iter().filter_map(|row| row.get(n)).map(|(_, cell)| cell.chars().count());
        cells.chain([heads[n].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = line(&heads, &widths, None, paint);
    for (row, state) in rows.iter().zip(states) {
        let cells: Vec<String> = row.iter().map(|(_, cell)| cell.clone()).collect();
        let column = row.iter().position(|(head, _)| *head == "STATE");
        text.push_str(&line(&cells, &widths, column.map(|n| (n, state)), paint));
    }
    text
}

fn line(cells: &[String], widths: &[usize], state: Option<(usize, State)>, paint: Paint) -> String {
    let mut text = String::new();
    for (n, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let gap = " ".repeat(width + 2 - cell.chars().count());
        match state {
            Some((column, state)) if column == n => text.push_str(&coloured(state, cell, paint)),
            _ => text.push_str(cell),
        }
        text.push_str(&gap);
    }
    format!("{}\n", text.trim_end())
}

fn row(
    object: &Value,
    part: &Part,
    classes: bool,
    columns: Columns<'_>,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let mut row = Vec::new();
    if columns.namespaces {
        row.push(("NAMESPACE", part.namespace.clone()));
    }
    row.push(("NAME", part.name.clone()));
    let own = match part.kind.as_str() {
        "Cluster" => cluster(object, part, classes, columns.wide),
        "ClusterClass" => class(object, part, columns),
        "Machine" => machine(object, part, columns.wide),
        _ => other(object, part),
    };
    row.extend(own);
    row.push(("AGE", part.created.map(|created: Time| age(created, now)).unwrap_or_default()));
    row.push(("MESSAGE", message(part, columns.wide)));
    row.into_iter().map(|(head, cell)| (head, in_line(&cell).into_owned())).collect()
}

fn cluster(object: &Value, part: &Part, classes: bool, wide: bool) -> Vec<(&'static str, String)> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |role: &Value| match role["desiredReplicas"].as_i64() {
        Some(desired) => format!("{}/{desired}", role["readyReplicas"].as_i64().unwrap_or_default()),
        None => "-".to_owned(),
    };
    let versions = status["controlPlane"]["versions"].as_array();
    let found: Vec<&str> =
        versions.into_iter().flatten().filter_map(|item| item["version"].as_str()).collect();
    let mut version =
        if found.is_empty() { part.version.clone().unwrap_or_default() } else { found.join(",") };
    let wanted = part.topology.as_ref().map(|topology| topology.version.as_str()).unwrap_or_default();
    if !wanted.is_empty() && version != wanted {
        version = format!("{version}→{wanted}");
    }
    let mut row = Vec::new();
    if classes {
        let class = part.topology.as_ref().map(|topology| topology.class_name(&part.namespace));
        row.push(("CLASS", dash(class.unwrap_or_default())));
    }
    row.extend([
        ("STATE", state_word(part)),
        ("CONTROL-PLANE", count(&status["controlPlane"])),
        ("WORKERS", count(&status["workers"])),
        ("VERSION", dash(version)),
    ]);
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

fn class(object: &Value, part: &Part, columns: Columns<'_>) -> Vec<(&'static str, String)> {
    let workers = &object["spec"]["workers"];
    let names = ["machineDeployments", "machinePools"].into_iter().flat_map(|kind| {
        let classes = workers[kind].as_array().into_iter().flatten();
        classes.filter_map(|class| class["class"].as_str())
    });
    let names: Vec<&str> = names.collect();
    vec![("WORKERS", dash(names.join(","))), ("CLUSTERS", users(part, columns))]
}

/// The clusters of a class, with their number; those of other namespaces with the namespace.
fn users(class: &Part, columns: Columns<'_>) -> String {
    /// Names shown without `-o wide`.
    const MOST: usize = 3;
    let of_class = |cluster: &&Value| {
        let topology = Topology::of(cluster);
        topology.is_some_and(|it| it.class == class.name && it.class_namespace == class.namespace)
    };
    let mut names: Vec<String> = columns
        .clusters
        .iter()
        .filter(of_class)
        .map(|cluster| {
            let text = |field: &str| cluster["metadata"][field].as_str().unwrap_or_default();
            let (namespace, name) = (text("namespace"), text("name"));
            if namespace == class.namespace { name.to_owned() } else { format!("{namespace}/{name}") }
        })
        .collect();
    let count = names.len();
    if count == 0 {
        return "0".to_owned();
    }
    if !columns.wide && count > MOST {
        names.truncate(MOST);
        names.push("…".to_owned());
    }
    format!("{count} ({})", names.join(","))
}

fn machine(object: &Value, part: &Part, wide: bool) -> Vec<(&'static str, String)> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let control_plane = &object["metadata"]["labels"]["cluster.x-k8s.io/control-plane"];
    let role = if control_plane.is_null() { "worker" } else { "control-plane" };
    let mut row = vec![
        ("CLUSTER", text(&spec["clusterName"])),
        ("STATE", state_word(part)),
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
        ("STATE", state_word(part)),
        ("READY", part.replicas.map_or("-".to_owned(), |(ready, desired)| format!("{ready}/{desired}"))),
        ("VERSION", dash(part.version.clone().unwrap_or_default())),
    ]
}

/// The condition that explains the state; empty for healthy parts.
fn message(part: &Part, wide: bool) -> String {
    /// Fits beside the other columns of a normal terminal.
    const SHORT: usize = 60;
    let condition = match part.state() {
        // It has no summary condition.
        State::NoConditions if part.kind == "ClusterClass" => part.explaining_condition(),
        State::Healthy | State::NoConditions => None,
        _ => part.explaining_condition(),
    };
    let Some(condition) = condition else { return String::new() };
    let message = if condition.message.is_empty() { &condition.reason } else { &condition.message };
    let message = format!("{}: {}", condition.kind, one_line(message));
    if wide || message.chars().count() <= SHORT {
        return message;
    }
    message.chars().take(SHORT - 1).chain(['…']).collect()
}

fn text(value: &Value) -> String {
    dash(value.as_str().unwrap_or_default().to_owned())
}

fn dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
