//! The provider as a plug-in: its flags, where its machines are, and how their consoles are read.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::admission::Rules;
use capstan_controller::{Code, Dial, Env, Runtime, Stream};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_provider_kit::{
    ConsoleReader, MachineModel, OpenedProvider, Provider, ProviderError, RunningProvider, Size,
};
use capstan_sim_site::{Ground, GroundError, Remote};
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::machine::{CPUS, MEMORY_MIB, SCHEME};
use crate::{SimClusters, SimMachines, code, definitions, rules};

/// Provides simulated machines, where a flag asks for them.
pub struct Simulated;

/// Flags about the simulator.
#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Provide simulated machines: SimCluster, SimMachine. They live as long as this process
    #[arg(long)]
    simulator: bool,
    /// Port of the API servers of simulated clusters, whose addresses are 127.x.y.z
    #[arg(long, value_name = "PORT", default_value_t = 16443, requires = "simulator")]
    simulator_port: u16,
    /// Have simulated machines boot and join at once instead of taking a machine's time
    #[arg(long, requires = "simulator")]
    simulator_instant: bool,
    /// Provide the simulated machines of `capstan sim site` at this address, such as http://127.0.0.1:7480. They outlive
    /// this process
    #[arg(long, value_name = "URL", conflicts_with = "simulator")]
    simulator_url: Option<String>,
    /// How often simulated kubelets renew their Leases; 0 for never, which makes quiet clusters cost nothing
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

/// A machine that does not say how large it is has the size that the controller gives it.
fn size(object: &Value) -> Option<Size> {
    let said = |field: &str| object["spec"][field].as_u64();
    Some(Size {
        cpus: said("cpus").unwrap_or(CPUS.into()),
        memory_mib: said("memoryMiB").unwrap_or(MEMORY_MIB),
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
                .default_value("http://127.0.0.1:7480")
                .help("Address of the `capstan sim site` that keeps the machine, if it is a simulated one"),
        )
    }

    fn read<'a>(
        &'a self,
        machine: &'a str,
        object: &'a Value,
        matches: &'a ArgMatches,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            let url = matches.get_one::<String>("simulator_url").map_or("", String::as_str);
            let provider_id = object["spec"]["providerID"].as_str();
            let Some(id) = provider_id.and_then(|id| id.strip_prefix(SCHEME)) else {
                return Err(ProviderError::new(format!(
                    "machine {machine} has printed nothing yet: it was not switched on"
                )));
            };
            let remote =
                Remote::new(url).map_err(|error| ProviderError::caused_by("--simulator-url", error))?;
            match remote.console(id).await {
                Ok(Some(text)) => Ok(text),
                Ok(None) => Err(ProviderError::new(format!("the site at {url} does not know machine {id}"))),
                Err(error) => Err(ProviderError::caused_by(
                    format!(
                        "no `capstan sim site` answers at {url}: give its address with --simulator-url. Machines of a server \
                         that runs with --simulator are in its memory alone; their last line is in `capstan why`"
                    ),
                    error,
                )),
            }
        })
    }
}

/// Where simulated machines are, for as long as this lives.
struct Running {
    ground: Ground,
    /// Leads to the clusters of a site in this process.
    near: Option<(Arc<dyn Dial>, u16)>,
    /// Serves the clusters of a site in this process.
    door: Option<JoinHandle<()>>,
}

impl Running {
    /// Opens a site, or finds the one that is named.
    async fn start(flags: &Flags, env: Env) -> Result<Self, ProviderError> {
        if let Some(url) = &flags.simulator_url {
            let remote =
                Remote::new(url).map_err(|error| ProviderError::caused_by("--simulator-url", error))?;
            let absent = |error: GroundError| {
                ProviderError::caused_by("start it first, with `capstan sim site`", error)
            };
            remote.check().await.map_err(absent)?;
            return Ok(Self { ground: remote.into(), near: None, door: None });
        }
        let pace = Pace::new(flags.simulator_instant, flags.simulator_heartbeat);
        let (site, listener) = open(env, flags.simulator_port, pace, "--simulator-port").await?;
        let near = (site.dial(), listener.local_addr()?.port());
        let served = site.clone();
        let door = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
        Ok(Self { ground: site.into(), near: Some(near), door: Some(door) })
    }
}

impl RunningProvider for Running {
    fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(SimClusters::new(self.ground.clone()));
        runtime.add(SimMachines::new(self.ground.clone()));
    }

    fn dial(&self, otherwise: Arc<dyn Dial>) -> Arc<dyn Dial> {
        match &self.near {
            Some((site, port)) => Arc::new(NearDial { site: site.clone(), port: *port, otherwise }),
            None => otherwise,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        Some(
            "kubectl apply -f examples/cni.yaml -f examples/sim-cluster.yaml\n      kubectl get cluster,machine --watch",
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(door) = &self.door {
            door.abort();
        }
    }
}

/// Reaches simulated clusters inside the process: thousands of them need no sockets.
struct NearDial {
    site: Arc<dyn Dial>,
    port: u16,
    otherwise: Arc<dyn Dial>,
}

impl NearDial {
    fn of(&self, host: &str, port: u16) -> &Arc<dyn Dial> {
        let near = port == self.port && host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
        if near { &self.site } else { &self.otherwise }
    }
}

impl Dial for NearDial {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        self.of(host, port).dial(host, port)
    }

    fn ask_every(&self, host: &str, port: u16) -> Option<Duration> {
        self.of(host, port).ask_every(host, port)
    }
}

/// How much time simulated machines take.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// They boot and join at once.
    instant: bool,
    /// How often their kubelets renew their Leases.
    heartbeat: Option<Duration>,
}

impl Pace {
    /// As flags say it: seconds between two heartbeats, 0 for none.
    pub(crate) fn new(instant: bool, heartbeat: u64) -> Self {
        Self { instant, heartbeat: Some(Duration::from_secs(heartbeat)).filter(|every| !every.is_zero()) }
    }
}

/// A site, and the one port of its clusters; `flag` is what chooses another.
pub(crate) async fn open(
    env: Env,
    port: u16,
    pace: Pace,
    flag: &str,
) -> Result<(Site, TcpListener), ProviderError> {
    // One listener for every address of 127.0.0.0/8; the site turns away whoever comes by another.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.map_err(|error| {
        let what = format!("simulated clusters cannot be served on port {port}: choose another with {flag}");
        ProviderError::caused_by(what, error)
    })?;
    let options = SiteOptions {
        endpoint_port: listener.local_addr()?.port(),
        timings: if pace.instant { Timings::none() } else { Timings::default() },
        heartbeat: pace.heartbeat,
        assume_network: false,
    };
    Ok((Site::new(env, options), listener))
}
