//! Look-ups of what changes rarely: zones, offerings, templates.
//!
//! What was not found is not remembered, because somebody is probably about to make it. Callers that ask for the same
//! thing at the same time share one request.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::client::Client;
use crate::command::Stable;
use crate::credentials::Credentials;
use crate::error::Error;

/// Questions remembered at most; past that all are forgotten.
const MOST: usize = 1024;

type Question = (&'static str, Vec<(String, String)>);
type Answer = Arc<dyn Any + Send + Sync>;
type Slot = Arc<tokio::sync::Mutex<Option<(Instant, Answer)>>>;

#[derive(Default)]
pub(crate) struct Cache(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    /// Whose view it is: another user may see other offerings.
    credentials: Option<Arc<Credentials>>,
    slots: HashMap<Question, Slot>,
}

impl Cache {
    fn slot(&self, question: Question, credentials: Arc<Credentials>) -> Slot {
        let mut remembered = self.0.lock();
        if remembered.credentials.as_deref() != Some(&*credentials) || remembered.slots.len() >= MOST {
            remembered.slots.clear();
            remembered.credentials = Some(credentials);
        }
        remembered.slots.entry(question).or_default().clone()
    }

    fn forget(&self) {
        self.0.lock().slots.clear();
    }
}

impl Client {
    /// A list that may be as old as the policy says.
    pub async fn cached<C: Stable>(&self, command: &C) -> Result<Arc<Vec<C::Item>>, Error> {
        let question = (C::NAME, self.parameters(command)?);
        let slot = self.shared.cache.slot(question, self.credentials());
        let mut slot = slot.lock().await;
        if let Some((at, answer)) = &*slot
            && at.elapsed() < self.policy.remember
            && let Ok(items) = answer.clone().downcast::<Vec<C::Item>>()
        {
            return Ok(items);
        }
        *slot = None;
        let items = Arc::new(self.list(command).await?);
        if !items.is_empty() {
            *slot = Some((Instant::now(), items.clone()));
        }
        Ok(items)
    }

    /// Asks anew what was remembered.
    pub fn forget(&self) {
        self.shared.cache.forget();
    }
}
