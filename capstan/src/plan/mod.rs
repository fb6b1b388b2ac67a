//! `capstan plan`: what a manifest would do, found by doing it on a copy.
//!
//! ```text
//! manifest ─┬─ the server judges it (dry run) ──▶ changes.rs: what of the objects changes
//!           └─ applied on the copy ─────────────▶ capstan-rehearsal: machines that come and go
//! server ── read.rs: records ──▶ the copy         warnings.rs: what stands in the way     tell.rs: the answer
//! clouds ── what they would say to the orders ──▶ room.rs: whether there is room
//! ```
//!
//! Nothing is written anywhere: the copy is in this process, and Secrets that it needs do not leave it, but for the keys
//! of a cloud, with which that cloud is asked.

mod changes;
mod read;
mod room;
mod tell;
mod warnings;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capstan_capi_plane::Settings;
use capstan_controller::{Deletion, KindName};
use capstan_guest::Timings;
use capstan_object::Key;
use capstan_rehearsal::{Edit, Rehearsal, rehearse};
use futures::FutureExt as _;
use jiff::Timestamp;
use serde_json::Value;

use crate::apply::{Applier, read_all};
use crate::exit::Exit;
use crate::output::OutputArgs;
use crate::plugins::Plugins;
use crate::reach::{Management, Reach};

pub use tell::Plan;

/// Arguments of `capstan plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Manifest to try; several are tried in order, `-` is stdin
    #[arg(long = "filename", short = 'f', value_name = "FILE", required_unless_present = "delete")]
    files: Vec<PathBuf>,
    /// Object to be deleted, such as machinedeployment/workers; after the manifests
    #[arg(long, value_name = "KIND/NAME")]
    delete: Vec<String>,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    output: OutputArgs,
}

/// What somebody thinks of doing.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Objects to apply.
    pub apply: Vec<Value>,
    /// Objects to delete then.
    pub delete: Vec<(KindName, Key)>,
}

/// Says what a manifest would do; [`Exit::Differs`] if anything.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let apply = read_all(&args.files)?;
    let plan = args.reach.run(plugins, async |management| {
        let mut delete = Vec::new();
        for word in &args.delete {
            delete.push(named(&management, word).await?);
        }
        foresee(&management, Wish { apply, delete }).await
    })?;
    args.output.show(&plan)?;
    Ok(if plan.is_empty() { Exit::Done } else { Exit::Differs })
}

/// The object that `KIND/NAME` means, which must be there.
async fn named(management: &Management, word: &str) -> Result<(KindName, Key)> {
    let Some((kind, name)) = word.split_once('/') else {
        bail!("--delete {word}: write it like machinedeployment/workers");
    };
    let kind = crate::get::kind(management, kind).await?;
    let key = Key::new(management.namespace.as_str(), name);
    if management.client.get_raw(&kind, &key).await?.is_none() {
        bail!("there is no {} {name} in namespace {}", kind.kind, management.namespace);
    }
    Ok((kind, key))
}

/// What a wish would do on a server.
pub async fn foresee(management: &Management, wish: Wish) -> Result<Plan> {
    let mut changes = changes::of(management, &wish.apply).await?;
    changes.extend(wish.delete.iter().map(|(kind, key)| changes::Change::deletion(kind, key)));
    let kinds = read::kinds(&management.plugins, &management.client).await;
    let mut namespaces = read::namespaces(&wish.apply, &management.namespace);
    namespaces.extend(wish.delete.iter().map(|(_, key)| key.namespace.clone()));
    let records = read::records(&management.client, &kinds, &namespaces).await?;
    let rehearsal = Rehearsal {
        records,
        kinds,
        settings: Settings::default(),
        now: Timestamp::now(),
        timings: Timings::default(),
        models: management.plugins.models(),
        edit: edit(wish.clone(), management.namespace.clone()),
    };
    // Time jumps in there, so it needs a runtime of its own.
    let course = tokio::task::spawn_blocking(move || rehearse(rehearsal)).await?;
    let course = course.context("the copy")?;
    let answers = room::ask(&management.plugins, &management.client, &wish.apply, &course).await;
    let warnings = warnings::of(&management.client, &course).await;
    Ok(Plan::new(changes, course, answers, warnings))
}

/// Does on the copy what would be done on the server.
fn edit(wish: Wish, namespace: String) -> Edit {
    let wish = Arc::new(wish);
    Box::new(move |client| {
        let (wish, namespace) = (wish.clone(), namespace.clone());
        let done = async move {
            let mut applier = Applier::new(&client, &namespace);
            for object in &wish.apply {
                applier.apply(object).await.map_err(|error| format!("{error:#}"))?;
            }
            for (kind, key) in &wish.delete {
                let deleted = client.delete(kind, key, &Deletion::default()).await;
                deleted.map_err(|error| format!("{} {key} is not deleted: {error}", kind.kind))?;
            }
            Ok(())
        };
        done.boxed()
    })
}
