//! What the clouds of the program add to one thing, put together.

use std::sync::Arc;

use anyhow::Result;
use capstan_capi_types::admission;
use capstan_controller::Env;
use capstan_provider_kit::{
    MachineModel, Plugin, Provider, ProviderVersions, RunningProvider, Simulator, Size, Subcommand,
};
use clap::{ArgMatches, Command};
use serde_json::Value;

/// The clouds of the program. Clones are the same.
#[derive(Clone)]
pub struct Plugins(Arc<[Plugin]>);

impl Plugins {
    /// Of a list.
    pub fn new(list: Vec<Plugin>) -> Self {
        Self(list.into())
    }

    /// Their providers.
    pub fn providers(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.0.iter().map(|plugin| &plugin.provider)
    }

    /// Their simulators.
    pub fn simulators(&self) -> impl Iterator<Item = &Arc<dyn Simulator>> {
        self.0.iter().filter_map(|plugin| plugin.simulator.as_ref())
    }

    /// The simulator of the cloud of a name.
    pub fn simulator(&self, provider: &str) -> Option<&Arc<dyn Simulator>> {
        self.0.iter().find(|plugin| plugin.provider.name() == provider)?.simulator.as_ref()
    }

    /// A command that runs controllers, with the providers' flags.
    pub fn arguments(&self, command: Command) -> Command {
        // Flags that are derived from a documented struct would put their words in the place of the command's.
        let about = command.get_about().cloned();
        let command = self.providers().fold(command, |command, provider| provider.arguments(command));
        match about {
            Some(about) => command.about(about).long_about(None),
            None => command,
        }
    }

    /// Further commands of the program.
    pub fn commands(&self) -> Vec<Subcommand> {
        self.providers().flat_map(|provider| provider.commands()).collect()
    }

    /// Opens the providers that flags ask for.
    pub async fn open(&self, matches: &ArgMatches, env: &Env) -> Result<Vec<Opened>> {
        let mut all = Vec::new();
        for provider in self.providers() {
            if let Some(running) = provider.open(matches, env).await? {
                all.push(Opened { provider: provider.clone(), running });
            }
        }
        Ok(all)
    }

    /// The definitions of all kinds.
    pub fn definitions(&self) -> Vec<Value> {
        self.providers().flat_map(|provider| provider.definitions()).collect()
    }

    /// The rules of all kinds.
    pub fn rules(&self) -> Vec<admission::Rules> {
        self.providers().flat_map(|provider| provider.rules()).collect()
    }

    /// The conversions of all kinds.
    pub fn versions(&self) -> Vec<ProviderVersions> {
        self.providers().filter_map(|provider| provider.versions()).collect()
    }

    /// How `plan` simulates machines.
    pub fn models(&self) -> Vec<MachineModel> {
        self.providers().filter_map(|provider| provider.model()).collect()
    }

    /// How large the machine of an infrastructure object is, where the object says so itself.
    pub fn size(&self, object: &Value) -> Option<Size> {
        let model = self.models().into_iter().find(|model| object["kind"] == model.kind);
        model.map_or(Size::in_spec as fn(&Value) -> _, |model| model.size)(object)
    }
}

/// A provider that runs, or will.
pub struct Opened {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// What of it runs.
    pub running: Arc<dyn RunningProvider>,
}
