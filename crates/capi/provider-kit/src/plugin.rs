//! The interface of a cloud to the program.

use std::future::ready;
use std::sync::Arc;

use capstan_capi_types::admission::Rules;
use capstan_controller::{Client, Code, Dial, Env, Runtime};
use clap::{ArgMatches, Command};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    Adoption, Capacity, Failure, Finding, Flavor, FrontEnd, Installed, Inventory, MachineModel,
    MachineNetwork, ProviderError, ProviderVersions, Simulator, Surveyor,
};

/// An entry in the program's list of clouds.
pub struct Plugin {
    pub provider: Arc<dyn Provider>,
    /// A simulator of its cloud, if there is one. Separate from the provider, which must not depend on it.
    pub simulator: Option<Arc<dyn Simulator>>,
}

impl Plugin {
    pub fn new(provider: impl Provider + 'static) -> Self {
        Self { provider: Arc::new(provider), simulator: None }
    }

    #[must_use]
    pub fn simulated_by(mut self, simulator: impl Simulator + 'static) -> Self {
        self.simulator = Some(Arc::new(simulator));
        self
    }
}

/// The result of [`Provider::open`]: `None` if the provider is not enabled.
pub type OpenedProvider = Result<Option<Arc<dyn RunningProvider>>, ProviderError>;

/// An infrastructure provider that is not running. Its methods work without credentials and on any machine, except
/// those that call clouds: they get a client of the management cluster and read credentials there.
pub trait Provider: Send + Sync {
    /// Its name in clusterctl's inventory and in flags, such as `cloudstack`.
    fn name(&self) -> &'static str;

    /// Its display name, such as `CloudStack`; a heading in the list of error codes.
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

    /// Commands that fix a failure with one of its codes, for `why`. Words in capitals are for the user to replace.
    fn fix(&self, _: &Failure<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Its entry in clusterctl's inventory; a front end of Cluster API has none.
    fn installed(&self) -> Option<Installed> {
        Some(Installed::infrastructure(self.name(), "capstan-system"))
    }

    /// Adds its flags to `server` and `manager`. Their names begin with the provider's.
    fn arguments(&self, command: Command) -> Command {
        command
    }

    /// Opens what controllers need, if flags enable the provider. Must change nothing outside the process.
    fn open<'a>(&'a self, matches: &'a ArgMatches, env: &'a Env) -> BoxFuture<'a, OpenedProvider>;

    /// Additional commands of the program, such as processes that the provider starts itself.
    fn commands(&self) -> Vec<Subcommand> {
        Vec::new()
    }

    /// How `plan` simulates its machines.
    fn model(&self) -> Option<MachineModel> {
        None
    }

    /// Ranges of addresses that machines get, by the infrastructure object of their cluster.
    fn machine_networks(&self, _infrastructure: &Value) -> Vec<MachineNetwork> {
        Vec::new()
    }

    /// Capacity for `plan`.
    fn capacity(&self) -> Option<&dyn Capacity> {
        None
    }

    /// Inventory for `orphans`.
    fn inventory(&self) -> Option<&dyn Inventory> {
        None
    }

    /// Take-over of what clusters are generated from, for `adopt`.
    fn front_end(&self) -> Option<&dyn FrontEnd> {
        None
    }

    /// Take-over of its clusters for `adopt`.
    fn adoption(&self) -> Option<&dyn Adoption> {
        None
    }

    /// Findings for `doctor`, above all whether the credentials are accepted. Must limit its own waiting.
    fn check<'a>(&'a self, _: &'a Client) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(ready(Vec::new()))
    }

    /// Cluster templates for `generate cluster` and `init`.
    fn flavors(&self) -> &'static [Flavor] {
        &[]
    }

    /// Proposals for `init`.
    fn surveyor(&self) -> Option<&dyn Surveyor> {
        None
    }

    /// Reads consoles for `console`.
    fn console(&self) -> Option<&dyn ConsoleReader> {
        None
    }
}

/// A provider whose controllers can be started. Dropping it closes what it opened and deletes nothing.
pub trait RunningProvider: Send + Sync {
    fn add_controllers(&self, runtime: &mut Runtime);

    /// Metrics in Prometheus' text format; names begin with the provider's.
    fn metrics(&self) -> String {
        String::new()
    }

    /// Dials workload clusters; defaults to `otherwise`.
    fn dial(&self, otherwise: Arc<dyn Dial>) -> Arc<dyn Dial> {
        otherwise
    }

    /// What is lost when the process ends, printed when a server has started and when it stops.
    fn volatile(&self) -> Option<&'static str> {
        None
    }

    /// First commands to try, printed after a server has started.
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

    /// Console output of a machine since power-on, as far as it is kept; `object` is its infrastructure object, and
    /// `client` reads credentials.
    fn read<'a>(
        &'a self,
        client: &'a Client,
        machine: &'a str,
        object: &'a Value,
        matches: &'a ArgMatches,
    ) -> BoxFuture<'a, Result<String, ProviderError>>;
}

/// An additional command. Logging is set up when it runs; it creates its own Tokio runtime.
pub struct Subcommand {
    pub command: Command,
    pub run: fn(&ArgMatches, &dyn Terminal) -> Result<(), ProviderError>,
}

/// The terminal of a command.
pub trait Terminal: Send + Sync {
    /// Prints data to stdout.
    fn print(&self, text: &str) -> Result<(), ProviderError>;

    /// Resolves at SIGTERM or Ctrl-C.
    fn stopped(&self) -> BoxFuture<'static, ()>;
}
