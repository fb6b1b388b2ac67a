//! `capstan adopt --unlock`: the cluster is managed here from now on. Refused while the old management cluster may
//! reconcile it, and while the plan has changes.

use anyhow::{Result, bail};
use capstan_capi_types::core::Cluster;
use capstan_controller::{KindName, Patch};
use capstan_object::{Key, Object as _};
use capstan_provider_kit::FrontEnd;
use serde_json::Value;

use super::record::{self, GENERATION, Record};
use super::refs::{Id, text};
use super::server_objects::members_of;
use super::source::Live;
use super::{Args, command};
use crate::apply::title;
use crate::connection::Management;
use crate::exit::Exit;
use crate::kinds::cluster_of;
use crate::output::{Action, ActionReport, Show as _, TextOptions};
use crate::plan::{self, Plan, Proposal, Resumption};

/// Most changed objects that an error lists.
const MOST: usize = 8;

pub async fn unlock(args: &Args, management: &Management, name: &str) -> Result<Exit> {
    let cluster: Cluster = management.find(name).await?;
    let Some(record) = Record::of(&cluster)? else {
        bail!(
            "cluster {name} was not imported by `capstan adopt`: `capstan resume {name} -n {}` resumes a paused cluster",
            management.namespace
        );
    };
    let mut report = ActionReport::new(args.output);
    if !record::is_locked(&cluster) {
        report.note(&format!("cluster {name} is not locked: it is managed here already"))?;
        report.finish()?;
        return Ok(Exit::Done);
    }
    check_source(args, management, &cluster, &record).await?;
    let plan = preview(management, &[cluster.key()]).await?;
    report.note(plan.text(&TextOptions::plain()).trim_end())?;
    if !plan.is_empty() && !args.accept_changes {
        report.finish()?;
        bail!(
            "cluster {name} is still locked: the plan has changes: --accept-changes takes over and carries them out"
        );
    }
    if !args.dry_run {
        let kind = KindName::of::<Cluster>();
        for patch in record::unlocking() {
            management.client.patch(&kind, &cluster.key(), None, &Patch::Merge(patch)).await?;
        }
    }
    let done = if args.dry_run { "would be managed" } else { "is managed" };
    let sentence =
        format!("cluster {name} {done} here; its objects in the old management cluster are still paused");
    report.record(action(name, "unlocked", args.dry_run, sentence))?;
    for manifest in paused_manifests(management, &cluster.key()).await? {
        report.note(&format!(
            "{} in namespace {} is paused, and so are its configs: docs/adopt.md says how to manage the cluster by them",
            title(&manifest),
            Id::of(&manifest).key.namespace
        ))?;
    }
    report.finish()?;
    Ok(Exit::Done)
}

/// The objects that the cluster is generated from and that controllers leave alone, without those that clusters share.
async fn paused_manifests(management: &Management, cluster: &Key) -> Result<Vec<Value>> {
    let members = members_of(management, cluster).await?;
    let own = members.into_iter().filter(|object| {
        super::front_ends(&management.plugins).any(|it| is_own(it, object) && it.is_paused(object))
    });
    Ok(own.collect())
}

/// Whether an object is a front end's and of one cluster.
fn is_own(front_end: &dyn FrontEnd, object: &Value) -> bool {
    let id = Id::of(object);
    let is_kind = |kind: &KindName| kind.group == id.group && kind.kind == id.kind;
    front_end.kinds().iter().any(is_kind) && !front_end.is_shared(object)
}

pub fn action(name: &str, what: &str, dry_run: bool, sentence: String) -> Action {
    Action { object: format!("cluster/{name}"), what: what.to_owned(), dry_run, sentence }
}

/// What happens when locked clusters are unlocked.
pub async fn preview(management: &Management, clusters: &[Key]) -> Result<Plan> {
    let resume = clusters.iter().map(|key| Resumption {
        kind: KindName::of::<Cluster>(),
        key: key.clone(),
        patches: record::unlocking().to_vec(),
    });
    plan::simulate(management, Proposal { resume: resume.collect(), ..Proposal::default() }).await
}

