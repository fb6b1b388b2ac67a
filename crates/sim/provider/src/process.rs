//! `capstan sim site`: simulated machines in their own process, for several servers or managers.

use std::net::SocketAddr;

use capstan_controller::Env;
use capstan_provider_kit::{ProviderError, Simulator, Terminal};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use crate::plugin::{Delays, open};

/// Runs a site of simulated machines.
pub struct SiteProcess;

#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Loopback address of the site's API; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
    listen: SocketAddr,
    /// Port of the API servers of simulated clusters, whose addresses are 127.x.y.z
    #[arg(long, value_name = "PORT", default_value_t = 16443)]
    endpoint_port: u16,
    /// Let machines boot and join without delay
    #[arg(long)]
    instant: bool,
    /// How often kubelets renew their Leases; 0 for never, so that idle clusters cost no CPU time
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    heartbeat: u64,
}

impl Simulator for SiteProcess {
    fn command(&self) -> Command {
        let about =
            "Run simulated machines in a separate process, for `--simulator-url` of servers and managers";
        Flags::augment_args(Command::new("site")).about(about)
    }

    fn run<'a>(
        &'a self,
        matches: &'a ArgMatches,
        terminal: &'a dyn Terminal,
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(serve(matches, terminal))
    }
}

async fn serve(matches: &ArgMatches, terminal: &dyn Terminal) -> Result<(), ProviderError> {
    let flags = Flags::from_arg_matches(matches)
        .map_err(|error| ProviderError::caused_by("the site's flags", error))?;
    if !flags.listen.ip().is_loopback() {
        return Err(ProviderError::new(format!(
            "--listen {}: simulated machines are for this machine, so choose a loopback address",
            flags.listen
        )));
    }
    let pace = Delays::new(flags.instant, flags.heartbeat);
    let (site, endpoints) = open(Env::system(), flags.endpoint_port, pace, "--endpoint-port").await?;
    let api = TcpListener::bind(flags.listen).await.map_err(|error| {
        let what = format!(
            "cannot listen on {}: choose another address with --listen, or port 0 for any free one",
            flags.listen
        );
        ProviderError::caused_by(what, error)
    })?;
    let address = api.local_addr()?;
    terminal.print(&format!(
        "simulated machines run here until this process ends; use them with --simulator-url http://{address}"
    ))?;
    let served = capstan_sim_site::serve(site.clone(), api, terminal.stopped());
    tokio::join!(served, site.serve(endpoints, terminal.stopped()));
    Ok(())
}
