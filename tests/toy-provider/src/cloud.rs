//! What `plan`, `orphans` and `doctor` ask of harbours.

use std::path::{Path, PathBuf};

use capstan_controller::Client;
use capstan_provider_kit::{
    Amount, Capacity, CapacityAnswer, CapacityQuestion, Comparison, Counted, Difference, DifferenceKind,
    Drift, Finding, Inventory, Left, ProviderError, Quota, Removed, Unrecorded, served,
};
use futures::future::{BoxFuture, ready};

use crate::harbour::MARK;
use crate::types::{ToyCluster, ToyMachine};
use crate::{Toy, code};

/// The names of the berths in a harbour.
fn berths(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != MARK).collect()
}

impl Capacity for Toy {
    fn answer<'a>(&'a self, question: CapacityQuestion<'a>) -> BoxFuture<'a, CapacityAnswer> {
        let mut answer = CapacityAnswer::default();
        for cluster in question.growing() {
            let Some(harbour) = question.object("ToyCluster", &cluster) else { continue };
            let taken = berths(harbour["spec"]["directory"].as_str().unwrap_or_default()).len();
            let left = harbour["spec"]["berths"].as_i64().unwrap_or(0) - taken.try_into().unwrap_or(0);
            let mine = question.machines.iter().filter(|machine| machine.is_of("ToyMachine"));
            answer.quotas.push(Quota {
                scope: format!("harbour {}", cluster.name),
                machines: mine.map(|machine| machine.key.clone()).collect(),
                left: Ok(Left { machines: Some(Amount::Limited(left)), ..Left::default() }),
                others: Vec::new(),
                exceeded: code::FULL,
            });
        }
        Box::pin(ready(answer))
    }
}

impl Inventory for Toy {
    fn compare<'a>(&'a self, client: &'a Client, namespace: &'a str) -> BoxFuture<'a, Comparison> {
        Box::pin(async move {
            let recorded = served::<ToyMachine>(client, "").await?.unwrap_or_default();
            let mut drift = Drift::default();
            for harbour in served::<ToyCluster>(client, namespace).await?.unwrap_or_default() {
                let mut strays = berths(&harbour.spec.directory);
                strays.retain(|stray| recorded.iter().all(|machine| machine.metadata.name != *stray));
                drift.differences.extend(strays.iter().map(|stray| Difference {
                    how: DifferenceKind::Unrecorded,
                    what: format!("Berth/{stray}"),
                    place: format!("harbour {}", harbour.metadata.name),
                    says: "no ToyMachine stands for it".to_owned(),
                }));
                let files = strays.iter().map(|stray| Path::new(&harbour.spec.directory).join(stray));
                drift.unrecorded.push(Box::new(Strays(files.collect())));
            }
            Ok(drift)
        })
    }
}

struct Strays(Vec<PathBuf>);

impl Unrecorded for Strays {
    fn counts(&self) -> Counted {
        [("berth", self.0.len())].into()
    }

    fn remove(&self) -> BoxFuture<'_, Result<Removed, ProviderError>> {
        let gone = self.0.iter().filter(|stray| std::fs::remove_file(stray).is_ok()).count();
        Box::pin(ready(Ok(Removed { gone: [("berth", gone)].into(), kept: Vec::new() })))
    }
}

/// Whether the directories of harbours are ours.
pub async fn check(client: &Client) -> Vec<Finding> {
    let harbours = served::<ToyCluster>(client, "").await.ok().flatten().unwrap_or_default();
    let check = |harbour: &ToyCluster| match Path::new(&harbour.spec.directory).join(MARK).exists() {
        true => Finding::fine(format!("harbour {} is ours", harbour.metadata.name)),
        false => Finding::bad(format!("harbour {} is not there", harbour.metadata.name), "make it"),
    };
    harbours.iter().map(check).collect()
}
