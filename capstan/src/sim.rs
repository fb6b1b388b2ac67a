//! `capstan sim`: simulated clouds, for whoever has none at hand.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use capstan_apiserver::env::Env;
use capstan_guest::{Site, SiteOptions};
use capstan_sim_cloudstack::{Layout, Settings, Simulator};
use tokio::net::TcpListener;

use crate::output::say;
use crate::simulator::Pace;

/// Arguments of `capstan sim`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    cloud: Cloud,
}

#[derive(clap::Subcommand)]
enum Cloud {
    /// Serve the API of a CloudStack management server, whose machines boot and form clusters
    Cloudstack(CloudstackArgs),
    /// Keep simulated machines in a process of their own, for `--simulator-url` of servers and managers
    Site(SiteArgs),
}

#[derive(clap::Args)]
struct SiteArgs {
    /// Loopback address of the site's API; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
    listen: SocketAddr,
    /// Port of the API servers of simulated clusters, whose addresses are 127.x.y.z
    #[arg(long, value_name = "PORT", default_value_t = 16443)]
    endpoint_port: u16,
    /// Have machines boot and join at once instead of taking a machine's time
    #[arg(long)]
    instant: bool,
    /// How often kubelets renew their Leases; 0 for never, which makes quiet clusters cost nothing
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    heartbeat: u64,
}

#[derive(clap::Args)]
struct CloudstackArgs {
    /// Address of the API; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Kubernetes versions that there are images of
    #[arg(long, value_name = "VERSION", value_delimiter = ',', default_value = "v1.35.0,v1.36.0")]
    kubernetes: Vec<String>,
    /// Port of load balancers: clusters answer on it, on public addresses in 127.0.0.0/8
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    endpoint_port: u16,
    /// Ids and keys come from this number: the same number, the same cloud
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Serves a simulated cloud until SIGTERM or Ctrl-C.
pub fn run(args: Args) -> Result<()> {
    crate::logging::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match args.cloud {
        Cloud::Cloudstack(args) => runtime.block_on(cloudstack(args)),
        Cloud::Site(args) => runtime.block_on(site(&args)),
    }
}

async fn site(args: &SiteArgs) -> Result<()> {
    if !args.listen.ip().is_loopback() {
        anyhow::bail!(
            "--listen {}: simulated machines are for this machine, so choose a loopback address",
            args.listen
        );
    }
    let port = args.endpoint_port;
    let pace = Pace::new(args.instant, args.heartbeat);
    let (site, endpoints) = crate::simulator::open(Env::system(), port, pace, "--endpoint-port").await?;
    let api = listen(args.listen).await?;
    let address = api.local_addr()?;
    say(&format!(
        "simulated machines live here until this ends; use them with --simulator-url http://{address}"
    ))?;
    let served = capstan_sim_site::serve(site.clone(), api, crate::signals::stop());
    tokio::join!(served, site.serve(endpoints, crate::signals::stop()));
    Ok(())
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}: choose another address with --listen, or port 0 for any free one"
        )
    })
}

async fn cloudstack(args: CloudstackArgs) -> Result<()> {
    let env = Env::simulated(jiff::Timestamp::now, args.seed);
    let site =
        Site::new(env.clone(), SiteOptions { endpoint_port: args.endpoint_port, ..SiteOptions::default() });
    let versions: Vec<&str> = args.kubernetes.iter().map(String::as_str).collect();
    let simulator = Simulator::new(env, &Layout::small(&versions), Settings::default(), Some(site.clone()));
    let api = listen(args.listen).await?;
    let endpoints = (Ipv4Addr::UNSPECIFIED, args.endpoint_port);
    let endpoints = TcpListener::bind(endpoints).await.with_context(|| {
        format!("cannot listen on port {}: choose another with --endpoint-port", args.endpoint_port)
    })?;
    announce(api.local_addr()?, &simulator)?;
    tokio::join!(simulator.serve(api, crate::signals::stop()), site.serve(endpoints, crate::signals::stop()));
    Ok(())
}

fn announce(address: SocketAddr, simulator: &Simulator) -> Result<()> {
    say(&format!("a simulated CloudStack answers on http://{address}/client/api; nothing is kept"))?;
    for account in ["capstan", "admin"] {
        let keys = simulator.credentials(account)?;
        say(&format!(
            "\naccount:    {account}\napi-key:    {}\nsecret-key: {}",
            keys.api_key, keys.secret_key
        ))?;
    }
    say(&format!(
        "\nfaults: curl -d '{{\"fault\":\"noCapacity\"}}' http://{address}/sim/faults; -X DELETE heals\n\
         leaks:  curl http://{address}/sim/leaks?account=capstan\n\
         stop:   Ctrl-C"
    ))
}
