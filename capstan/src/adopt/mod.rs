//! `capstan adopt`: takes over clusters of another management cluster.
//!
//! ```text
//! source.rs: export or live ──▶ graph.rs: objects of a cluster ──▶ check.rs: what is missing
//!                                        └──▶ import.rs: created here, locked ──▶ plan
//! unlock.rs: source paused, no changes ──▶ lock removed        rollback.rs ──▶ remove.rs: objects removed, cloud untouched
//! ```
//!
//! The lock is an annotation of the Cluster, which all controllers respect. What has to be known of a cloud is in the
//! `Adoption` of its provider.

mod check;
mod command;
mod graph;
mod import;
mod record;
mod refs;
mod remove;
mod rollback;
mod server_objects;
mod source;
mod unlock;

use std::path::PathBuf;

use anyhow::{Result, bail};
use capstan_capi_core::secret::Secret;
use capstan_capi_types::core::Cluster;
use capstan_object::Key;
use capstan_provider_kit::{Adoption, FrontEnd};
use serde_json::Value;

use crate::connection::{ConnectionArgs, Management};
use crate::exit::Exit;
use crate::output::{ActionReport, OutputArgs, Show as _, TextOptions};
use crate::plugins::Plugins;
use check::Checked;
use graph::Objects;
use import::Import;
use record::Record;
use refs::{Id, text};
use source::Live;

pub use record::is_locked;

/// Arguments of `capstan adopt`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Export of the old management cluster to import: a file, or a directory of `clusterctl move --to-directory`
    #[arg(conflicts_with_all = ["unlock", "rollback", "from_kubeconfig"])]
    source: Option<PathBuf>,
    /// Take over an imported cluster: controllers act on it from now on
    #[arg(long, value_name = "CLUSTER", conflicts_with = "rollback")]
    unlock: Option<String>,
    /// Give an imported cluster back: remove its objects here, and change nothing in the cloud
    #[arg(long, value_name = "CLUSTER")]
    rollback: Option<String>,
    /// Kubeconfig of the old management cluster: import from it, or check it before --unlock
    #[arg(long, value_name = "FILE", conflicts_with = "rollback")]
    from_kubeconfig: Option<PathBuf>,
    /// Namespace in the old management cluster; defaults to --namespace
    #[arg(long, value_name = "NAMESPACE", requires = "from_kubeconfig")]
    from_namespace: Option<String>,
    /// Import only this cluster of the source
    #[arg(long, value_name = "CLUSTER", conflicts_with_all = ["unlock", "rollback"])]
    cluster: Option<String>,
    /// With --unlock: the old management cluster does not run any more and cannot be checked
    #[arg(long, requires = "unlock", conflicts_with = "from_kubeconfig")]
    source_stopped: bool,
    /// With --unlock: take over although the plan has changes
    #[arg(long, requires = "unlock")]
    accept_changes: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Validate on the server and print what would happen; change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Imports, unlocks or rolls back; [`Exit::Differs`] if the plan of an import has changes.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    if let Some(name) = &args.unlock {
        return args
            .connection
            .run(plugins, async |management| unlock::unlock(args, &management, name).await);
    }
    if let Some(name) = &args.rollback {
        return args
            .connection
            .run(plugins, async |management| rollback::rollback(args, &management, name).await);
    }
    args.connection.run(plugins, async |management| {
        let (objects, live) = read(args, &management).await?;
        import(args, &management, objects, live.as_ref()).await
    })
}

/// The objects of the source.
async fn read(args: &Args, management: &Management) -> Result<(Vec<Value>, Option<Live>)> {
    match (&args.source, &args.from_kubeconfig) {
        (Some(path), None) => Ok((source::export(path, &management.namespace)?, None)),
        (None, Some(file)) => {
            let namespace = args.from_namespace.as_deref().unwrap_or(&management.namespace);
            let live = Live::open(file, namespace, &management.plugins)?;
            let mut objects = live.objects().await?;
            objects.extend(live.manifests().await?);
            let mut known: Vec<Key> =
                objects.iter().filter(|it| it["kind"] == "Secret").map(|it| Id::of(it).key).collect();
            for adoption in adoptions(&management.plugins) {
                let references = adoption.credentials(&objects);
                for reference in references {
                    if !known.contains(&reference.secret) {
                        objects.extend(live.secret(&reference.secret).await?);
                        known.push(reference.secret);
                    }
                }
            }
            Ok((objects, Some(live)))
        }
        _ => bail!(
            "nothing to do: name an export, or use --from-kubeconfig FILE, --unlock CLUSTER or --rollback CLUSTER"
        ),
    }
}

fn adoptions(plugins: &Plugins) -> impl Iterator<Item = &dyn Adoption> {
    plugins.providers().filter_map(|provider| provider.adoption())
}

fn front_ends(plugins: &Plugins) -> impl Iterator<Item = &dyn FrontEnd> {
    plugins.providers().filter_map(|provider| provider.front_end())
}

