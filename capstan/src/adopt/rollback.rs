//! `capstan adopt --rollback`: gives a cluster back to its old management cluster. Its objects are removed here; nothing
//! changes in the cloud.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use capstan_capi_types::core::Cluster;
use capstan_controller::{KindName, Patch};
use capstan_object::{Key, Object as _};
use serde_json::Value;

use super::record::{self, Record, is_marked};
use super::refs::{Id, text};
use super::remove::{Target, remove};
use super::server_objects::members;
use super::unlock::action;
use super::{Args, command};
use crate::apply::title;
use crate::connection::Management;
use crate::exit::Exit;
use crate::kinds::cluster_of;
use crate::output::ActionReport;

/// For controllers to notice the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// Objects that appear while others are removed are found in the next round.
const MAX_ROUNDS: usize = 5;

pub async fn rollback(args: &Args, management: &Management, name: &str) -> Result<Exit> {
    let cluster: Cluster = management.find(name).await?;
    let key = cluster.key();
    let Some(record) = Record::of(&cluster)? else {
        bail!("cluster {name} was not imported by `capstan adopt`: there is nothing to give back");
    };
    let mut report = ActionReport::new(args.output);
    let found = members(management, &key).await?;
    refuse_changed(&found, &key, &record)?;
    let count = found.len();
    if !args.dry_run {
        pause(management, &found).await?;
        if !record::is_locked(&cluster) {
            let patch = Patch::Merge(record::locked());
            management.client.patch(&KindName::of::<Cluster>(), &key, None, &patch).await?;
            wait_until_paused(management, &key).await?;
            // Controllers may have finished something in between.
            refuse_changed(&members(management, &key).await?, &key, &record)?;
        }
        remove_all(management, &key).await?;
    }
    let done = if args.dry_run { "would be removed" } else { "removed" };
    let resume = command::pause("OLD", &key, false);
    let sentence = format!(
        "cluster {name}: {count} objects {done}; nothing was changed in the cloud\n\
         if it is paused in the old management cluster, resume it: {resume}"
    );
    report.record(action(name, "rolled back", args.dry_run, sentence))?;
    report.finish()?;
    Ok(Exit::Done)
}

/// Pauses what the cluster is generated from, so that nothing is generated while objects are removed.
async fn pause(management: &Management, members: &[(KindName, Value)]) -> Result<()> {
    for front_end in super::front_ends(&management.plugins) {
        let kinds = front_end.kinds();
        for (kind, object) in members.iter().filter(|(kind, _)| kinds.contains(kind)) {
            if !front_end.is_paused(object) {
                let patch = Patch::Merge(front_end.pause());
                management.client.patch(kind, &Id::of(object).key, None, &patch).await?;
            }
        }
    }
    Ok(())
}

/// The old management cluster does not know machines that were created here, and would create deleted ones again.
fn refuse_changed(members: &[(KindName, Value)], cluster: &Key, record: &Record) -> Result<()> {
    let machines: Vec<&Value> =
        members.iter().map(|(_, object)| object).filter(|it| it["kind"] == "Machine").collect();
    let new: Vec<String> = machines.iter().filter(|it| !is_marked(it, cluster)).map(|it| title(it)).collect();
    if !new.is_empty() || machines.len() != record.machines {
        let what = match new.as_slice() {
            [] => format!("{} of its {} machines are left", machines.len(), record.machines),
            new => format!("{} was created after the import", new.join(", ")),
        };
        bail!(
            "cluster {} cannot be given back: {what}: `clusterctl move` moves it to another management cluster in its current state",
            cluster.name
        );
    }
    Ok(())
}

/// Waits until every object that has a `Paused` condition reports it.
async fn wait_until_paused(management: &Management, cluster: &Key) -> Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let found = members(management, cluster).await?;
        let active: Vec<String> =
            found.iter().map(|(_, it)| it).filter(|it| is_active(it, cluster)).map(title).collect();
        if active.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!(
                "cluster {} is locked again, and its controllers do not report it: {}: check that the server runs, then repeat \
                 the rollback",
                cluster.name,
                active.join(", ")
            );
        }
        tokio::time::sleep(POLL).await;
    }
}

/// What belongs to no single cluster, such as a ClusterResourceSet, has no part in the lock.
fn is_active(object: &Value, cluster: &Key) -> bool {
    let bound = Id::of(object).is_cluster() || cluster_of(object) == Some(cluster.name.as_str());
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    bound && conditions.into_iter().any(|it| it["type"] == "Paused" && it["status"] == "False")
}

/// Removes everything, the Cluster last: without it its objects are not locked.
async fn remove_all(management: &Management, cluster: &Key) -> Result<()> {
    let target = |(kind, object): &(KindName, Value)| {
        let uid = text(object, "metadata.uid").to_owned();
        Target { kind: kind.clone(), key: Id::of(object).key, uid }
    };
    for _ in 0..MAX_ROUNDS {
        let found = members(management, cluster).await?;
        let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, it)| Id::of(it).is_cluster());
        if others.is_empty() {
            return remove(&management.client, &own.iter().map(target).collect::<Vec<_>>()).await;
        }
        remove(&management.client, &others.iter().map(target).collect::<Vec<_>>()).await?;
    }
    bail!(
        "cluster {}: objects are created again while they are removed; it is still locked: repeat the rollback",
        cluster.name
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_whose_machines_changed_is_not_given_back() {
        let machine = |name: &str, imported: bool| {
            let mut object = json!({"kind": "Machine", "metadata": {"name": name}});
            if imported {
                record::mark(&mut object, &Key::new("n", "c"));
            }
            (KindName::namespaced("cluster.x-k8s.io", "v1beta2", "Machine", "machines"), object)
        };
        let record = Record { server: None, machines: 2 };
        let check = |machines: &[(KindName, Value)]| {
            refuse_changed(machines, &Key::new("n", "c"), &record).map_err(|it| it.to_string())
        };
        assert_eq!(check(&[machine("a", true), machine("b", true)]), Ok(()));
        let deleted = check(&[machine("a", true)]).expect_err("refused");
        assert!(deleted.contains("1 of its 2 machines are left"), "{deleted}");
        let replaced = check(&[machine("a", true), machine("new", false)]).expect_err("refused");
        assert!(replaced.contains("Machine/new was created after the import"), "{replaced}");
    }
}
