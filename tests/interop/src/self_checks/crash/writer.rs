//! Clients that write constantly and record every acknowledged write.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::ledger::Acknowledged;
use super::{COLLECTION, Gate, LABEL, parse_count, parse_revision};
use crate::api::{Api, Reply, content};

/// Last known state of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    uid: String,
    revision: u64,
    count: u64,
}

/// A writer with objects of its own: the stored state must be what it was last acknowledged.
#[derive(Debug)]
pub struct Writer {
    api: Api,
    gate: Gate,
    rng: StdRng,
    names: Vec<String>,
    known: Vec<Option<Known>>,
    count: u64,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    /// Writes whose response was lost.
    pub in_doubt: usize,
}

enum Intent {
    Put(u64),
    Delete,
}

impl Writer {
    pub fn new(
        number: usize,
        seed: u64,
        api: Api,
        gate: Gate,
        acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    ) -> Self {
        let names: Vec<_> = (0..4).map(|object| format!("w{number}-{object}")).collect();
        let rng = StdRng::seed_from_u64(seed.wrapping_add(number as u64));
        Self { api, gate, rng, known: vec![None; names.len()], names, count: 0, acknowledged, in_doubt: 0 }
    }

    /// Writes until the run is over.
    pub async fn run(mut self) -> Result<Self> {
        while self.gate.open().await {
            let which = self.rng.random_range(0..self.names.len());
            self.count += 1;
            self.write(which).await?;
        }
        Ok(self)
    }

    async fn write(&mut self, which: usize) -> Result<()> {
        let name = self.names[which].clone();
        let path = format!("{COLLECTION}/{name}");
        let count = self.count;
        let (intent, answer) = match &self.known[which] {
            None => (Intent::Put(count), self.api.post(COLLECTION, &object(&name, count, None)).await),
            Some(known) => match self.rng.random_range(0..10) {
                0 | 1 => (Intent::Delete, self.api.delete(&path).await),
                2 | 3 => {
                    let patch = json!({"data": {"count": count.to_string()}});
                    (Intent::Put(count), self.api.patch(&path, content::MERGE_PATCH, &patch).await)
                }
                _ => {
                    let body = object(&name, count, Some(known.revision));
                    (Intent::Put(count), self.api.put(&path, &body).await)
                }
            },
        };
        match answer {
            Ok(reply) if reply.status.is_success() => self.accept(which, &intent, reply).await,
            // A server that shuts down may return a 5xx. Any other error to a valid request is a failure.
            Ok(reply) if reply.status.as_u16() < 500 => {
                bail!(
                    "{name}: {} to a write that must succeed: {}",
                    reply.status,
                    String::from_utf8_lossy(&reply.body)
                )
            }
            _ => self.resolve(which, &intent).await,
        }
    }

    async fn accept(&mut self, which: usize, intent: &Intent, reply: Reply) -> Result<()> {
        let name = self.names[which].clone();
        match intent {
            Intent::Put(count) => {
                let known = known(&reply.json()?)?;
                ensure!(known.count == *count, "{name}: wrote {count}, the answer says {}", known.count);
                let promise = Acknowledged::Put { revision: known.revision, name, count: *count };
                self.acknowledged.lock().await.push(promise);
                self.known[which] = Some(known);
            }
            Intent::Delete => {
                if let Some(known) = self.known[which].take() {
                    self.acknowledged.lock().await.push(Acknowledged::Deleted { name, uid: known.uid });
                }
            }
        }
        Ok(())
    }

    /// Resolves a write whose response was lost: the stored state must be either the one before or the requested one.
    async fn resolve(&mut self, which: usize, intent: &Intent) -> Result<()> {
        self.in_doubt += 1;
        let path = format!("{COLLECTION}/{}", self.names[which]);
        let found = loop {
            if !self.gate.reopened().await {
                return Ok(());
            }
            match self.api.get(&path).await {
                Ok(reply) if reply.status == 404 => break None,
                Ok(reply) if reply.status.is_success() => break Some(known(&reply.json()?)?),
                _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        };
        let before = &self.known[which];
        let done = match intent {
            Intent::Put(count) => found.as_ref().is_some_and(|found| found.count == *count),
            Intent::Delete => found.is_none(),
        };
        if !done && found != *before {
            bail!("{}: acknowledged was {before:?}, after the crash there is {found:?}", self.names[which]);
        }
        self.known[which] = found;
        Ok(())
    }
}

fn object(name: &str, count: u64, revision: Option<u64>) -> Value {
    let mut metadata = json!({"name": name, "labels": {LABEL: "yes"}});
    if let Some(revision) = revision {
        metadata["resourceVersion"] = revision.to_string().into();
    }
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
           "data": {"count": count.to_string(), "ballast": "x".repeat(200)}})
}

fn known(object: &Value) -> Result<Known> {
    Ok(Known {
        uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
        revision: parse_revision(object)?,
        count: parse_count(object)?,
    })
}
