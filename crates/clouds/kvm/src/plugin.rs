//! The plug-in: its flags, its load balancer process, and its console reader.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use capstan_capi_types::admission::Rules;
use capstan_controller::{Client, Code, Env, Runtime};
use capstan_provider_kit::{
    ConsoleReader, MachineModel, MachineNetwork, OpenedProvider, Provider, ProviderError, RunningProvider,
    Size, Subcommand, Terminal,
};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::backend::Backend;
use crate::balancer::{self, HealthCheck};
use crate::machine::SCHEME;
use crate::namespace::{Namespaces, Settings};
use crate::template::HostSize;
use crate::{KVMClusters, KVMMachineTemplates, KVMMachines, code, definitions, rules};

/// The command of the load balancer process.
const BALANCER: &str = "kvm-balancer";

/// Provides machines on this host if a flag enables them.
pub struct Kvm;

#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Provide machines on this host: KVMCluster, KVMMachine. Needs root; unmet requirements are reported at the
    /// start
    #[arg(long)]
    kvm: bool,
    /// Directory for those machines; they outlive this process
    #[arg(long, value_name = "DIR", default_value = "/var/lib/capstan/kvm", requires = "kvm")]
    kvm_state: PathBuf,
    /// Directory of node images
    #[arg(long, value_name = "DIR", default_value = "/var/lib/capstan/images", requires = "kvm")]
    kvm_images: PathBuf,
}

impl Provider for Kvm {
    fn name(&self) -> &'static str {
        "kvm"
    }

    fn title(&self) -> &'static str {
        "Machines on this host"
    }

    fn definitions(&self) -> Vec<Value> {
        definitions()
    }

    fn rules(&self) -> Vec<Rules> {
        rules().into()
    }

    fn codes(&self) -> &'static [Code] {
        code::CATALOGUE
    }

    fn machine_networks(&self, infrastructure: &Value) -> Vec<MachineNetwork> {
        let fields = ["/spec/network/cidr", "/status/cidr"];
        let mut networks = fields.iter().filter_map(|field| MachineNetwork::at(infrastructure, field));
        networks.next().filter(|_| infrastructure["kind"] == "KVMCluster").into_iter().collect()
    }

    fn arguments(&self, command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn open<'a>(&'a self, matches: &'a ArgMatches, _: &'a Env) -> BoxFuture<'a, OpenedProvider> {
        Box::pin(std::future::ready(open(matches)))
    }

    fn commands(&self) -> Vec<Subcommand> {
        let about = "Balance connections to the API servers of a cluster; `--kvm` starts it automatically";
        let command = BalancerFlags::augment_args(Command::new(BALANCER)).about(about).hide(true);
        vec![Subcommand { command, run: balance }]
    }

    fn model(&self) -> Option<MachineModel> {
        Some(MachineModel { kind: "KVMMachine", provider_id_prefix: SCHEME, size: Size::in_spec })
    }

    fn console(&self) -> Option<&dyn ConsoleReader> {
        Some(self)
    }
}

/// Fails before anything is changed if the host does not meet the requirements.
fn open(matches: &ArgMatches) -> OpenedProvider {
    let flags = Flags::from_arg_matches(matches)
        .map_err(|error| ProviderError::caused_by("the flags of --kvm", error))?;
    if !flags.kvm {
        return Ok(None);
    }
    let program = std::env::current_exe()
        .map_err(|error| ProviderError::caused_by("the path of the executable is unknown", error))?;
    let settings = Settings {
        state: flags.kvm_state,
        images: flags.kvm_images,
        balancer: vec![program, BALANCER.into()],
    };
    let backend = Namespaces::open(settings).map_err(|error| ProviderError::caused_by("--kvm", error))?;
    Ok(Some(Arc::new(Running { backend: Arc::new(backend) })))
}

struct Running {
    backend: Arc<dyn Backend>,
}

impl RunningProvider for Running {
    fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(KVMClusters::new(self.backend.clone()));
        runtime.add(KVMMachines::new(self.backend.clone()));
        runtime.add(KVMMachineTemplates::new(HostSize::read()));
    }
}

impl ConsoleReader for Kvm {
    fn kind(&self) -> &'static str {
        "KVMMachine"
    }

    fn read<'a>(
        &'a self,
        _: &'a Client,
        machine: &'a str,
        object: &'a Value,
        _: &'a ArgMatches,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(std::future::ready(console(machine, object["status"]["console"].as_str())))
    }
}

fn console(machine: &str, file: Option<&str>) -> Result<String, ProviderError> {
    let Some(file) = file.filter(|file| !file.is_empty()) else {
        let what = format!("machine {machine} has printed nothing yet: it was not switched on");
        return Err(ProviderError::new(what));
    };
    let bytes = std::fs::read(file).map_err(|error| {
        let what = format!("{file} cannot be read: run this on the host of the machine, as root");
        ProviderError::caused_by(what, error)
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Flags of the load balancer, which the provider starts in the namespace of a network.
#[derive(clap::Args)]
#[group(skip)]
struct BalancerFlags {
    /// Address to listen on; members are reached on the same port
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// File with the addresses of members, one per line; it may change
    #[arg(long, value_name = "FILE")]
    members: PathBuf,
}

/// Serves until SIGTERM.
fn balance(matches: &ArgMatches, terminal: &dyn Terminal) -> Result<(), ProviderError> {
    let flags = BalancerFlags::from_arg_matches(matches)
        .map_err(|error| ProviderError::caused_by("the balancer's flags", error))?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(flags.listen)
            .await
            .map_err(|error| ProviderError::caused_by(format!("listen on {}", flags.listen), error))?;
        let health =
            HealthCheck::new().map_err(|error| ProviderError::caused_by("members cannot be asked", error))?;
        tokio::select! {
            () = balancer::serve(listener, flags.members, flags.listen.port(), health) => {}
            () = terminal.stopped() => {}
        }
        Ok(())
    })
}
