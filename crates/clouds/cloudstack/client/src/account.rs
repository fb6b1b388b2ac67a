//! What a client knows about the account it speaks for: when it may ask again, and whether its keys are any good.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::credentials::Credentials;
use crate::error::Refusal;

/// Backs off for an account: after a rate limit until it is over, after repeated refusals of the same keys for a while.
/// Servers count both.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The server asked for quiet until then.
    quiet_until: Option<Instant>,
    /// Refusals of the same keys in a row.
    refused: Option<Refused>,
}

#[derive(Debug)]
struct Refused {
    credentials: Arc<Credentials>,
    times: u32,
    last: Instant,
    refusal: Refusal,
}

impl Gate {
    /// Waits until the server wants to hear from this account again.
    pub(crate) async fn quiet(&self) {
        loop {
            let until = self.0.lock().quiet_until;
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return,
            }
        }
    }

    /// The server asked this account for quiet.
    pub(crate) fn hush(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.0.lock();
        state.quiet_until = Some(state.quiet_until.map_or(until, |earlier| earlier.max(until)));
    }

    /// The refusal that these keys would get again, if they were refused often and lately enough.
    pub(crate) fn refusal(&self, credentials: &Credentials, times: u32, pause: Duration) -> Option<Refusal> {
        let state = self.0.lock();
        let refused = state.refused.as_ref()?;
        let lately = refused.last.elapsed() < pause;
        (lately && refused.times >= times && *refused.credentials == *credentials)
            .then(|| refused.refusal.clone())
    }

    /// The server took these keys.
    pub(crate) fn accepted(&self) {
        self.0.lock().refused = None;
    }

    /// The server refused these keys.
    pub(crate) fn refused(&self, credentials: Arc<Credentials>, refusal: Refusal) {
        let mut state = self.0.lock();
        let before = state.refused.take().filter(|before| *before.credentials == *credentials);
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        state.refused = Some(Refused { credentials, times, last: Instant::now(), refusal });
    }
}
