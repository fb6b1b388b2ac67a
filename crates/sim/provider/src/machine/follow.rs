//! Enqueues SimMachines when their machine changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_controller::Wake;
use capstan_object::Key;
use capstan_sim_site::{Changed, Changes, SiteHandle};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

/// Follows the changes of a site until it is dropped.
pub(super) struct Follower {
    site: SiteHandle,
    known: Arc<Mutex<BTreeMap<String, Key>>>,
    task: Mutex<Option<AbortHandle>>,
}

impl Follower {
    pub(super) fn new(site: SiteHandle) -> Self {
        Self { site, known: Arc::default(), task: Mutex::new(None) }
    }

    /// Enqueues an object whenever the machine of this id changes from now on.
    pub(super) fn follow(&self, id: &str, key: &Key, wake: impl FnOnce() -> Wake) {
        self.known.lock().entry(id.to_owned()).or_insert_with(|| key.clone());
        let mut task = self.task.lock();
        if task.is_none() {
            // Subscribe before the first read of any machine, so that no change is missed.
            let (changes, known, wake) = (self.site.changes(), self.known.clone(), wake());
            *task = Some(tokio::spawn(listen(changes, known, wake)).abort_handle());
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        self.known.lock().retain(|_, known| known != key);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

async fn listen(mut changes: Changes, known: Arc<Mutex<BTreeMap<String, Key>>>, wake: Wake) {
    while let Some(changed) = changes.next().await {
        match changed {
            Changed::Machine(id) => {
                let key = known.lock().get(&id).cloned();
                if let Some(key) = key {
                    wake.wake(&key);
                }
            }
            Changed::Any => known.lock().values().for_each(|key| wake.wake(key)),
        }
    }
}
