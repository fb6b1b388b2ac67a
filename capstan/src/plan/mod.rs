//! `capstan plan`: what a manifest would do, found by doing it on a copy.
//!
//! ```text
//! manifest ─┬─ the server judges it (dry run) ──▶ changes.rs: what of the objects changes
//!           └─ applied on the copy ─────────────▶ capstan-rehearsal: machines that come and go
//! server ── read.rs: records ──▶ the copy         warnings.rs: what stands in the way     tell.rs: the answer
//! ```
//!
//! Nothing is written anywhere: the copy is in this process, and Secrets that it needs do not leave it.

mod changes;
mod read;
mod tell;
mod warnings;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use capstan_capi_plane::Settings;
use capstan_guest::Timings;
use capstan_rehearsal::{Edit, Rehearsal, Size, rehearse};
use futures::FutureExt as _;
use jiff::Timestamp;
use serde_json::Value;

use crate::apply::{Applier, read_all};
use crate::exit::Exit;
use crate::output::OutputArgs;
use crate::reach::{Management, Reach};

pub use tell::Plan;

/// Arguments of `capstan plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Manifest to try; several are tried in order, `-` is stdin
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    output: OutputArgs,
}

/// Says what a manifest would do; [`Exit::Differs`] if anything.
pub fn run(args: &Args) -> Result<Exit> {
    let objects = read_all(&args.files)?;
    let plan = args.reach.run(async |management| foresee(&management, &objects).await)?;
    args.output.show(&plan)?;
    Ok(if plan.is_empty() { Exit::Done } else { Exit::Differs })
}

/// What a manifest would do on a server.
pub async fn foresee(management: &Management, objects: &[Value]) -> Result<Plan> {
    let changes = changes::of(management, objects).await?;
    let kinds = read::kinds(&management.client).await;
    let namespaces = read::namespaces(objects, &management.namespace);
    let records = read::records(&management.client, &kinds, &namespaces).await?;
    let rehearsal = Rehearsal {
        records,
        kinds,
        settings: Settings::default(),
        now: Timestamp::now(),
        timings: Timings::default(),
        sizes: Arc::new(size),
        edit: edit(objects.to_vec(), management.namespace.clone()),
    };
    // Time jumps in there, so it needs a runtime of its own.
    let course = tokio::task::spawn_blocking(move || rehearse(rehearsal)).await?;
    let course = course.context("the copy")?;
    let warnings = warnings::of(&management.client, &course).await;
    Ok(Plan::new(changes, course, warnings))
}

/// Applies the manifest, as it would be applied on the server.
fn edit(objects: Vec<Value>, namespace: String) -> Edit {
    let objects = Arc::new(objects);
    Box::new(move |client| {
        let (objects, namespace) = (objects.clone(), namespace.clone());
        let applied = async move {
            let mut applier = Applier::new(&client, &namespace);
            for object in objects.iter() {
                applier.apply(object).await.map_err(|error| format!("{error:#}"))?;
            }
            Ok(())
        };
        applied.boxed()
    })
}

/// How large a machine is, where its object says so itself.
fn size(object: &Value) -> Option<Size> {
    let spec = &object["spec"];
    let said = |field: &str| spec[field].as_u64();
    let simulated = object["kind"] == "SimMachine";
    Some(Size {
        cpus: said("cpus").or(simulated.then_some(2))?,
        memory_mib: said("memoryMiB").or(simulated.then_some(4096))?,
    })
}
