//! The plug-in: its flags, its site, and its console reader.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::admission::Rules;
use capstan_controller::{Client, Code, Dial, Env, Runtime, Stream};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_provider_kit::{
    ConsoleReader, MachineModel, OpenedProvider, Provider, ProviderError, RunningProvider, Size,
};
use capstan_sim_site::{Remote, SiteCallError, SiteHandle};
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::machine::{CPUS, MEMORY_MIB, SCHEME, SITE};
use crate::{SimClusters, SimMachinePools, SimMachineTemplates, SimMachines, code, definitions, rules};

/// Provides simulated machines if a flag enables them.
pub struct Simulated;

#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Provide simulated machines: SimCluster, SimMachine. They exist as long as this process
    #[arg(long)]
    simulator: bool,
    /// Port of the API servers of simulated clusters, whose addresses are 127.x.y.z
    #[arg(long, value_name = "PORT", default_value_t = 16443, requires = "simulator")]
    simulator_port: u16,
    /// Let simulated machines boot and join without delay
    #[arg(long, requires = "simulator")]
    simulator_instant: bool,
    /// Provide the simulated machines of `capstan sim site` at this address, such as http://127.0.0.1:7480. They
    /// outlive this process
    #[arg(long, value_name = "URL", conflicts_with = "simulator")]
    simulator_url: Option<String>,
    /// How often simulated kubelets renew their Leases; 0 for never, so that idle clusters cost no CPU time
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "simulator")]
    simulator_heartbeat: u64,
}

impl Provider for Simulated {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn title(&self) -> &'static str {
        "Simulated machines"
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

    fn arguments(&self, command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn open<'a>(&'a self, matches: &'a ArgMatches, env: &'a Env) -> BoxFuture<'a, OpenedProvider> {
        Box::pin(async move {
            let flags = Flags::from_arg_matches(matches)
                .map_err(|error| ProviderError::caused_by("the simulator's flags", error))?;
            if !flags.simulator && flags.simulator_url.is_none() {
                return Ok(None);
            }
            let simulator: Arc<dyn RunningProvider> = Arc::new(Running::start(&flags, env.clone()).await?);
            Ok(Some(simulator))
        })
    }

    fn model(&self) -> Option<MachineModel> {
        Some(MachineModel { kind: "SimMachine", provider_id_prefix: SCHEME, size })
    }

    fn console(&self) -> Option<&dyn ConsoleReader> {
        Some(self)
    }
}

/// The size of a machine, with the controller's defaults.
fn size(object: &Value) -> Option<Size> {
    let field_of = |field: &str| object["spec"][field].as_u64();
    Some(Size {
        cpus: field_of("cpus").unwrap_or(CPUS.into()),
        memory_mib: field_of("memoryMiB").unwrap_or(MEMORY_MIB),
    })
}

impl ConsoleReader for Simulated {
    fn kind(&self) -> &'static str {
        "SimMachine"
    }

    fn arguments(&self, command: Command) -> Command {
        command.arg(
            Arg::new("simulator_url")
                .long("simulator-url")
                .value_name("URL")
                .help(
                    "Address of the `capstan sim site` that runs the machine, if it is a simulated one; by default the one \
                     that its server uses",
                ),
        )
    }

    fn read<'a>(
        &'a self,
        _: &'a Client,
        machine: &'a str,
        object: &'a Value,
        matches: &'a ArgMatches,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            let provider_id = object["spec"]["providerID"].as_str();
            let Some(id) = provider_id.and_then(|id| id.strip_prefix(SCHEME)) else {
                return Err(ProviderError::new(format!(
                    "machine {machine} has printed nothing yet: it was not switched on"
                )));
            };
            let flag = matches.get_one::<String>("simulator_url").map(String::as_str);
            // No default: whatever listens there may be a stranger's.
            let Some(url) = flag.or_else(|| object["metadata"]["annotations"][SITE].as_str()) else {
                return Err(ProviderError::new(format!(
                    "machine {machine} is in the memory of its server, which runs with --simulator: its console cannot be \
                     read. If a `capstan sim site` runs it, give its address with --simulator-url"
                )));
            };
            let remote =
                Remote::new(url).map_err(|error| ProviderError::caused_by("--simulator-url", error))?;
            match remote.console(id).await {
                Ok(Some(text)) => Ok(text),
                Ok(None) => Err(ProviderError::new(format!("the site at {url} does not know machine {id}"))),
                Err(error) => Err(ProviderError::caused_by(
                    format!("no `capstan sim site` answers at {url}: give its address with --simulator-url"),
                    error,
                )),
            }
        })
    }
}

