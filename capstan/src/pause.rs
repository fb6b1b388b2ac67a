//! `capstan pause` and `capstan resume`: whether controllers touch a cluster.

use anyhow::Result;
use capstan_capi_types::core::Cluster;
use capstan_controller::{KindName, Patch};
use capstan_object::Object as _;
use serde_json::json;

use crate::exit::Exit;
use crate::output::say;
use crate::reach::Reach;

/// Arguments of `capstan pause` and `capstan resume`.
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

/// Pauses or resumes a cluster.
pub fn run(args: &Args, pause: bool) -> Result<Exit> {
    let done = if pause { "paused" } else { "resumed" };
    let name = &args.cluster;
    args.reach.run(async |management| {
        let cluster: Cluster = management.find(name).await?;
        if cluster.spec.paused.unwrap_or_default() == pause {
            let is = if pause { "paused already" } else { "not paused" };
            return say(&format!("cluster {name} is {is}"));
        }
        if args.dry_run {
            return say(&format!("cluster {name} would be {done}"));
        }
        let wanted = json!({"spec": {"paused": if pause { json!(true) } else { json!(null) }}});
        let kind = KindName::of::<Cluster>();
        management.client.patch(&kind, &cluster.key(), None, &Patch::Merge(wanted)).await?;
        let next = if pause { format!("; `capstan resume {name}` ends that") } else { String::new() };
        say(&format!("cluster {name} {done}{next}"))
    })?;
    Ok(Exit::Done)
}
