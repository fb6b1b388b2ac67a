//! `capstan delete`: a cluster with everything that belongs to it.

use anyhow::Result;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Deletion, KindName};
use capstan_object::Object as _;

use crate::exit::Exit;
use crate::output::say;
use crate::picture;
use crate::reach::Reach;
use crate::wait::{Goal, WaitArgs};

/// Arguments of `capstan delete`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    reach: Reach,
    /// Say what would go, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Deletes a cluster.
pub fn run(args: &Args) -> Result<Exit> {
    let name = &args.cluster;
    args.reach.run(async |management| {
        let cluster: Cluster = management.find(name).await?;
        if args.dry_run {
            let tree = picture::tree(&management, name).await?;
            say(&format!("cluster {name} would be deleted, with these parts:"))?;
            for part in tree.walk().skip(1) {
                say(&format!("  {}", part.title()))?;
            }
            return Ok(Exit::Done);
        }
        let goes = cluster.metadata().is_deleting();
        if !goes {
            // The one that was looked at, not one of the same name that came after it.
            let deletion = Deletion { uid: Some(cluster.metadata().uid.clone()), ..Deletion::default() };
            management.client.delete(&KindName::of::<Cluster>(), &cluster.key(), &deletion).await?;
        }
        let paused = if cluster.spec.paused == Some(true) {
            format!("; it is paused and stays until `capstan resume {name}`")
        } else {
            String::new()
        };
        let done = if goes { "is being deleted already" } else { "is being deleted" };
        say(&format!("cluster {name} {done}{paused}"))?;
        args.wait.follow(&management, name, Goal::Deleted, false).await
    })
}
