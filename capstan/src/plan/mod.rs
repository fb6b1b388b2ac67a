//! `capstan plan`: preview of a change, by running it on a copy.
//!
//! ```text
//! manifest ─┬─ dry run on the server ──▶ changes.rs: changed objects
//!           └─ applied to the copy ────▶ capstan-rehearsal: created and deleted machines
//! server ── snapshot.rs ──▶ the copy     warnings.rs: what may block the change     report.rs: output
//!   copy ── clusters of a class ───────▶ topologies.rs: rotated templates, replaced machines
//!          (only.rs: one cluster)   direct.rs: what clouds refuse where nothing can be simulated
//! clouds ── quota, images, sizes ──────▶ capacity.rs: whether there is capacity
//!   └───── clusters to be resumed ─────▶ cloud.rs: calls that would change something there
//! ```
//!
//! Nothing is written: the copy is in this process. Secrets do not leave it, except that credentials of a cloud are used to
//! query that cloud.

mod capacity;
mod changes;
mod cloud;
mod counts;
mod direct;
mod networks;
mod only;
mod report;
mod snapshot;
mod topologies;
mod warnings;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capstan_capi_plane::{Extensions, Settings};
use capstan_capi_types::core::{Cluster, ClusterClass};
use capstan_controller::{ApiError, Client, Deletion, KindName, ListOptions, Patch};
use capstan_guest::Timings;
use capstan_object::Key;
use capstan_rehearsal::{Edit, Rehearsal, rehearse};
use futures::FutureExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::apply::{Applier, read_all};
use crate::change;
use crate::connection::{ConnectionArgs, Management, is_unreachable};
use crate::exit::Exit;
use crate::kinds::list;
use crate::output::{OutputArgs, Show as _, TextOptions, eprint_line};
use crate::plugins::Plugins;
use cloud::CloudPreview;
use topologies::Named;
use warnings::Before;

pub use report::Plan;

/// Annotation of clusters of the copy that are to be reconciled.
const WOKEN: &str = "capstan.dev/plan";

/// Commands copy only the cluster that they name where there are more, and `up` skips the plan: it would take more than a
/// second or two.
const MOST_CLUSTERS: usize = 10;

/// Arguments of `capstan plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Manifest, or directory of manifests, to preview; several are applied in order, `-` is stdin
    #[arg(long = "filename", short = 'f', value_name = "FILE", required_unless_present = "delete")]
    files: Vec<PathBuf>,
    /// Object to delete, such as machinedeployment/workers; after the manifests
    #[arg(long, value_name = "KIND/NAME")]
    delete: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// A change to preview.
#[derive(Debug, Clone, Default)]
pub struct Proposal {
    pub apply: Vec<Value>,
    /// Patched after `apply`, in the namespace of the command.
    pub patch: Vec<change::Change>,
    /// Deleted last.
    pub delete: Vec<(KindName, Key)>,
    /// Paused clusters to resume. This alone is no change: the plan has what follows from it, also in clouds.
    pub resume: Vec<Resumption>,
}

/// A paused cluster to resume.
#[derive(Debug, Clone)]
pub struct Resumption {
    pub kind: KindName,
    pub key: Key,
    /// Merge patches, sent in order.
    pub patches: Vec<Value>,
}

/// Prints the plan; [`Exit::Differs`] if anything changes.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let apply = read_all(&args.files)?;
    let plan = args.connection.run(plugins, async |management| {
        let mut delete = Vec::new();
        for word in &args.delete {
            delete.push(resolve(&management, word).await?);
        }
        simulate(&management, Proposal { apply, delete, ..Proposal::default() }).await
    })?;
    args.output.show(&plan)?;
    Ok(if plan.is_empty() { Exit::Done } else { Exit::Differs })
}

/// Resolves `KIND/NAME` to an existing object.
async fn resolve(management: &Management, word: &str) -> Result<(KindName, Key)> {
    let Some((kind, name)) = word.split_once('/') else {
        bail!("--delete {word}: expected KIND/NAME, such as machinedeployment/workers");
    };
    let kind = crate::get::kind(management, kind).await?;
    let key = Key::new(management.namespace.as_str(), name);
    if management.client.get_raw(&kind, &key).await?.is_none() {
        bail!("{} {name} does not exist in namespace {}", kind.kind, management.namespace);
    }
    Ok((kind, key))
}