/// The site of the simulated machines, until it is dropped.
struct Running {
    site: SiteHandle,
    /// Address of a site in another process.
    url: Option<String>,
    /// Connects to clusters of a site in this process.
    local: Option<(Arc<dyn Dial>, u16)>,
    /// Serves clusters of a site in this process.
    server: Option<JoinHandle<()>>,
}

impl Running {
    /// Opens a site in this process, or connects to the one in the flags.
    async fn start(flags: &Flags, env: Env) -> Result<Self, ProviderError> {
        if let Some(url) = &flags.simulator_url {
            let remote =
                Remote::new(url).map_err(|error| ProviderError::caused_by("--simulator-url", error))?;
            let absent = |error: SiteCallError| {
                ProviderError::caused_by("start it first, with `capstan sim site`", error)
            };
            remote.check().await.map_err(absent)?;
            return Ok(Self { site: remote.into(), url: Some(url.clone()), local: None, server: None });
        }
        let pace = Delays::new(flags.simulator_instant, flags.simulator_heartbeat);
        let (site, listener) = open(env, flags.simulator_port, pace, "--simulator-port").await?;
        let local = (site.dial(), listener.local_addr()?.port());
        let served = site.clone();
        let server = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
        Ok(Self { site: site.into(), url: None, local: Some(local), server: Some(server) })
    }
}

impl RunningProvider for Running {
    fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(SimClusters::new(self.site.clone()));
        runtime.add(SimMachines::new(self.site.clone()).at(self.url.clone()));
        runtime.add(SimMachinePools);
        runtime.add(SimMachineTemplates);
    }

    fn dial(&self, otherwise: Arc<dyn Dial>) -> Arc<dyn Dial> {
        match &self.local {
            Some((site, port)) => Arc::new(LocalDial { site: site.clone(), port: *port, otherwise }),
            None => otherwise,
        }
    }

    fn volatile(&self) -> Option<&'static str> {
        self.local.as_ref().map(|_| {
            "simulated machines are in the memory of this process and are lost when it stops; `capstan sim site` with \
             --simulator-url keeps them"
        })
    }

    fn hint(&self) -> Option<&'static str> {
        Some(
            "kubectl apply -f examples/cni.yaml -f examples/sim-cluster.yaml\n      kubectl get cluster,machine --watch",
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

/// Connects to simulated clusters inside the process: thousands of them need no sockets.
struct LocalDial {
    site: Arc<dyn Dial>,
    port: u16,
    otherwise: Arc<dyn Dial>,
}

impl LocalDial {
    fn of(&self, host: &str, port: u16) -> &Arc<dyn Dial> {
        let local = port == self.port && host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
        if local { &self.site } else { &self.otherwise }
    }
}

impl Dial for LocalDial {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        self.of(host, port).dial(host, port)
    }

    fn ask_every(&self, host: &str, port: u16) -> Option<Duration> {
        self.of(host, port).ask_every(host, port)
    }
}

/// Delays of simulated machines.
#[derive(Clone, Copy)]
pub(crate) struct Delays {
    /// Boot and join without delay.
    instant: bool,
    /// Interval of Lease renewals.
    heartbeat: Option<Duration>,
}

impl Delays {
    /// From flags: seconds between heartbeats, 0 for none.
    pub(crate) fn new(instant: bool, heartbeat: u64) -> Self {
        Self { instant, heartbeat: Some(Duration::from_secs(heartbeat)).filter(|every| !every.is_zero()) }
    }
}

/// Opens a site and the port of its clusters; `flag` is named in the error if the port is taken.
pub(crate) async fn open(
    env: Env,
    port: u16,
    pace: Delays,
    flag: &str,
) -> Result<(Site, TcpListener), ProviderError> {
    // One listener for all of 127.0.0.0/8; the site rejects connections to other addresses.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.map_err(|error| {
        let what = format!("simulated clusters cannot be served on port {port}: choose another with {flag}");
        ProviderError::caused_by(what, error)
    })?;
    let options = SiteOptions {
        endpoint_port: listener.local_addr()?.port(),
        timings: if pace.instant { Timings::none() } else { Timings::default() },
        heartbeat: pace.heartbeat,
        assume_addons: false,
    };
    Ok((Site::new(env, options), listener))
}
