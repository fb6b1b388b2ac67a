//! The simulated cloud: machines that execute their boot data, in this process.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use capstan_capi_plane::Installed;
use capstan_capi_types::clusterctl::ProviderType;
use capstan_controller::{Env, Runtime};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_sim_provider::{SimClusters, SimMachines};
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
}

/// A site, reachable over TCP for as long as this lives.
pub struct Simulator {
    site: Site,
    door: JoinHandle<()>,
}

impl Simulator {
    /// Opens the site's one port.
    pub async fn start(args: &SimulatorArgs, env: Env) -> Result<Self> {
        let port = args.simulator_port;
        // One listener for every address of 127.0.0.0/8; the site turns away whoever comes by another.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.with_context(|| {
            format!(
                "simulated clusters cannot be served on port {port}: choose another with --simulator-port"
            )
        })?;
        let options = SiteOptions {
            endpoint_port: listener.local_addr()?.port(),
            timings: if args.simulator_instant { Timings::none() } else { Timings::default() },
            ..SiteOptions::default()
        };
        let site = Site::new(env, options);
        let served = site.clone();
        let door = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
        Ok(Self { site, door })
    }

    /// Adds the provider's controllers.
    pub fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(SimClusters::new(self.site.clone()));
        runtime.add(SimMachines::new(self.site.clone()));
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
        self.door.abort();
    }
}