/// Simulates the change of a command on a cluster. Refuses what the cloud cannot do, such as machines of a version that
/// their image does not have, and prints warnings; with `dry_run` the whole plan.
pub async fn check(
    management: &Management,
    cluster: &str,
    changes: &[change::Change],
    dry_run: bool,
) -> Result<()> {
    let proposal = Proposal { patch: changes.to_vec(), ..Proposal::default() };
    check_proposal(management, cluster, proposal, dry_run).await
}

/// Like [`check`], for changes with new objects.
pub async fn check_proposal(
    management: &Management,
    cluster: &str,
    proposal: Proposal,
    dry_run: bool,
) -> Result<()> {
    if proposal.apply.is_empty() && proposal.patch.is_empty() {
        return Ok(());
    }
    let key = Key::new(management.namespace.as_str(), cluster);
    let only = if clusters(management).await? > MOST_CLUSTERS { Some(&key) } else { None };
    let plan = match simulate_within(management, proposal.clone(), only).await {
        Ok(plan) => plan,
        Err(error) if is_unreachable(&error) => return Err(error),
        // The server says why when the change is sent.
        Err(error) => {
            eprint_line(&format!("no plan: {error:#}"));
            match direct::refused(management, &key, &proposal).await {
                Ok(refused) => return refuse(&refused),
                Err(error) => eprint_line(&format!("the cloud was not asked about the change: {error:#}")),
            }
            return Ok(());
        }
    };
    refuse(&plan.refused(&key))?;
    if dry_run {
        eprint_line(plan.text(&TextOptions::plain()).trim_end());
    } else {
        plan.warnings().iter().for_each(|warning| eprint_line(&format!("warning: {warning}")));
    }
    Ok(())
}

fn refuse(refused: &[impl AsRef<str>]) -> Result<()> {
    let refused: Vec<&str> = refused.iter().map(AsRef::as_ref).collect();
    if !refused.is_empty() {
        bail!("{}\nnothing was changed; --no-plan skips this check", refused.join("\n"));
    }
    Ok(())
}

async fn clusters(management: &Management) -> Result<usize> {
    let there = management.client.list_all::<Cluster>(&management.namespace, &ListOptions::default()).await?;
    Ok(there.len())
}

/// Like [`simulate`]; `None` with a note if too many clusters would have to be copied.
pub async fn preview(management: &Management, proposal: Proposal) -> Result<Option<Plan>> {
    let there = clusters(management).await?;
    if there > MOST_CLUSTERS {
        eprint_line(&format!(
            "{there} clusters in namespace {}: the plan is skipped; `capstan plan` prints it",
            management.namespace
        ));
        return Ok(None);
    }
    simulate(management, proposal).await.map(Some)
}

/// Runs a change on a copy of the clusters and checks it against the clouds.
pub async fn simulate(management: &Management, proposal: Proposal) -> Result<Plan> {
    simulate_within(management, proposal, None).await
}

/// Like [`simulate`]; other clusters than `only` are not copied.
async fn simulate_within(management: &Management, proposal: Proposal, only: Option<&Key>) -> Result<Plan> {
    let mut changes = changes::of(management, &proposal.apply).await?;
    changes.extend(changes::of_patches(management, &proposal.patch).await?);
    changes.extend(proposal.delete.iter().map(|(kind, key)| changes::Change::deletion(kind, key)));
    let kinds = snapshot::kinds(&management.plugins, &management.client).await;
    let mut namespaces = snapshot::namespaces(&proposal.apply, &management.namespace);
    namespaces.extend(proposal.patch.iter().map(|_| management.namespace.clone()));
    namespaces.extend(proposal.delete.iter().map(|(_, key)| key.namespace.clone()));
    namespaces.extend(proposal.resume.iter().map(|resumed| resumed.key.namespace.clone()));
    let named = named(&proposal, &management.namespace);
    namespaces.extend(snapshot::users(&management.client, &management.namespace, &named).await?);
    let mut records = snapshot::records(&management.client, &kinds, &namespaces).await?;
    if let Some(cluster) = only {
        only::keep(&mut records, cluster);
    }
    let classes = snapshot::classes(&management.client, &kinds, &namespaces, &records, &proposal.apply);
    records.0.extend(classes.await?);
    let before = Before::of(&records);
    let in_cloud = match proposal.resume.as_slice() {
        [] => CloudPreview::default(),
        resumed => {
            let preview = cloud::preview(management, &records, &kinds, resumed).await?;
            // In the simulation nobody resets what the controllers of providers reported about the pause.
            snapshot::drop_paused_conditions(&mut records);
            preview
        }
    };
    let rehearsal = Rehearsal {
        records,
        kinds,
        // A simulation must not call what a real upgrade would.
        settings: Settings { extensions: Arc::new(Extensions::simulated()), ..Settings::default() },
        now: Timestamp::now(),
        timings: Timings::default(),
        models: management.plugins.models(),
        edit: edit(proposal.clone(), management.namespace.clone(), named.clone()),
    };
    // It uses a paused clock, which needs a runtime of its own.
    let course = tokio::task::spawn_blocking(move || rehearse(rehearsal)).await?;
    let course = course.context("cannot simulate the change")?;
    let answers = capacity::check(&management.plugins, &management.client, &proposal.apply, &course).await;
    let mut warnings = warnings::of(&management.plugins, &management.client, &before, &course).await;
    warnings.extend(in_cloud.warnings);
    let topologies = topologies::of(&named, &course);
    let plan = Plan::new(changes, course, answers, warnings);
    Ok(plan.with_topologies(topologies).calling(in_cloud.calls))
}

