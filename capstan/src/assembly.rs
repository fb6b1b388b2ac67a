//! What `server` and `manager` share: the controllers to run, what they need on a server, and how they start.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use capstan_apiserver::webhook_client::IdentityFiles;
use capstan_capi_core::machine::{self, SyncedKeys};
use capstan_capi_plane::{Group, Rules, Settings, over_https};
use capstan_capi_types::bootstrap::EncryptionAlgorithmType;
use capstan_controller::{Client, Dial, Env, Runtime, TcpDial};
use capstan_provider_kit::ProviderVersions;
use clap::{ArgMatches, Command};
use serde_json::Value;

use crate::plugins::{Opened, Plugins};

/// Arguments about controllers; providers add their own.
#[derive(clap::Args, Clone)]
pub struct ControllerArgs {
    /// Controllers to run
    #[arg(
        long,
        value_name = "GROUPS",
        value_delimiter = ',',
        default_value = "core,bootstrap,control-plane,addons,infrastructure"
    )]
    pub controllers: Vec<Group>,
    /// Only reconcile objects of this namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    pub namespace: String,
    /// Only reconcile objects whose label cluster.x-k8s.io/watch-filter has this value
    #[arg(long, value_name = "VALUE")]
    pub watch_filter: Option<String>,
    /// Default key algorithm of clusters: ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072 or RSA-4096
    #[arg(long, value_name = "ALGORITHM", default_value = "ECDSA-P256", value_parser = algorithm)]
    pub key_algorithm: EncryptionAlgorithmType,
    /// Also sync labels that match this pattern from Machines to their Nodes (repeat it, or separate patterns by commas)
    #[arg(long, value_name = "REGEX", value_delimiter = ',')]
    pub additional_sync_machine_labels: Vec<String>,
    /// Also sync annotations that match this pattern from Machines to their Nodes
    #[arg(long, value_name = "REGEX", value_delimiter = ',')]
    pub additional_sync_machine_annotations: Vec<String>,
    /// Client certificate for calls to runtime extensions, in PEM; a renewed file is used with the next call
    #[arg(long, value_name = "FILE", requires = "runtime_extension_client_key_file")]
    pub runtime_extension_client_cert_file: Option<PathBuf>,
    /// Key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "runtime_extension_client_cert_file")]
    pub runtime_extension_client_key_file: Option<PathBuf>,
    /// Concurrent reconciles per controller
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub concurrency: usize,
}

impl ControllerArgs {
    /// The defaults, including those of the providers' flags.
    pub fn defaults(plugins: &Plugins) -> Result<(Self, ArgMatches)> {
        let command = plugins.arguments(<Self as clap::Args>::augment_args(Command::new("capstan")));
        let matches = command.try_get_matches_from(["capstan"])?;
        Ok((<Self as clap::FromArgMatches>::from_arg_matches(&matches)?, matches))
    }
}

fn algorithm(name: &str) -> Result<EncryptionAlgorithmType, String> {
    let unknown = |_| format!("unknown algorithm {name:?}");
    serde_json::from_value(Value::from(name)).map_err(unknown)
}

/// Controllers with their definitions and rules, ready to start on a server.
pub struct Assembly {
    settings: Settings,
    providers: Vec<Opened>,
}

impl Assembly {
    /// Opens the providers that the flags in `matches` enable.
    pub async fn new(
        args: &ControllerArgs,
        plugins: &Plugins,
        matches: &ArgMatches,
        env: &Env,
    ) -> Result<Self> {
        let controllers: BTreeSet<Group> = args.controllers.iter().copied().collect();
        let providers = match controllers.contains(&Group::Infrastructure) {
            true => plugins.open(matches, env).await?,
            false => Vec::new(),
        };
        let synced = SyncedKeys::matching(
            &args.additional_sync_machine_labels,
            &args.additional_sync_machine_annotations,
        )
        .context("--additional-sync-machine-labels and --additional-sync-machine-annotations take regular expressions: correct the pattern")?;
        let identity =
            match (&args.runtime_extension_client_cert_file, &args.runtime_extension_client_key_file) {
                (Some(certificate), Some(key)) => Some(
                    IdentityFiles::open(certificate, key)
                        .map_err(anyhow::Error::msg)
                        .context("--runtime-extension-client-cert-file cannot be used")?,
                ),
                _ => None,
            };
        let settings = Settings {
            extensions: over_https(env.clone(), identity),
            machine: machine::Settings { synced, ..machine::Settings::default() },
            controllers,
            namespace: args.namespace.clone(),
            watch_filter: args.watch_filter.clone(),
            default_algorithm: args.key_algorithm,
            concurrency: args.concurrency,
            ..Settings::default()
        };
        Ok(Self { settings, providers })
    }

    pub fn groups(&self) -> &BTreeSet<Group> {
        &self.settings.controllers
    }

    /// What is lost when this process ends.
    pub fn volatile(&self) -> Option<&'static str> {
        self.providers.iter().find_map(|opened| opened.running.volatile())
    }

    /// Commands to try first, from the first provider that has any.
    pub fn hint(&self) -> Option<&'static str> {
        self.providers.iter().find_map(|opened| opened.running.hint())
    }

    /// The CustomResourceDefinitions that the controllers need.
    pub fn definitions(&self) -> Vec<Value> {
        let mut definitions = capstan_capi_plane::definitions_for(self.groups());
        definitions.extend(self.providers.iter().flat_map(|opened| opened.provider.definitions()));
        definitions
    }

    /// Defaults and validation of those kinds.
    pub fn rules(&self) -> Rules {
        let of_providers = self.providers.iter().flat_map(|opened| opened.provider.rules());
        Rules::for_groups(self.groups()).with(of_providers)
    }

    /// Versions of the providers' kinds.
    pub fn versions(&self) -> Vec<ProviderVersions> {
        self.providers.iter().filter_map(|opened| opened.provider.versions()).collect()
    }

    /// Metrics of the providers, in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + Clone + 'static {
        let running: Vec<_> = self.providers.iter().map(|opened| opened.running.clone()).collect();
        move || running.iter().map(|running| running.metrics()).collect()
    }

    /// Adds the providers to clusterctl's inventory.
    pub async fn register(&self, client: &Client) -> Result<()> {
        let mut providers = capstan_capi_plane::providers(self.groups());
        providers.extend(self.providers.iter().filter_map(|opened| opened.provider.installed()));
        capstan_capi_plane::register(client, &providers)
            .await
            .context("cannot add the providers to clusterctl's inventory")
    }

    /// The runtime with its controllers, not yet started.
    pub fn runtime(&self, client: Client, env: Env) -> Runtime {
        let running = || self.providers.iter().map(|opened| &opened.running);
        let dial = running().fold(Arc::new(TcpDial) as Arc<dyn Dial>, |dial, running| running.dial(dial));
        let workloads = capstan_capi_plane::workloads(client.clone(), dial, env.clone());
        let options = capstan_capi_plane::options(&self.settings);
        let mut runtime = Runtime::with_workloads(client, env, options, Some(workloads));
        capstan_capi_plane::add_controllers(&mut runtime, &self.settings);
        running().for_each(|running| running.add_controllers(&mut runtime));
        runtime
    }
}
