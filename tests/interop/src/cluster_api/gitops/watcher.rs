//! Watches objects and reads their progress as kstatus does. After Flux has reported a commit as applied, nothing may be
//! in progress again before the next commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow, ensure};
use capstan_object::kstatus::Progress;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::api::Api;

/// What users apply, and what it consists of.
pub const WATCHED: [&str; 7] = [
    "/apis/anywhere.eks.amazonaws.com/v1alpha1/clusters",
    "/apis/anywhere.eks.amazonaws.com/v1alpha1/cloudstackmachineconfigs",
    "/apis/anywhere.eks.amazonaws.com/v1alpha1/cloudstackdatacenterconfigs",
    "/apis/cluster.x-k8s.io/v1beta2/clusters",
    "/apis/cluster.x-k8s.io/v1beta2/machinedeployments",
    "/apis/controlplane.cluster.x-k8s.io/v1beta2/kubeadmcontrolplanes",
    "/apis/infrastructure.cluster.x-k8s.io/v1beta3/cloudstackclusters",
];

#[derive(Default)]
struct Seen {
    /// Objects that are current.
    current: BTreeSet<String>,
    /// How often an object has left that state since the last commit.
    left: BTreeMap<String, Vec<String>>,
    settled: bool,
    wrong: Vec<String>,
}

impl Seen {
    fn take(&mut self, event: &Value) {
        let object = &event["object"];
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name =
            format!("{} {}/{}", text(&object["apiVersion"]), text(&object["kind"]), text(&meta["name"]));
        if event["type"] == "DELETED" {
            self.current.remove(&name);
            return;
        }
        match Progress::of(object) {
            Progress::Current => {
                self.current.insert(name);
            }
            Progress::InProgress(why) | Progress::Failed(why) => {
                if !self.current.remove(&name) {
                    return;
                }
                let left = self.left.entry(name.clone()).or_default();
                left.push(why.clone());
                if self.settled {
                    self.wrong.push(format!("{name} was finished, and is in progress again: {why}"));
                } else if left.len() > 1 {
                    self.wrong.push(format!("{name} was current {} times: {}", left.len(), left.join("; ")));
                }
            }
            Progress::Terminating => {
                self.current.remove(&name);
            }
        }
    }
}

/// Running watches.
pub struct Watcher {
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Watcher {
    pub async fn start(api: &Api) -> Result<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks = Vec::new();
        for path in WATCHED {
            let mut events = api.watch(&format!("{path}?watch=1&timeoutSeconds=7200")).await?;
            let seen = seen.clone();
            tasks.push(tokio::spawn(async move {
                let ended = loop {
                    match events.next().await {
                        Ok(Some(event)) => {
                            if let Ok(mut seen) = seen.lock() {
                                seen.take(&event);
                            }
                        }
                        Ok(None) => break "the server closed it".to_owned(),
                        Err(error) => break format!("{error:#}"),
                    }
                };
                if let Ok(mut seen) = seen.lock() {
                    seen.wrong.push(format!("the watch of {path} ended: {ended}"));
                }
            }));
        }
        Ok(Self { seen, tasks })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Seen) -> T) -> Result<T> {
        Ok(act(&mut *self.seen.lock().map_err(|_| anyhow!("a watch panicked"))?))
    }

    /// A commit follows.
    pub fn expect_changes(&self) -> Result<()> {
        self.with(|seen| {
            seen.settled = false;
            seen.left.clear();
        })
    }

    /// Everything is finished.
    pub fn settled(&self) -> Result<()> {
        self.with(|seen| seen.settled = true)
    }

    /// Fails if somebody who waits was misled.
    pub fn judge(&self) -> Result<()> {
        let wrong = self.with(|seen| seen.wrong.clone())?;
        ensure!(wrong.is_empty(), "misleading status:\n{}", wrong.join("\n"));
        Ok(())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