/// Refuses while the old management cluster may reconcile the cluster, or has changed it since the import.
async fn check_source(
    args: &Args,
    management: &Management,
    cluster: &Cluster,
    record: &Record,
) -> Result<()> {
    let key = cluster.key();
    let Some(file) = &args.from_kubeconfig else {
        if args.source_stopped {
            return Ok(());
        }
        let pause = command::pause("OLD", &key, true);
        bail!(
            "cluster {}: two management clusters must not reconcile it: pause it in the old one with `{pause}`, then add \
             --from-kubeconfig OLD, which checks that; --source-stopped if the old one is gone",
            key.name
        );
    };
    let namespace = args.from_namespace.as_deref().unwrap_or(&key.namespace);
    let live = Live::open(file, namespace, &management.plugins)?;
    if let Some(server) = record.server.as_deref().filter(|server| *server != live.server()) {
        bail!(
            "--from-kubeconfig {}: it is for {}, and cluster {} was imported from {server}: use the kubeconfig of that server",
            file.display(),
            live.server(),
            key.name
        );
    }
    let Some(old) = live.cluster(&key).await? else { return Ok(()) };
    if old["spec"]["paused"] != true {
        bail!(
            "cluster {}: spec.paused is not true in the old management cluster, which still reconciles it: run `{}`",
            key.name,
            command::pause(&live.kubeconfig.display().to_string(), &key, true)
        );
    }
    let ours = members_of(management, &key).await?;
    let mut theirs = live.objects().await?;
    theirs.extend(live.manifests().await?);
    for front_end in super::front_ends(&management.plugins) {
        let own = ours.iter().filter(|object| is_own(front_end, object)).map(Id::of);
        for id in own {
            let active = theirs.iter().find(|it| Id::of(it) == id && !front_end.is_paused(it));
            if active.is_some() {
                bail!(
                    "cluster {}: {id} is not paused in the old management cluster, whose controller would resume the cluster: \
                     apply the merge patch {} to it",
                    key.name,
                    front_end.pause()
                );
            }
        }
    }
    let changed = changed_since(&ours, &theirs);
    if !changed.is_empty() {
        let more = changed.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        bail!(
            "cluster {} changed in the old management cluster after the import: {}{more}: run `capstan adopt --rollback {} -n {}` \
             and import it again",
            key.name,
            changed[..changed.len().min(MOST)].join(", "),
            key.name,
            key.namespace
        );
    }
    Ok(())
}

/// Objects whose spec changed in the source, and Machines that were created or deleted there.
fn changed_since(imported: &[Value], source: &[Value]) -> Vec<String> {
    let mut changed = Vec::new();
    for ours in imported.iter().filter(|ours| !Id::of(ours).is_cluster()) {
        let id = Id::of(ours);
        let theirs = source.iter().find(|theirs| Id::of(theirs) == id);
        let generation = ours["metadata"]["annotations"][GENERATION].as_str();
        match (generation, theirs) {
            (None, _) => {}
            (Some(_), None) => changed.push(format!("{} is gone", title(ours))),
            (Some(old), Some(theirs)) => {
                if theirs["metadata"]["generation"].as_i64().is_some_and(|new| new.to_string() != old) {
                    changed.push(title(ours));
                }
            }
        }
    }
    let clusters: Vec<&str> =
        imported.iter().filter(|it| Id::of(it).is_cluster()).map(|it| text(it, "metadata.name")).collect();
    for theirs in source.iter().filter(|theirs| theirs["kind"] == "Machine") {
        let mine = cluster_of(theirs).is_some_and(|name| clusters.contains(&name));
        if mine && !imported.iter().any(|ours| Id::of(ours) == Id::of(theirs)) {
            changed.push(format!("{} is new", title(theirs)));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(name: &str, generation: i64, imported: Option<&str>) -> Value {
        let mut object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "namespace": "n", "generation": generation}, "spec": {"clusterName": "c"}});
        if let Some(old) = imported {
            object["metadata"]["annotations"] = json!({GENERATION: old});
        }
        object
    }

    #[test]
    fn changes_of_the_source_since_the_import_are_found() {
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "n", "annotations": {GENERATION: "1"}}});
        let ours = [
            cluster,
            machine("same", 1, Some("4")),
            machine("edited", 1, Some("4")),
            machine("gone", 1, Some("4")),
            machine("created-here", 1, None),
        ];
        let mut theirs = vec![machine("same", 4, None), machine("edited", 5, None), machine("new", 1, None)];
        theirs[0]["apiVersion"] = "cluster.x-k8s.io/v1beta1".into();
        assert_eq!(
            changed_since(&ours, &theirs),
            ["Machine/edited", "Machine/gone is gone", "Machine/new is new"]
        );
    }
}
