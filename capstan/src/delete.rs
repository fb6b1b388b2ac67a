//! `capstan delete`: a cluster with everything that belongs to it.

use anyhow::Result;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Deletion, KindName};
use capstan_object::Object as _;

use crate::exit::Exit;
use crate::output::{Deed, Deeds, How, OutputArgs, Show as _, talk};
use crate::picture;
use crate::plan::{self, Wish};
use crate::plugins::Plugins;
use crate::reach::{Management, Reach};
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
    #[command(flatten)]
    output: OutputArgs,
}

/// Deletes a cluster.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let name = &args.cluster;
    args.reach.run(plugins, async |management| {
        let cluster: Cluster = management.find(name).await?;
        let mut deeds = Deeds::new(args.output);
        if args.dry_run {
            let tree = picture::tree(&management, name).await?;
            deeds.remark(&format!("cluster {name} would be deleted, with these parts:"))?;
            for part in tree.walk() {
                let (object, sentence) = (part.title(), format!("  {}", part.title()));
                deeds.tell(Deed { object, what: "deleted".to_owned(), dry_run: true, sentence })?;
            }
            deeds.end()?;
            return match args.output.is_text() {
                true => order(&management, &cluster, &deeds).await,
                // Programs get the order from `capstan plan --delete`.
                false => Ok(Exit::Done),
            };
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
        let sentence = format!("cluster {name} {done}{paused}");
        let object = format!("cluster/{name}");
        deeds.tell(Deed { object, what: done.to_owned(), dry_run: false, sentence })?;
        deeds.end()?;
        args.wait.follow(&management, name, Goal::Deleted, false, &deeds).await
    })
}

/// Says in which order everything would go. That it cannot be said is no failure: what would go was said.
async fn order(management: &Management, cluster: &Cluster, deeds: &Deeds) -> Result<Exit> {
    let wish = Wish { apply: Vec::new(), delete: vec![(KindName::of::<Cluster>(), cluster.key())] };
    match plan::foresee(management, wish).await {
        Ok(plan) => deeds.remark(plan.text(&How::plain()).trim_end())?,
        Err(error) => talk(&format!("in which order cannot be said: {error:#}")),
    }
    Ok(Exit::Done)
}
