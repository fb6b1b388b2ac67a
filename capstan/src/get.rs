//! `capstan get`: objects as a table.

mod watch;

use anyhow::{Result, bail};
use capstan_controller::KindName;
use capstan_object::Key;
use capstan_view::{Columns, table};
use serde_json::{Value, json};

use crate::connection::{ConnectionArgs, Management, missing};
use crate::exit::Exit;
use crate::kinds::{clusters, list_matching};
use crate::output::{OutputArgs, Show, TextOptions, eprint_line};
use crate::plugins::Plugins;

/// Arguments of `capstan get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kinds, comma separated, such as clusters or machines,md; or KIND/NAME
    kind: String,
    /// Names; all objects if none is given
    names: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Objects of all namespaces
    #[arg(long, short = 'A', conflicts_with = "names")]
    all_namespaces: bool,
    /// Only objects of this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only objects with these labels, such as a=b,c
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// Print rows that change until interrupted; with -o text and -o wide
    #[arg(long, short)]
    watch: bool,
    /// With -o yaml and -o json: print metadata.managedFields too
    #[arg(long)]
    show_managed_fields: bool,
    #[command(flatten)]
    output: OutputArgs,
}

struct Objects {
    items: Vec<Value>,
    /// Clusters, for the column of their classes.
    clusters: Vec<Value>,
    namespaces: bool,
    /// A single name was given: print the object itself, not a list.
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
    const HAS_COLOURS: bool = true;

    fn text(&self, options: &TextOptions) -> String {
        let columns = Columns { namespaces: self.namespaces, wide: options.wide, clusters: &self.clusters };
        let by_kind = self.items.chunk_by(|a, b| a["kind"] == b["kind"]);
        let tables: Vec<String> =
            by_kind.map(|items| table(items, columns, options.now, options.paint)).collect();
        tables.join("\n")
    }

    fn names(&self) -> Vec<String> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.items
            .iter()
            .map(|item| format!("{}/{}", word(&item["kind"]).to_lowercase(), word(&item["metadata"]["name"])))
            .collect()
    }
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let requests = requests(&args.kind, &args.names)?;
    if args.watch {
        if !args.output.is_text() {
            bail!("--watch prints rows of a table: use it with -o text or -o wide");
        }
        return args
            .connection
            .run(plugins, async |management| watch::run(&management, args, &requests).await);
    }
    let (mut items, clusters) = args.connection.run(plugins, async |management| {
        let items = all(&management, args, &requests).await?;
        let users = users(&management, &items).await?;
        Ok((items, users))
    })?;
    if items.is_empty() {
        let place = if args.all_namespaces { "any namespace" } else { &args.connection.namespace };
        eprint_line(&format!("no {} in {place}", args.kind));
    }
    if !args.show_managed_fields {
        for item in &mut items {
            if let Some(metadata) = item["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
    }
    let alone = matches!(requests.as_slice(), [(_, names)] if names.len() == 1);
    args.output.show(&Objects { items, clusters, namespaces: args.all_namespaces, alone })?;
    Ok(Exit::Done)
}

async fn all(management: &Management, args: &Args, requests: &[(String, Vec<String>)]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (kind, names) in requests {
        all.extend(items(management, args, kind, names).await?);
    }
    Ok(all)
}

/// The Clusters that may use the classes among some objects.
async fn users(management: &Management, items: &[Value]) -> Result<Vec<Value>> {
    match items.iter().any(|item| item["kind"] == "ClusterClass") {
        true => Ok(clusters(&management.client, &management.namespace).await?),
        false => Ok(Vec::new()),
    }
}

/// Reads `KIND[,KIND] [NAME...]` and `KIND/NAME [KIND/NAME...]` as kinds with names.
fn requests(kind: &str, names: &[String]) -> Result<Vec<(String, Vec<String>)>> {
    if !kind.contains('/') {
        let kinds = kind.split(',').map(str::trim).filter(|kind| !kind.is_empty());
        return Ok(kinds.map(|kind| (kind.to_owned(), names.to_vec())).collect());
    }
    let pair = |word: &str| match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
            Ok((kind.to_owned(), vec![name.to_owned()]))
        }
        _ => bail!("{word}: expected KIND/NAME, such as machine/demo-1"),
    };
    std::iter::once(kind).chain(names.iter().map(String::as_str)).map(pair).collect()
}

async fn items(management: &Management, args: &Args, kind: &str, names: &[String]) -> Result<Vec<Value>> {
    let kind = self::kind(management, kind).await?;
    let namespace = if args.all_namespaces { "" } else { &management.namespace };
    let all =
        list_matching(&management.client, &kind, namespace, args.selector.as_deref().unwrap_or_default())
            .await?;
    let belongs_to_cluster =
        |item: &Value| args.cluster.as_deref().is_none_or(|cluster| belongs(item, cluster));
    let mut found: Vec<Value> = all.into_iter().filter(belongs_to_cluster).collect();
    if names.is_empty() {
        return Ok(found);
    }
    let named = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let existing: Vec<String> = found.iter().map(named).collect();
    if let Some(absent) = names.iter().find(|name| !existing.contains(name)) {
        let existing: Vec<&str> = existing.iter().map(String::as_str).collect();
        let what = kind.kind.to_lowercase();
        bail!("{}", missing(&what, absent, &Key::new(namespace, "").namespace, &existing));
    }
    found.retain(|item| names.contains(&named(item)));
    Ok(found)
}

/// The kind with this name, plural or short name.
pub async fn kind(management: &Management, word: &str) -> Result<KindName> {
    let kinds = management.kinds().await?;
    if let Some(known) = kinds.iter().find(|known| known.is(word)) {
        return Ok(known.kind.clone());
    }
    if kinds.is_empty() {
        bail!(
            "the server has no Cluster API kinds: start `capstan server` without --api-only, or install them"
        );
    }
    let plurals: Vec<&str> = kinds.iter().map(|known| known.kind.plural.as_ref()).collect();
    bail!("{word} is not a Cluster API kind of this server; there are: {}", plurals.join(", "));
}

/// Whether an object belongs to a cluster, or is the cluster.
fn belongs(object: &Value, cluster: &str) -> bool {
    object["spec"]["clusterName"] == cluster
        || object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster
        || (object["kind"] == "Cluster" && object["metadata"]["name"] == cluster)
}

#[cfg(test)]
mod tests {
    use super::requests;

    #[test]
    fn kinds_and_names_are_read_in_every_form() {
        let names = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let read = |kind: &str, rest: &[&str]| requests(kind, &names(rest));
        let expected = |all: &[(&str, &[&str])]| {
            all.iter().map(|(kind, rest)| ((*kind).to_owned(), names(rest))).collect::<Vec<_>>()
        };
        assert_eq!(read("clusters", &[]).expect("read"), expected(&[("clusters", &[])]));
        assert_eq!(read("cluster", &["a", "b"]).expect("read"), expected(&[("cluster", &["a", "b"])]));
        assert_eq!(read("clusters,md", &[]).expect("read"), expected(&[("clusters", &[]), ("md", &[])]));
        assert_eq!(
            read("cluster/a", &["machine/b"]).expect("read"),
            expected(&[("cluster", &["a"]), ("machine", &["b"])])
        );
        let error = read("cluster/a", &["b"]).expect_err("refused").to_string();
        assert_eq!(error, "b: expected KIND/NAME, such as machine/demo-1");
    }
}
