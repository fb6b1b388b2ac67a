//! The providers of the program, and what they contribute together.

use std::sync::Arc;

use anyhow::Result;
use capstan_capi_types::admission;
use capstan_controller::Env;
use capstan_provider_kit::{
    MachineModel, Plugin, Provider, ProviderVersions, RunningProvider, Simulator, Size, Subcommand,
};
use clap::{ArgMatches, Command};
use serde_json::Value;

/// Cheap to clone.
#[derive(Clone)]
pub struct Plugins(Arc<[Plugin]>);

impl Plugins {
    pub fn new(list: Vec<Plugin>) -> Self {
        Self(list.into())
    }

    pub fn providers(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.0.iter().map(|plugin| &plugin.provider)
    }

    pub fn simulators(&self) -> impl Iterator<Item = &Arc<dyn Simulator>> {
        self.0.iter().filter_map(|plugin| plugin.simulator.as_ref())
    }

    /// The simulator of a provider, by name.
    pub fn simulator(&self, provider: &str) -> Option<&Arc<dyn Simulator>> {
        self.0.iter().find(|plugin| plugin.provider.name() == provider)?.simulator.as_ref()
    }

    /// Adds the providers' flags to a command that runs controllers.
    pub fn arguments(&self, command: Command) -> Command {
        // Flags derived from a documented struct would replace the command's help.
        let about = command.get_about().cloned();
        let command = self.providers().fold(command, |command, provider| provider.arguments(command));
        match about {
            Some(about) => command.about(about).long_about(None),
            None => command,
        }
    }

    /// Commands that the providers add.
    pub fn commands(&self) -> Vec<Subcommand> {
        self.providers().flat_map(|provider| provider.commands()).collect()
    }

    /// Opens the providers that the flags enable.
    pub async fn open(&self, matches: &ArgMatches, env: &Env) -> Result<Vec<Opened>> {
        let mut all = Vec::new();
        for provider in self.providers() {
            if let Some(running) = provider.open(matches, env).await? {
                all.push(Opened { provider: provider.clone(), running });
            }
        }
        Ok(all)
    }

    pub fn definitions(&self) -> Vec<Value> {
        self.providers().flat_map(|provider| provider.definitions()).collect()
    }

    pub fn rules(&self) -> Vec<admission::Rules> {
        self.providers().flat_map(|provider| provider.rules()).collect()
    }

    pub fn versions(&self) -> Vec<ProviderVersions> {
        self.providers().filter_map(|provider| provider.versions()).collect()
    }

    /// Models of machines for `plan`.
    pub fn models(&self) -> Vec<MachineModel> {
        self.providers().filter_map(|provider| provider.model()).collect()
    }

    /// Size of a machine, if its infrastructure object has it.
    pub fn size(&self, object: &Value) -> Option<Size> {
        let model = self.models().into_iter().find(|model| object["kind"] == model.kind);
        model.map_or(Size::in_spec as fn(&Value) -> _, |model| model.size)(object)
    }
}

pub struct Opened {
    pub provider: Arc<dyn Provider>,
    pub running: Arc<dyn RunningProvider>,
}