/// Kind and key of everything that a change names.
fn named(proposal: &Proposal, namespace: &str) -> Vec<Named> {
    let applied = proposal.apply.iter().map(|object| {
        let mut key = topologies::key_of(object);
        if key.namespace.is_empty() {
            key.namespace = namespace.to_owned();
        }
        (object["kind"].as_str().unwrap_or_default().to_owned(), key)
    });
    let patched = proposal.patch.iter().map(|change| (&change.kind, Key::new(namespace, &change.name)));
    let deleted = proposal.delete.iter().map(|(kind, key)| (kind, key.clone()));
    let others = patched.chain(deleted).map(|(kind, key)| (kind.kind.to_string(), key));
    applied.chain(others).collect()
}

/// Applies the change to the copy.
fn edit(proposal: Proposal, namespace: String, named: Vec<Named>) -> Edit {
    let (proposal, named) = (Arc::new(proposal), Arc::new(named));
    Box::new(move |client| {
        let (proposal, namespace, named) = (proposal.clone(), namespace.clone(), named.clone());
        let done = async move {
            let mut applier = Applier::new(&client, &namespace);
            for object in &proposal.apply {
                applier.apply(object).await.map_err(|error| format!("{error:#}"))?;
            }
            for change in &proposal.patch {
                let key = Key::new(namespace.as_str(), change.name.as_str());
                let patched =
                    client.patch(&change.kind, &key, None, &Patch::Merge(change.patch.clone())).await;
                patched.map_err(|error| format!("cannot change {} {key}: {error}", change.kind.kind))?;
            }
            for Resumption { kind, key, patches } in &proposal.resume {
                for patch in patches {
                    let resumed = client.patch(kind, key, None, &Patch::Merge(patch.clone())).await;
                    resumed.map_err(|error| format!("cannot resume {} {key}: {error}", kind.kind))?;
                }
            }
            for (kind, key) in &proposal.delete {
                let deleted = client.delete(kind, key, &Deletion::default()).await;
                deleted.map_err(|error| format!("cannot delete {} {key}: {error}", kind.kind))?;
            }
            wake(&client, &named).await.map_err(|error| format!("cannot reconcile the clusters: {error}"))
        };
        done.boxed()
    })
}

/// Has clusters reconciled whose class refers to a template of the change: a changed template alone does not do that.
async fn wake(client: &Client, named: &[Named]) -> Result<(), ApiError> {
    if !named.iter().any(|(kind, _)| kind.ends_with("Template")) {
        return Ok(());
    }
    let classes = list(client, &KindName::of::<ClusterClass>(), "").await?;
    let classes: Vec<Key> = topologies::referring(&classes, named).collect();
    for cluster in list(client, &KindName::of::<Cluster>(), "").await? {
        if topologies::class_of(&cluster).is_some_and(|class| classes.contains(&class)) {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {WOKEN: ""}}}));
            // A cluster that does not fit its class any more is refused, and its controller says so.
            let _ =
                client.patch(&KindName::of::<Cluster>(), &topologies::key_of(&cluster), None, &patch).await;
        }
    }
    Ok(())
}
