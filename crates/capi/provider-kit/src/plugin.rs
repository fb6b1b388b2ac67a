//! What the program knows of a cloud.

use std::future::ready;
use std::sync::Arc;

use capstan_capi_types::admission::Rules;
use capstan_controller::{Client, Code, Dial, Env, Runtime};
use clap::{ArgMatches, Command};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    Capacity, Finding, Installed, Inventory, MachineModel, ProviderError, ProviderVersions, Simulator,
};

/// An entry of the program's list of clouds.
pub struct Plugin {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// A simulated cloud of its kind, if there is one. Beside the provider, which must not know it.
    pub simulator: Option<Arc<dyn Simulator>>,
}

impl Plugin {
    /// A cloud without a simulator.
    pub fn new(provider: impl Provider + 'static) -> Self {
        Self { provider: Arc::new(provider), simulator: None }
    }

    /// The same with one.
    #[must_use]
    pub fn simulated_by(mut self, simulator: impl Simulator + 'static) -> Self {
        self.simulator = Some(Arc::new(simulator));
        self
    }
}

/// What [`Provider::open`] gives: `None` if the provider is not wanted.
pub type OpenedProvider = Result<Option<Arc<dyn RunningProvider>>, ProviderError>;

/// An infrastructure provider, before anything of it runs. Everything here works without credentials and from any machine,
/// but for what asks clouds: those methods have a client of the management cluster, and read credentials there.
pub trait Provider: Send + Sync {
    /// Its name in clusterctl's inventory and in flags, such as `cloudstack`.
    fn name(&self) -> &'static str;

    /// What people call it, such as `CloudStack`: a heading of the catalogue of errors.
    fn title(&self) -> &'static str;

    /// The CustomResourceDefinitions of its kinds.
    fn definitions(&self) -> Vec<Value>;

    /// Defaults and validation of its kinds, in process and behind webhooks.
    fn rules(&self) -> Vec<Rules> {
        Vec::new()
    }

    /// Conversions, if its kinds are served in several versions.
    fn versions(&self) -> Option<ProviderVersions> {
        None
    }

    /// All its error codes.
    fn codes(&self) -> &'static [Code];

    /// Its entry in clusterctl's inventory.
    fn installed(&self) -> Installed {
        Installed::infrastructure(self.name(), "capstan-system")
    }

    /// Adds its flags to `server` and `manager`. Their names begin with the provider's.
    fn arguments(&self, command: Command) -> Command {
        command
    }

    /// Opens what must be open before controllers run, if its flags say that it is wanted. Changes nothing outside.
    fn open<'a>(&'a self, matches: &'a ArgMatches, env: &'a Env) -> BoxFuture<'a, OpenedProvider>;

    /// Further commands of the program, such as processes that the provider starts itself.
    fn commands(&self) -> Vec<Subcommand> {
        Vec::new()
    }

    /// How `plan` simulates its machines.
    fn model(&self) -> Option<MachineModel> {
        None
    }

    /// What `plan` asks its clouds.
    fn capacity(&self) -> Option<&dyn Capacity> {
        None
    }

    /// What `orphans` compares.
    fn inventory(&self) -> Option<&dyn Inventory> {
        None
    }

    /// What `doctor` reports: whether the credentials that objects name are accepted, above all. Bounds its own waiting.
    fn check<'a>(&'a self, _: &'a Client) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(ready(Vec::new()))
    }

    /// How `console` reads what a machine has printed.
    fn console(&self) -> Option<&dyn ConsoleReader> {
        None
    }
}

/// A provider whose controllers can be started. Dropping it gives up what it opened, not what it made.
pub trait RunningProvider: Send + Sync {
    /// Adds its controllers.
    fn add_controllers(&self, runtime: &mut Runtime);

    /// What it counts, in Prometheus' text format; names begin with the provider's.
    fn metrics(&self) -> String {
        String::new()
    }

    /// How workload clusters are reached, if not as `otherwise` does.
    fn dial(&self, otherwise: Arc<dyn Dial>) -> Arc<dyn Dial> {
        otherwise
    }

    /// Commands to try first, for whoever has just started a server.
    fn hint(&self) -> Option<&'static str> {
        None
    }
}

/// Reads consoles of machines.
pub trait ConsoleReader: Send + Sync {
    /// The kind of infrastructure machine.
    fn kind(&self) -> &'static str;

    /// Adds its flags to `console`.
    fn arguments(&self, command: Command) -> Command {
        command
    }

    /// What a machine of a name has printed since it was switched on; `object` is its infrastructure.
    fn read<'a>(
        &'a self,
        machine: &'a str,
        object: &'a Value,
        matches: &'a ArgMatches,
    ) -> BoxFuture<'a, Result<String, ProviderError>>;
}

/// A further command of the program. Logging has been started when it runs; it makes its own Tokio runtime.
pub struct Subcommand {
    /// Name, help and flags.
    pub command: Command,
    /// Runs it to its end.
    pub run: fn(&ArgMatches, &dyn Terminal) -> Result<(), ProviderError>,
}

/// Whoever started the command.
pub trait Terminal: Send + Sync {
    /// Prints data to stdout.
    fn say(&self, text: &str) -> Result<(), ProviderError>;

    /// Resolves at SIGTERM or Ctrl-C.
    fn stopped(&self) -> BoxFuture<'static, ()>;
}