async fn import(
    args: &Args,
    management: &Management,
    objects: Vec<Value>,
    live: Option<&Live>,
) -> Result<Exit> {
    let mut found: Vec<Key> = objects.iter().map(Id::of).filter(Id::is_cluster).map(|id| id.key).collect();
    found.sort();
    found.dedup();
    let names: Vec<&str> = found.iter().map(|key| key.name.as_str()).collect();
    if let Some(name) = args.cluster.as_deref().filter(|name| !names.contains(name)) {
        bail!("--cluster {name}: the source does not have it; its clusters are: {}", names.join(", "));
    }
    let wanted = |key: &&Key| args.cluster.as_ref().is_none_or(|name| *name == key.name);
    let clusters: Vec<Key> = found.iter().filter(wanted).cloned().collect();
    if clusters.is_empty() {
        bail!("the source has no Cluster of cluster.x-k8s.io: export one with all its objects");
    }
    let source = Objects::new(objects);
    let mut problems = Vec::new();
    let mut prepared = Vec::new();
    for key in &clusters {
        refuse_existing(management, key).await?;
        let (mut members, of_cluster) = prepare(management, &source, key).await?;
        let mut manifests = Vec::new();
        for front_end in front_ends(&management.plugins) {
            let found = front_end.manifests(source.all(), key);
            members.iter_mut().for_each(|member| front_end.connect(member, &found));
            manifests.push(found);
        }
        prepared.push((key, members, manifests));
        problems.extend(of_cluster);
    }
    if !problems.is_empty() {
        problems.dedup();
        bail!("{}\nnothing was imported", problems.join("\n"));
    }
    let mut report = ActionReport::new(args.output);
    let front_ends: Vec<&dyn FrontEnd> = front_ends(&management.plugins).collect();
    for (key, members, manifests) in &prepared {
        let machines = members.iter().filter(|it| it["kind"] == "Machine").count();
        let record = Record { server: live.map(|live| live.server().to_owned()), machines };
        let import = Import {
            client: &management.client,
            source: &source,
            cluster: key,
            record: &record,
            front_ends: &front_ends,
        };
        let count = import.run(members, manifests, args.dry_run).await?;
        let done = if args.dry_run { "would be imported" } else { "imported" };
        let sentence =
            format!("cluster {}: {count} objects {done} into namespace {}, locked", key.name, key.namespace);
        report.record(unlock::action(&key.name, "imported", args.dry_run, sentence))?;
    }
    let mut exit = Exit::Done;
    if !args.dry_run {
        let plan = unlock::preview(management, &clusters).await?;
        report.note(plan.text(&TextOptions::plain()).trim_end())?;
        if !plan.is_empty() {
            exit = Exit::Differs;
        }
        for key in &clusters {
            report.note(&next_steps(key, live))?;
        }
    }
    report.finish()?;
    Ok(exit)
}

fn next_steps(cluster: &Key, live: Option<&Live>) -> String {
    let old = live.map_or_else(|| "OLD".to_owned(), |live| live.kubeconfig.display().to_string());
    let Key { namespace, name } = cluster;
    format!(
        "pause it in the old management cluster: {}\n\
         take over: capstan adopt --unlock {name} -n {namespace} --from-kubeconfig {old}\n\
         give back: capstan adopt --rollback {name} -n {namespace}",
        command::pause(&old, cluster, true)
    )
}

/// Refuses to import a cluster whose name is taken.
async fn refuse_existing(management: &Management, key: &Key) -> Result<()> {
    let Some(cluster) = management.client.get::<Cluster>(key).await? else { return Ok(()) };
    let Key { namespace, name } = key;
    if Record::of(&cluster)?.is_none() {
        bail!(
            "cluster {name} exists in namespace {namespace} and was not imported: metadata.name must be free to import it"
        );
    }
    match is_locked(&cluster) {
        true => bail!(
            "cluster {name} is already imported into namespace {namespace} and locked: `capstan adopt --unlock {name} -n {namespace}` takes it \
             over, `capstan adopt --rollback {name} -n {namespace}` gives it back"
        ),
        false => bail!("cluster {name} is already imported into namespace {namespace} and managed here"),
    }
}

/// The objects of a cluster, owners first, and why they cannot be imported.
async fn prepare(management: &Management, source: &Objects, key: &Key) -> Result<(Vec<Value>, Vec<String>)> {
    let of_cluster = source.members(key, &[])?;
    let supported: Vec<&str> = adoptions(&management.plugins).map(Adoption::cluster_kind).collect();
    let cluster = of_cluster.iter().find(|it| Id::of(it).is_cluster()).cloned().unwrap_or_default();
    let kind = text(&cluster, "spec.infrastructureRef.kind");
    let provider = adoptions(&management.plugins).find(|adoption| adoption.cluster_kind() == kind);
    let credentials = provider.map(|provider| provider.credentials(&of_cluster)).unwrap_or_default();
    let also: Vec<Id> = credentials
        .iter()
        .map(|it| Id { group: String::new(), kind: "Secret".to_owned(), key: it.secret.clone() })
        .collect();
    let mut members = source.members(key, &also)?;
    let mut existing_secrets = Vec::new();
    for reference in &credentials {
        if management.client.get::<Secret>(&reference.secret).await?.is_some() {
            existing_secrets.push(reference.secret.clone());
        }
    }
    let checked =
        Checked { source, members: &members, cluster: &cluster, existing_secrets: &existing_secrets };
    let problems = checked.problems(provider, &supported);
    // Credentials that the server has already are used as they are.
    members.retain(|it| it["kind"] != "Secret" || !existing_secrets.contains(&Id::of(it).key));
    // Of this cluster alone: what is recorded of another must not become its own.
    if let Some(provider) = provider {
        provider.record(&mut members);
    }
    Ok((members, problems))
}
