//! What `server` and `manager` have in common: which controllers run, what they need on a server, and how they
//! start.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use capstan_capi_plane::{Group, Installed, ProviderVersions, Rules, Settings};
use capstan_capi_types::bootstrap::EncryptionAlgorithmType;
use capstan_controller::{Client, Dial, Env, Runtime, TcpDial};
use serde_json::Value;

use crate::cloudstack::CloudStack;
use crate::kvm::{Kvm, KvmArgs};
use crate::simulator::{Simulator, SimulatorArgs};

/// Arguments about controllers.
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
    /// Look after the objects of one namespace only
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    pub namespace: String,
    /// Look only after objects whose label cluster.x-k8s.io/watch-filter has this value
    #[arg(long, value_name = "VALUE")]
    pub watch_filter: Option<String>,
    /// Algorithm of a cluster's keys where it names none: ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072, RSA-4096
    #[arg(long, value_name = "ALGORITHM", default_value = "ECDSA-P256", value_parser = algorithm)]
    pub key_algorithm: EncryptionAlgorithmType,
    /// Objects of one kind that are looked at at the same time
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub concurrency: usize,
    /// Provide machines on CloudStack: CloudStackCluster, CloudStackMachine
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub cloudstack: bool,
    #[command(flatten)]
    pub simulator: SimulatorArgs,
    #[command(flatten)]
    pub kvm: KvmArgs,
}

impl ControllerArgs {
    /// What is so when nobody says anything.
    pub fn usual() -> Result<Self> {
        #[derive(clap::Parser)]
        struct Nothing {
            #[command(flatten)]
            said: ControllerArgs,
        }
        Ok(<Nothing as clap::Parser>::try_parse_from(["capstan"])?.said)
    }
}

fn algorithm(name: &str) -> Result<EncryptionAlgorithmType, String> {
    let unknown = |_| format!("there is no algorithm {name:?}");
    serde_json::from_value(Value::from(name)).map_err(unknown)
}

/// Controllers and what belongs to them, ready to be started on a server.
pub struct Assembly {
    settings: Settings,
    simulator: Option<Simulator>,
    cloudstack: Option<CloudStack>,
    kvm: Option<Kvm>,
}

impl Assembly {
    /// Opens what must be open before controllers run.
    pub async fn new(args: &ControllerArgs, env: &Env) -> Result<Self> {
        let controllers: BTreeSet<Group> = args.controllers.iter().copied().collect();
        let provides = controllers.contains(&Group::Infrastructure);
        let simulated = args.simulator.is_wanted() && provides;
        let simulator = match simulated {
            true => Some(Simulator::start(&args.simulator, env.clone()).await?),
            false => None,
        };
        let on_this_host = args.kvm.kvm && controllers.contains(&Group::Infrastructure);
        let kvm = on_this_host.then(|| Kvm::open(&args.kvm)).transpose()?;
        let settings = Settings {
            controllers,
            namespace: args.namespace.clone(),
            watch_filter: args.watch_filter.clone(),
            default_algorithm: args.key_algorithm,
            concurrency: args.concurrency,
            ..Settings::default()
        };
        let cloudstack = (args.cloudstack && provides).then(CloudStack::new);
        Ok(Self { settings, simulator, cloudstack, kvm })
    }

    /// Which groups of controllers run.
    pub fn groups(&self) -> &BTreeSet<Group> {
        &self.settings.controllers
    }

    /// Whether there are simulated machines.
    pub fn is_simulated(&self) -> bool {
        self.simulator.is_some()
    }

    /// The definitions of the kinds that the controllers look after.
    pub fn definitions(&self) -> Vec<Value> {
        let mut definitions = capstan_capi_plane::definitions_for(self.groups());
        if self.is_simulated() {
            definitions.extend(capstan_sim_provider::definitions());
        }
        if self.cloudstack.is_some() {
            definitions.extend(CloudStack::definitions());
        }
        if self.kvm.is_some() {
            definitions.extend(capstan_kvm::definitions());
        }
        definitions
    }

    /// Defaults and rules of those kinds.
    pub fn rules(&self) -> Rules {
        let mut rules = Rules::for_groups(self.groups());
        if self.is_simulated() {
            rules = rules.with(capstan_sim_provider::rules());
        }
        if self.kvm.is_some() {
            rules = rules.with(capstan_kvm::rules());
        }
        if self.cloudstack.is_some() {
            rules = rules.with(CloudStack::rules());
        }
        rules
    }

    /// Versions of the providers' kinds.
    pub fn versions(&self) -> Option<ProviderVersions> {
        self.cloudstack.as_ref().map(|_| CloudStack::versions())
    }

    /// What the providers count, as Prometheus reads it.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + Clone + 'static {
        let clouds = self.cloudstack.as_ref().map(CloudStack::clouds);
        move || clouds.as_ref().map(capstan_cloudstack_provider::Clouds::metrics).unwrap_or_default()
    }

    /// Lists the providers in clusterctl's inventory.
    pub async fn register(&self, client: &Client) -> Result<()> {
        let mut providers: Vec<Installed> = capstan_capi_plane::providers(self.groups());
        if self.is_simulated() {
            providers.push(Simulator::provider());
        }
        if self.cloudstack.is_some() {
            providers.push(CloudStack::provider());
        }
        if self.kvm.is_some() {
            providers.push(Kvm::provider());
        }
        capstan_capi_plane::register(client, &providers)
            .await
            .context("the providers could not be listed in clusterctl's inventory")
    }

    /// The controllers, added and not yet started.
    pub fn runtime(&self, client: Client, env: Env) -> Runtime {
        let dial: Arc<dyn Dial> = match &self.simulator {
            Some(simulator) => simulator.dial(),
            None => Arc::new(TcpDial),
        };
        let workloads = capstan_capi_plane::workloads(client.clone(), dial, env.clone());
        let options = capstan_capi_plane::options(&self.settings);
        let mut runtime = Runtime::with_workloads(client, env, options, Some(workloads));
        capstan_capi_plane::add_controllers(&mut runtime, &self.settings);
        if let Some(simulator) = &self.simulator {
            simulator.add_controllers(&mut runtime);
        }
        if let Some(cloudstack) = &self.cloudstack {
            cloudstack.add_controllers(&mut runtime);
        }
        if let Some(kvm) = &self.kvm {
            kvm.add_controllers(&mut runtime);
        }
        runtime
    }
}
