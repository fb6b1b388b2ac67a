//! `capstan pause` and `capstan resume`: whether controllers touch a cluster.

use anyhow::Result;
use capstan_capi_types::core::Cluster;
use capstan_controller::{KindName, ListOptions};
use capstan_object::Object as _;
use serde_json::{Value, json};

use crate::backup::HELD;
use crate::change::patch;
use crate::exit::Exit;
use crate::output::{Deed, Deeds, OutputArgs};
use crate::plugins::Plugins;
use crate::reach::{Management, Reach};

/// Arguments of `capstan pause`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    reach: Reach,
    /// Have the server judge the change, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `capstan resume`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["cluster", "restored"]))]
pub struct ResumeArgs {
    /// Name of the cluster
    cluster: Option<String>,
    #[command(flatten)]
    reach: Reach,
    /// All clusters, of all namespaces, that `capstan restore` paused
    #[arg(long)]
    restored: bool,
    /// Have the server judge the change, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Pauses a cluster.
pub fn pause(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let name = &args.cluster;
    args.reach.run(plugins, async |management| {
        let cluster: Cluster = management.find(name).await?;
        let mut deeds = Deeds::new(args.output);
        if cluster.spec.paused == Some(true) {
            deeds.remark(&format!("cluster {name} is paused already"))?;
        } else {
            change(&management, &cluster, json!({"spec": {"paused": true}}), args.dry_run).await?;
            let sentence = match args.dry_run {
                true => format!("cluster {name} would be paused"),
                false => format!("cluster {name} paused; `capstan resume {name}` ends that"),
            };
            deeds.tell(deed(&cluster, "paused", args.dry_run, sentence))?;
        }
        deeds.end()
    })?;
    Ok(Exit::Done)
}

fn deed(cluster: &Cluster, what: &str, dry_run: bool, sentence: String) -> Deed {
    Deed { object: format!("cluster/{}", cluster.metadata().name), what: what.to_owned(), dry_run, sentence }
}

/// Resumes a cluster, or all that a restore paused.
pub fn resume(args: &ResumeArgs, plugins: &Plugins) -> Result<Exit> {
    args.reach.run(plugins, async |management| {
        let clusters: Vec<Cluster> = match &args.cluster {
            Some(name) => vec![management.find(name).await?],
            None => {
                let all: Vec<Cluster> = management.client.list_all("", &ListOptions::default()).await?;
                all.into_iter().filter(|cluster| cluster.metadata().annotations.contains_key(HELD)).collect()
            }
        };
        let mut deeds = Deeds::new(args.output);
        if clusters.is_empty() {
            deeds.remark("no cluster is paused by a restore")?;
        }
        for cluster in &clusters {
            let name =
                if args.restored { cluster.key().to_string() } else { cluster.metadata().name.clone() };
            if cluster.spec.paused != Some(true) {
                deeds.remark(&format!("cluster {name} is not paused"))?;
                continue;
            }
            let wanted = json!({"metadata": {"annotations": {HELD: null}}, "spec": {"paused": null}});
            if let Err(error) = change(&management, cluster, wanted, args.dry_run).await {
                deeds.end()?;
                return Err(error);
            }
            let done = if args.dry_run { "would be resumed" } else { "resumed" };
            deeds.tell(deed(cluster, "resumed", args.dry_run, format!("cluster {name} {done}")))?;
        }
        deeds.end()?;
        Ok(Exit::Done)
    })
}

async fn change(management: &Management, cluster: &Cluster, wanted: Value, dry_run: bool) -> Result<()> {
    let path = KindName::of::<Cluster>().object_path(&cluster.key(), None);
    let path = format!("{path}?fieldManager=capstan-cli");
    patch(&management.client, &path, "application/merge-patch+json", &wanted, dry_run).await.map(drop)
}
