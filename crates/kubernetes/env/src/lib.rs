//! Where time and randomness come from. Servers, controllers and simulators take both from [`Env`], so that a
//! simulation with one seed gives one trace.
//!
//! Nothing else belongs here: no timers (Tokio's clock can be paused), no files, no network.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng};

/// A source of wall-clock time and randomness. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    rng: Arc<Mutex<StdRng>>,
}

/// Letters and digits of generated name suffixes: no vowels and no look-alikes, as upstream.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Env {
    /// Real time and operating-system entropy.
    pub fn system() -> Self {
        Self { clock: Arc::new(Timestamp::now), rng: Arc::new(Mutex::new(StdRng::from_os_rng())) }
    }

    /// A clock of the caller's and a seeded generator: the same calls give the same answers.
    pub fn simulated(clock: impl Fn() -> Timestamp + Send + Sync + 'static, seed: u64) -> Self {
        Self { clock: Arc::new(clock), rng: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))) }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The current time as `metav1.Time` prints it: whole seconds, `Z`.
    pub fn now_rfc3339(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// A fresh random (version 4) UUID.
    pub fn uuid(&self) -> String {
        let mut bytes = [0; 16];
        self.rng.lock().fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// A random number below a limit; 0 if the limit is 0.
    pub fn random_below(&self, limit: u32) -> u32 {
        if limit == 0 { 0 } else { self.rng.lock().random_range(0..limit) }
    }

    /// The five characters that complete a `generateName`.
    pub fn name_suffix(&self) -> String {
        let mut rng = self.rng.lock();
        (0..5).map(|_| char::from(SUFFIX_ALPHABET[rng.random_range(0..SUFFIX_ALPHABET.len())])).collect()
    }
}
