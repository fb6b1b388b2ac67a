//! The simulated cloud: machines that execute their boot data, in this process or in one of `capstan sim site`.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use capstan_capi_plane::Installed;
use capstan_capi_types::clusterctl::ProviderType;
use capstan_controller::{Env, Runtime};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_sim_provider::{SimClusters, SimMachines};
use capstan_sim_site::{Ground, Remote};
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
    /// Serves the clusters of a site in this process.
    door: Option<JoinHandle<()>>,
}

impl Simulator {
    /// Opens a site, or finds the one that is named.
    pub async fn start(args: &SimulatorArgs, env: Env) -> Result<Self> {
        if let Some(url) = &args.simulator_url {
            let remote = Remote::new(url).context("--simulator-url")?;
            remote.check().await.context("start it first, with `capstan sim site`")?;
            return Ok(Self { ground: remote.into(), door: None });
        }
        let (site, listener) =
            open(env, args.simulator_port, args.simulator_instant, "--simulator-port").await?;
        let served = site.clone();
        let door = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
        Ok(Self { ground: site.into(), door: Some(door) })
    }

    /// Adds the provider's controllers.
    pub fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(SimClusters::new(self.ground.clone()));
        runtime.add(SimMachines::new(self.ground.clone()));
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

/// A site, and the one port of its clusters; `flag` is what chooses another.
pub async fn open(env: Env, port: u16, instant: bool, flag: &str) -> Result<(Site, TcpListener)> {
    // One listener for every address of 127.0.0.0/8; the site turns away whoever comes by another.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.with_context(|| {
        format!("simulated clusters cannot be served on port {port}: choose another with {flag}")
    })?;
    let options = SiteOptions {
        endpoint_port: listener.local_addr()?.port(),
        timings: if instant { Timings::none() } else { Timings::default() },
        ..SiteOptions::default()
    };
    Ok((Site::new(env, options), listener))
}
