//! Scenarios.

use std::sync::Arc;

use capstan_apiserver::Config;
use capstan_apiserver::Digest;
use capstan_controller::{Client, Env, Options, Runtime, Transport, Workloads};
use capstan_store::{OpenError, SimDisk, Store};
use jiff::Timestamp;

use crate::{Checker, World};

/// A violated property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{property}: {what}")]
pub struct Violation {
    /// Name of the property, such as `S1`.
    pub property: String,
    pub what: String,
}

impl Violation {
    pub fn new(property: &str, what: impl Into<String>) -> Self {
        Self { property: property.to_owned(), what: what.into() }
    }
}

/// A scenario: what exists outside the process, which controllers run, what a user does, which properties must hold.
pub trait Scenario {
    /// Clouds and guests: what survives a crash of the process.
    type Outside: Clone + 'static;

    fn start_time(&self) -> Timestamp {
        crate::clock::BEGIN
    }

    /// The clouds and guests at the start.
    fn outside(&self, env: &Env) -> Self::Outside;

    /// Adds the controllers to a starting process.
    fn controllers(&self, outside: &Self::Outside, runtime: &mut Runtime);

    /// The properties that must hold.
    fn checkers(&self, outside: &Self::Outside) -> Vec<Box<dyn Checker>>;

    /// How a starting process reaches workload clusters. Writes to them pass the gate of `management`: they are
    /// numbered, recorded and get faults like all other effects.
    fn workloads(
        &self,
        _outside: &Self::Outside,
        _management: Client,
        _env: Env,
    ) -> Option<Arc<dyn Workloads>> {
        None
    }

    /// Opens the store of a starting process.
    fn store(&self, disk: SimDisk, options: capstan_store::Options) -> Result<Store<Digest>, OpenError> {
        Store::open(disk, options)
    }

    /// Wraps the transport between the controllers and the server.
    fn transport(&self, direct: Arc<dyn Transport>) -> Arc<dyn Transport> {
        direct
    }

    /// Configures the server.
    fn configure(&self, config: Config) -> Config {
        config
    }

    /// Options of the controller runtime.
    fn options(&self) -> Options {
        Options::default()
    }

    /// Creates what must exist before the controllers start, such as definitions.
    fn prepare(&self, world: &World<'_>) -> impl Future<Output = Result<(), Violation>>;

    /// Runs the actions of the user.
    fn run(
        &self,
        world: &mut World<'_>,
        outside: &Self::Outside,
    ) -> impl Future<Output = Result<(), Violation>>;
}
