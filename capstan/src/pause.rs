//! `capstan pause` and `capstan resume`.

use anyhow::{Result, bail};
use capstan_capi_types::core::Cluster;
use capstan_controller::{KindName, ListOptions};
use capstan_object::Object as _;
use serde_json::{Value, json};

use crate::adopt;
use crate::backup::PAUSED_BY_RESTORE;
use crate::change::patch;
use crate::connection::{ConnectionArgs, Management};
use crate::exit::Exit;
use crate::output::{Action, ActionReport, OutputArgs};
use crate::plugins::Plugins;

/// Arguments of `capstan pause`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Validate the change on the server and change nothing
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
    connection: ConnectionArgs,
    /// All clusters that `capstan restore` paused, in all namespaces
    #[arg(long)]
    restored: bool,
    /// Validate the change on the server and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn pause(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let name = &args.cluster;
    args.connection.run(plugins, async |management| {
        let cluster: Cluster = management.find(name).await?;
        let mut report = ActionReport::new(args.output);
        if cluster.spec.paused == Some(true) {
            report.note(&format!("cluster {name} is already paused"))?;
        } else {
            change(&management, &cluster, json!({"spec": {"paused": true}}), args.dry_run).await?;
            let sentence = match args.dry_run {
                true => format!("cluster {name} would be paused"),
                false => {
                    let namespace = &management.namespace;
                    format!("cluster {name} paused; `capstan resume {name} -n {namespace}` resumes it")
                }
            };
            report.record(action(&cluster, "paused", args.dry_run, sentence))?;
        }
        report.finish()
    })?;
    Ok(Exit::Done)
}

fn action(cluster: &Cluster, what: &str, dry_run: bool, sentence: String) -> Action {
    Action {
        object: format!("cluster/{}", cluster.metadata().name),
        what: what.to_owned(),
        dry_run,
        sentence,
    }
}

pub fn resume(args: &ResumeArgs, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        let clusters: Vec<Cluster> = match &args.cluster {
            Some(name) => vec![management.find(name).await?],
            None => {
                let all: Vec<Cluster> = management.client.list_all("", &ListOptions::default()).await?;
                all.into_iter()
                    .filter(|cluster| cluster.metadata().annotations.contains_key(PAUSED_BY_RESTORE))
                    .collect()
            }
        };
        let mut report = ActionReport::new(args.output);
        if clusters.is_empty() {
            report.note("no cluster was paused by a restore")?;
        }
        for cluster in &clusters {
            let name =
                if args.restored { cluster.key().to_string() } else { cluster.metadata().name.clone() };
            if adopt::is_locked(cluster) {
                report.finish()?;
                bail!(
                    "cluster {name} is locked: `capstan adopt --unlock {0} -n {1}` takes it over, `capstan adopt --rollback {0} \
                     -n {1}` gives it back",
                    cluster.metadata().name,
                    cluster.metadata().namespace
                );
            }
            if cluster.spec.paused != Some(true) {
                report.note(&format!("cluster {name} is not paused"))?;
                continue;
            }
            let resumed =
                json!({"metadata": {"annotations": {PAUSED_BY_RESTORE: null}}, "spec": {"paused": null}});
            if let Err(error) = change(&management, cluster, resumed, args.dry_run).await {
                report.finish()?;
                return Err(error);
            }
            let done = if args.dry_run { "would be resumed" } else { "resumed" };
            report.record(action(cluster, "resumed", args.dry_run, format!("cluster {name} {done}")))?;
        }
        report.finish()?;
        Ok(Exit::Done)
    })
}

async fn change(management: &Management, cluster: &Cluster, patch_body: Value, dry_run: bool) -> Result<()> {
    let path = KindName::of::<Cluster>().object_path(&cluster.key(), None);
    let path = format!("{path}?fieldManager=capstan-cli");
    patch(&management.client, &path, "application/merge-patch+json", &patch_body, dry_run).await.map(drop)
}
