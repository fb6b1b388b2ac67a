//! Counts all objects of a kind that ever existed, by their first event, however short-lived.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;

use crate::api::Api;

#[derive(Debug)]
pub struct Tally {
    uids: Arc<Mutex<BTreeSet<String>>>,
    task: JoinHandle<Result<()>>,
}

impl Tally {
    /// Counts existing objects and all later ones.
    pub async fn start(api: &Api, collection: &str) -> Result<Self> {
        let mut events = api.watch(&format!("{collection}?watch=true")).await?;
        let uids = Arc::<Mutex<BTreeSet<String>>>::default();
        let seen = uids.clone();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await? {
                let uid = event["object"]["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(uid);
            }
            Ok(())
        });
        Ok(Self { uids, task })
    }

    /// Number of objects so far.
    pub fn count(&self) -> Result<usize> {
        ensure!(!self.task.is_finished(), "the watch has ended");
        Ok(self.uids.lock().unwrap_or_else(std::sync::PoisonError::into_inner).len())
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.task.abort();
    }
}
