//! The simulated cloud: machines that execute their boot data, in this process or in one of `capstan sim site`.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use capstan_capi_plane::Installed;
use capstan_capi_types::clusterctl::ProviderType;
use capstan_controller::{Dial, Env, Runtime, Stream, TcpDial};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_sim_provider::{SimClusters, SimMachines};
use capstan_sim_site::{Ground, Remote};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Arguments about the simulator.
#[derive(clap::Args, Clone)]
pub struct SimulatorArgs {
    /// Provide simulated machines: SimCluster, SimMachine. They live as long as this process
    #[arg(long)]
    pub simulator: bool,
    /// Port of the API servers of simulated clusters, whose addresses are 127.x.y.z
    #[arg(long, value_name = "PORT", default_value_t = 16443, requires = "simulator")]
    pub simulator_port: u16,
    /// Have simulated machines boot and join at once instead of taking a machine's time
    #[arg(long, requires = "simulator")]
    pub simulator_instant: bool,
    /// Provide the simulated machines of `capstan sim site` at this address, such as http://127.0.0.1:7480. They outlive
    /// this process
    #[arg(long, value_name = "URL", conflicts_with = "simulator")]
    pub simulator_url: Option<String>,
    /// How often simulated kubelets renew their Leases; 0 for never, which makes quiet clusters cost nothing
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "simulator")]
    pub simulator_heartbeat: u64,
}

impl SimulatorArgs {
    /// Whether there are simulated machines.
    pub fn is_wanted(&self) -> bool {
        self.simulator || self.simulator_url.is_some()
    }
}

/// Where simulated machines are, for as long as this lives.
pub struct Simulator {
    ground: Ground,
    /// Leads to the clusters of a site in this process.
    near: Option<NearDial>,
    /// Serves the clusters of a site in this process.
    door: Option<JoinHandle<()>>,
}

/// Reaches simulated clusters inside the process: thousands of them need no sockets.
#[derive(Clone)]
struct NearDial {
    site: Arc<dyn Dial>,
    port: u16,
}

impl NearDial {
    fn is_near(&self, host: &str, port: u16) -> bool {
        port == self.port && host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    }
}

impl Dial for NearDial {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        if self.is_near(host, port) { self.site.dial(host, port) } else { TcpDial.dial(host, port) }
    }

    fn ask_every(&self, host: &str, port: u16) -> Option<Duration> {
        if self.is_near(host, port) { None } else { TcpDial.ask_every(host, port) }
    }
}

impl Simulator {
    /// Opens a site, or finds the one that is named.
    pub async fn start(args: &SimulatorArgs, env: Env) -> Result<Self> {
        if let Some(url) = &args.simulator_url {
            let remote = Remote::new(url).context("--simulator-url")?;
            remote.check().await.context("start it first, with `capstan sim site`")?;
            return Ok(Self { ground: remote.into(), near: None, door: None });
        }
        let pace = Pace::new(args.simulator_instant, args.simulator_heartbeat);
        let (site, listener) = open(env, args.simulator_port, pace, "--simulator-port").await?;
        let near = NearDial { site: site.dial(), port: listener.local_addr()?.port() };
        let served = site.clone();
        let door = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
        Ok(Self { ground: site.into(), near: Some(near), door: Some(door) })
    }

    /// Adds the provider's controllers.
    pub fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(SimClusters::new(self.ground.clone()));
        runtime.add(SimMachines::new(self.ground.clone()));
    }

    /// Connections to simulated clusters without the detour over TCP, and to everything else as always.
    pub fn dial(&self) -> Arc<dyn Dial> {
        match &self.near {
            Some(near) => Arc::new(near.clone()),
            None => Arc::new(TcpDial),
        }
    }

    /// The provider, as clusterctl lists it.
    pub fn provider() -> Installed {
        Installed {
            name: "sim",
            kind: ProviderType::Infrastructure,
            namespace: "capstan-system",
            version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        if let Some(door) = &self.door {
            door.abort();
        }
    }
}

/// How much time simulated machines take.
#[derive(Clone, Copy)]
pub struct Pace {
    /// They boot and join at once.
    pub instant: bool,
    /// How often their kubelets renew their Leases.
    pub heartbeat: Option<Duration>,
}

impl Pace {
    /// As flags say it: seconds between two heartbeats, 0 for none.
    pub fn new(instant: bool, heartbeat: u64) -> Self {
        Self { instant, heartbeat: Some(Duration::from_secs(heartbeat)).filter(|every| !every.is_zero()) }
    }
}

/// A site, and the one port of its clusters; `flag` is what chooses another.
pub async fn open(env: Env, port: u16, pace: Pace, flag: &str) -> Result<(Site, TcpListener)> {
    // One listener for every address of 127.0.0.0/8; the site turns away whoever comes by another.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.with_context(|| {
        format!("simulated clusters cannot be served on port {port}: choose another with {flag}")
    })?;
    let options = SiteOptions {
        endpoint_port: listener.local_addr()?.port(),
        timings: if pace.instant { Timings::none() } else { Timings::default() },
        heartbeat: pace.heartbeat,
        assume_network: false,
    };
    Ok((Site::new(env, options), listener))
}
