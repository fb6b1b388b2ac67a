//! `capstan orphans`: drift between records, workload clusters and clouds. Deletes nothing without `--delete`.
//!
//! ```text
//! Machines ──────────────── compared with ── Nodes of each workload cluster
//! a provider's objects ──── compared with ── the inventory of its clouds
//! ```

mod removal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use capstan_capi_core::secret::Secret;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{Access, Client, Env, KindName, ListOptions, Remote, TcpDial};
use capstan_object::{Key, Object, Scope};
use capstan_provider_kit::{Difference, DifferenceKind};
use serde::Serialize;
use serde_json::Value;

use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::kinds::list;
use crate::output::{OutputArgs, Show, TextOptions, eprint_line};
use crate::plugins::Plugins;
use removal::{DeleteArgs, remove};

/// Arguments of `capstan orphans`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a cluster; all clusters and their clouds if not given
    cluster: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Clusters of all namespaces
    #[arg(long, short = 'A', conflicts_with = "cluster")]
    all_namespaces: bool,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Differences(Vec<Difference>);

impl Show for Differences {
    fn text(&self, _: &TextOptions) -> String {
        let word = |how| match how {
            DifferenceKind::Unrecorded => "orphaned",
            DifferenceKind::Gone => "missing",
            DifferenceKind::Unknown => "unknown",
        };
        self.0
            .iter()
            .map(|it| format!("{:9} {:12} {}: {}\n", word(it.how), it.place, it.what, it.says))
            .collect()
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|it| it.what.clone()).collect()
    }
}

/// Prints the drift, and deletes orphaned resources with `--delete`.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |mut management| {
        let mut clusters = match &args.cluster {
            Some(name) => vec![management.find::<Cluster>(name).await?],
            None => {
                if args.all_namespaces {
                    management.namespace = String::new();
                }
                management.client.list_all(&management.namespace, &ListOptions::default()).await?
            }
        };
        clusters.sort_by_key(Object::key);
        let mut found = Vec::new();
        let mut unrecorded = Vec::new();
        for cluster in &clusters {
            found.extend(workload(&management.client, cluster).await?);
        }
        if args.cluster.is_none() {
            for inventory in plugins.providers().filter_map(|provider| provider.inventory()) {
                let drift = inventory.compare(&management.client, &management.namespace).await?;
                found.extend(drift.differences);
                unrecorded.extend(drift.unrecorded);
            }
        }
        let (compared, differences) =
            (counted(clusters.len(), "cluster"), counted(found.len(), "difference"));
        eprint_line(&format!("{compared} compared, {differences}"));
        let exit = if found.is_empty() { Exit::Done } else { Exit::Differs };
        args.output.show(&Differences(found))?;
        if args.delete.delete { remove(&args.delete, &unrecorded).await } else { Ok(exit) }
    })
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Compares the Machines of a cluster with its Nodes.
async fn workload(client: &Client, cluster: &Cluster) -> Result<Vec<Difference>> {
    let key = cluster.key();
    let machines: Vec<Machine> = client.list_all(&key.namespace, &ListOptions::default()).await?;
    let machines: Vec<Machine> =
        machines.into_iter().filter(|machine| machine.spec.cluster_name == key.name).collect();
    let place = format!("cluster {}", key.name);
    match nodes(client, &key).await {
        Ok(Some(nodes)) => Ok(compare(&place, &machines, &nodes)),
        // It has no API server yet.
        Ok(None) => Ok(Vec::new()),
        Err(error) => Ok(vec![Difference {
            how: DifferenceKind::Unknown,
            what: format!("Cluster/{}", key.name),
            says: format!("cannot list its nodes: {error:#}"),
            place,
        }]),
    }
}

/// The Nodes of a cluster; `None` if it has no kubeconfig yet.
async fn nodes(client: &Client, cluster: &Key) -> Result<Option<Vec<Value>>> {
    let key = Key::new(&cluster.namespace, format!("{}-kubeconfig", cluster.name));
    let Some(secret) = client.get::<Secret>(&key).await? else { return Ok(None) };
    let access = Access::from_kubeconfig(secret.text("value")?.as_bytes())?;
    let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
    let kind = KindName { scope: Scope::Cluster, ..KindName::namespaced("", "v1", "Node", "nodes") };
    Ok(Some(list(&Client::new(Arc::new(remote), "capstan-cli"), &kind, "").await?))
}

fn compare(place: &str, machines: &[Machine], nodes: &[Value]) -> Vec<Difference> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ids: BTreeSet<&str> = machines.iter().map(|machine| machine.spec.provider_id.as_str()).collect();
    let recorded: BTreeSet<&str> = machines.iter().map(node_name).collect();
    let existing: BTreeMap<String, String> = nodes
        .iter()
        .map(|node| (text(&node["metadata"]["name"]), text(&node["spec"]["providerID"])))
        .collect();
    let mut found = Vec::new();
    for (name, id) in &existing {
        let known = recorded.contains(name.as_str()) || (!id.is_empty() && ids.contains(id.as_str()));
        if !known {
            found.push(Difference {
                how: DifferenceKind::Unrecorded,
                what: format!("Node/{name}"),
                place: place.to_owned(),
                says: format!(
                    "no Machine has this node ({})",
                    if id.is_empty() { "no provider id" } else { id }
                ),
            });
        }
    }
    for machine in machines {
        let node = node_name(machine);
        let id = machine.spec.provider_id.as_str();
        if !node.is_empty()
            && !existing.contains_key(node)
            && !existing.values().any(|other| !id.is_empty() && other == id)
        {
            found.push(Difference {
                how: DifferenceKind::Gone,
                what: format!("Machine/{}", machine.metadata().name),
                place: place.to_owned(),
                says: format!("its node {node} does not exist"),
            });
        }
    }
    found
}

fn node_name(machine: &Machine) -> &str {
    &machine.status.node_ref.name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(name: &str, node: &str, id: &str) -> Machine {
        let mut value =
            json!({"metadata": {"name": name}, "spec": {"clusterName": "c", "providerID": id}, "status": {}});
        if !node.is_empty() {
            value["status"]["nodeRef"] = json!({"name": node});
        }
        serde_json::from_value(value).expect("a machine")
    }

    fn node(name: &str, id: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"providerID": id}})
    }

    #[test]
    fn nodes_without_machines_and_machines_without_nodes_are_reported() {
        let machines = [machine("a", "a", "p://1"), machine("b", "b", "p://2"), machine("new", "", "")];
        let found = |nodes: &[Value]| -> Vec<(DifferenceKind, String)> {
            compare("cluster c", &machines, nodes).into_iter().map(|it| (it.how, it.what)).collect()
        };
        assert_eq!(found(&[node("a", "p://1"), node("b", "p://2")]), []);
        assert_eq!(found(&[node("a", "p://1"), node("renamed", "p://2")]), [], "known by its provider id");
        assert_eq!(found(&[node("a", "p://1")]), [(DifferenceKind::Gone, "Machine/b".to_owned())]);
        assert_eq!(
            found(&[node("a", "p://1"), node("b", "p://2"), node("c", "p://3")]),
            [(DifferenceKind::Unrecorded, "Node/c".to_owned())]
        );
    }
}
