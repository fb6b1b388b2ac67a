//! `capstan get`: objects of one kind, with the columns that tell most about them.

use anyhow::{Result, bail};
use capstan_controller::KindName;
use capstan_object::Key;
use capstan_view::{Columns, table};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::kinds::list;
use crate::output::{How, OutputArgs, Show, talk};
use crate::plugins::Plugins;
use crate::reach::{Management, Reach, missing};

/// Arguments of `capstan get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kind of object: clusters, machines, machinedeployments, … as the server calls them
    kind: String,
    /// Names; all objects without any
    names: Vec<String>,
    #[command(flatten)]
    reach: Reach,
    /// Objects of all namespaces
    #[arg(long, short = 'A', conflicts_with = "names")]
    all_namespaces: bool,
    /// Only objects of this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

struct Objects {
    items: Vec<Value>,
    namespaces: bool,
    /// One object was asked for by name: programs get it alone, not in a list.
    alone: bool,
}

impl serde::Serialize for Objects {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.items.as_slice() {
            [item] if self.alone => item.serialize(serializer),
            items => json!({"apiVersion": "v1", "kind": "List", "items": items}).serialize(serializer),
        }
    }
}

impl Show for Objects {
    fn text(&self, how: &How) -> String {
        table(&self.items, Columns { namespaces: self.namespaces, wide: how.wide }, how.now, how.paint)
    }

    fn names(&self) -> Vec<String> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.items
            .iter()
            .map(|item| format!("{}/{}", word(&item["kind"]).to_lowercase(), word(&item["metadata"]["name"])))
            .collect()
    }
}

/// Lists objects.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let items = args.reach.run(plugins, async |management| items(&management, args).await)?;
    if items.is_empty() {
        let place = if args.all_namespaces { "any namespace" } else { &args.reach.namespace };
        talk(&format!("no {} in {place}", args.kind));
    }
    let alone = args.names.len() == 1;
    args.output.show(&Objects { items, namespaces: args.all_namespaces, alone })?;
    Ok(Exit::Done)
}

async fn items(management: &Management, args: &Args) -> Result<Vec<Value>> {
    let kind = kind(management, &args.kind).await?;
    let namespace = if args.all_namespaces { "" } else { &management.namespace };
    let all = list(&management.client, &kind, namespace).await?;
    let ours = |item: &Value| args.cluster.as_deref().is_none_or(|cluster| belongs(item, cluster));
    let mut found: Vec<Value> = all.into_iter().filter(ours).collect();
    if args.names.is_empty() {
        return Ok(found);
    }
    let named = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let there: Vec<String> = found.iter().map(named).collect();
    if let Some(absent) = args.names.iter().find(|name| !there.contains(name)) {
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        let what = kind.kind.to_lowercase();
        bail!("{}", missing(&what, absent, &Key::new(namespace, "").namespace, &there));
    }
    found.retain(|item| args.names.contains(&named(item)));
    Ok(found)
}

/// The kind that a word means.
pub async fn kind(management: &Management, word: &str) -> Result<KindName> {
    let kinds = management.kinds().await?;
    if let Some(known) = kinds.iter().find(|known| known.is(word)) {
        return Ok(known.kind.clone());
    }
    if kinds.is_empty() {
        bail!(
            "the server has no kinds of Cluster API: start `capstan server` without --api-only, or install them"
        );
    }
    let plurals: Vec<&str> = kinds.iter().map(|known| known.kind.plural.as_ref()).collect();
    bail!("{word} is no kind of Cluster API here; there are: {}", plurals.join(", "));
}

/// Whether an object is of a cluster, or is the cluster.
fn belongs(object: &Value, cluster: &str) -> bool {
    object["spec"]["clusterName"] == cluster
        || object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster
        || (object["kind"] == "Cluster" && object["metadata"]["name"] == cluster)
}
