//! `capstan pause` and `capstan resume`: whether controllers touch a cluster.

use anyhow::Result;
use capstan_capi_types::core::Cluster;
use capstan_controller::{KindName, ListOptions, Patch};
use capstan_object::Object as _;
use serde_json::{Value, json};

use crate::backup::HELD;
use crate::exit::Exit;
use crate::output::say;
use crate::reach::{Management, Reach};

/// Arguments of `capstan pause`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    reach: Reach,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
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
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Pauses a cluster.
pub fn pause(args: &Args) -> Result<Exit> {
    let name = &args.cluster;
    args.reach.run(async |management| {
        let cluster: Cluster = management.find(name).await?;
        if cluster.spec.paused == Some(true) {
            return say(&format!("cluster {name} is paused already"));
        }
        if args.dry_run {
            return say(&format!("cluster {name} would be paused"));
        }
        change(&management, &cluster, json!({"spec": {"paused": true}})).await?;
        say(&format!("cluster {name} paused; `capstan resume {name}` ends that"))
    })?;
    Ok(Exit::Done)
}

/// Resumes a cluster, or all that a restore paused.
pub fn resume(args: &ResumeArgs) -> Result<Exit> {
    args.reach.run(async |management| {
        let clusters: Vec<Cluster> = match &args.cluster {
            Some(name) => vec![management.find(name).await?],
            None => {
                let all: Vec<Cluster> = management.client.list_all("", &ListOptions::default()).await?;
                all.into_iter().filter(|cluster| cluster.metadata().annotations.contains_key(HELD)).collect()
            }
        };
        if clusters.is_empty() {
            say("no cluster is paused by a restore")?;
        }
        for cluster in &clusters {
            let name =
                if args.restored { cluster.key().to_string() } else { cluster.metadata().name.clone() };
            if cluster.spec.paused != Some(true) {
                say(&format!("cluster {name} is not paused"))?;
            } else if args.dry_run {
                say(&format!("cluster {name} would be resumed"))?;
            } else {
                let wanted = json!({"metadata": {"annotations": {HELD: null}}, "spec": {"paused": null}});
                change(&management, cluster, wanted).await?;
                say(&format!("cluster {name} resumed"))?;
            }
        }
        Ok(Exit::Done)
    })
}

async fn change(management: &Management, cluster: &Cluster, wanted: Value) -> Result<()> {
    let kind = KindName::of::<Cluster>();
    management.client.patch(&kind, &cluster.key(), None, &Patch::Merge(wanted)).await?;
    Ok(())
}
