//! What is simulated.

use std::sync::Arc;

use capstan_apiserver::Config;
use capstan_apiserver::Digest;
use capstan_controller::{Client, Env, Options, Runtime, Transport, Workloads};
use capstan_store::{OpenError, SimDisk, Store};
use jiff::Timestamp;

use crate::{Checker, World};

/// A property that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{property}: {what}")]
pub struct Violation {
    /// The property, such as `S1`.
    pub property: String,
    /// What was seen instead.
    pub what: String,
}

impl Violation {
    /// A violation of a property.
    pub fn new(property: &str, what: impl Into<String>) -> Self {
        Self { property: property.to_owned(), what: what.into() }
    }
}

/// A story: what there is outside the process, which controllers run, what a user does, what must hold.
pub trait Scenario {
    /// Clouds and guests: what lives on when the process dies.
    type Outside: Clone + 'static;

    /// What the clock shows at the beginning.
    fn begins(&self) -> Timestamp {
        crate::clock::BEGIN
    }

    /// The world outside at the beginning.
    fn outside(&self, env: &Env) -> Self::Outside;

    /// Adds the controllers to a process that starts.
    fn controllers(&self, outside: &Self::Outside, runtime: &mut Runtime);

    /// What must hold.
    fn checkers(&self, outside: &Self::Outside) -> Vec<Box<dyn Checker>>;

    /// How workload clusters are reached from a process that starts. What is written to them over `management`'s
    /// gate is numbered, recorded and disturbed like everything else.
    fn workloads(
        &self,
        _outside: &Self::Outside,
        _management: Client,
        _env: Env,
    ) -> Option<Arc<dyn Workloads>> {
        None
    }

    /// The store of a process that starts, on what the disk holds.
    fn store(&self, disk: SimDisk, options: capstan_store::Options) -> Result<Store<Digest>, OpenError> {
        Store::open(disk, options)
    }

    /// How the controllers' requests reach the server.
    fn transport(&self, direct: Arc<dyn Transport>) -> Arc<dyn Transport> {
        direct
    }

    /// How the server is set up.
    fn configure(&self, config: Config) -> Config {
        config
    }

    /// How the runtime is set up.
    fn options(&self) -> Options {
        Options::default()
    }

    /// What is on the server before the controllers start, such as definitions of kinds.
    fn prepare(&self, world: &World<'_>) -> impl Future<Output = Result<(), Violation>>;

    /// What the user does.
    fn play(
        &self,
        world: &mut World<'_>,
        outside: &Self::Outside,
    ) -> impl Future<Output = Result<(), Violation>>;
}
