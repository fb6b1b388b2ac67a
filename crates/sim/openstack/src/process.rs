//! `capstan sim openstack`, and the cloud of `capstan demo`: the simulator and its servers on sockets.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use capstan_env::Env;
use capstan_hypervisor::{HypervisorOptions, NewHypervisor};
use capstan_provider_kit::{OpenSimulator, ProviderError, SimulatorOptions, Terminal};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use crate::{Endpoints, Layout, Service, Settings, Simulator};

/// Project, user and password of the tenant.
const TENANT: &str = "capstan";

/// Serves the APIs of an OpenStack cloud whose servers boot and form clusters.
pub struct OpenStackSimulator {
    /// What its servers run on.
    pub hypervisor: NewHypervisor,
}

#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Address of Keystone; port 0 takes any free one. The other services take free ports, which the catalog names
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5000")]
    listen: SocketAddr,
    /// Kubernetes versions that there are images of
    #[arg(long, value_name = "VERSION", value_delimiter = ',', default_value = "v1.35.0,v1.36.0")]
    kubernetes: Vec<String>,
    /// Port of the clusters' API servers on floating IPs, which are in 127.0.0.0/8
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    endpoint_port: u16,
    /// Ids come from this number: the same seed gives the same cloud
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl capstan_provider_kit::Simulator for OpenStackSimulator {
    fn command(&self) -> Command {
        let about = "Serve the APIs of an OpenStack cloud, whose servers boot and form clusters";
        Flags::augment_args(Command::new("openstack")).about(about)
    }

    fn run<'a>(
        &'a self,
        matches: &'a ArgMatches,
        terminal: &'a dyn Terminal,
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(serve(self.hypervisor, matches, terminal))
    }

    fn open(&self, options: SimulatorOptions) -> Result<OpenSimulator, ProviderError> {
        let SimulatorOptions { api, endpoints, kubernetes, speed, .. } = options;
        let env = Env::system();
        let machines = HypervisorOptions { endpoint_port: endpoints.local_addr()?.port(), speed };
        let hypervisor = (self.hypervisor)(env.clone(), machines);
        let versions: Vec<&str> = kubernetes.iter().map(String::as_str).collect();
        let simulator =
            Simulator::new(env, &Layout::small(&versions), Settings::default(), Some(hypervisor.clone()));
        let address = api.local_addr()?;
        let all = Endpoints::shared(&format!("http://{address}"), &simulator.regions());
        let keystone = format!("http://{address}{}/v3", Service::Identity.prefix());
        simulator.set_endpoints(all);
        let credentials =
            BTreeMap::from([("clouds.yaml".to_owned(), clouds_yaml(&simulator, &keystone, &[TENANT]))]);
        let serve = async move {
            tokio::select! {
                () = simulator.serve(api, None) => {}
                () = simulator.drive() => {}
                () = hypervisor.serve(endpoints, Box::pin(std::future::pending())) => {}
            }
        };
        Ok(OpenSimulator { address, credentials, serve: Box::pin(serve) })
    }
}

/// A `clouds.yaml` with one cloud for each user and region.
fn clouds_yaml(simulator: &Simulator, keystone: &str, users: &[&str]) -> String {
    let mut text = "clouds:\n".to_owned();
    for (index, region) in simulator.regions().iter().enumerate() {
        for user in users {
            let name =
                if index == 0 { (*user).to_owned() } else { format!("{user}-{}", region.to_lowercase()) };
            text += &format!(
                "  {name}:\n    auth:\n      auth_url: {keystone}\n      username: {user}\n      password: {user}\n      \
                 project_name: {user}\n      user_domain_name: Default\n      project_domain_name: Default\n    \
                 region_name: {region}\n    interface: public\n    identity_api_version: 3\n"
            );
        }
    }
    text
}

async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, ProviderError> {
    TcpListener::bind(address).await.map_err(|error| {
        let what = format!("cannot listen on {address}: choose another with {flag}");
        ProviderError::caused_by(what, error)
    })
}

async fn serve(
    hypervisor: NewHypervisor,
    matches: &ArgMatches,
    terminal: &dyn Terminal,
) -> Result<(), ProviderError> {
    let flags = Flags::from_arg_matches(matches)
        .map_err(|error| ProviderError::caused_by("the simulator's flags", error))?;
    let env = Env::simulated(jiff::Timestamp::now, flags.seed);
    let machines = HypervisorOptions { endpoint_port: flags.endpoint_port, speed: 1.0 };
    let hypervisor = hypervisor(env.clone(), machines);
    let versions: Vec<&str> = flags.kubernetes.iter().map(String::as_str).collect();
    let simulator =
        Simulator::new(env, &Layout::small(&versions), Settings::default(), Some(hypervisor.clone()));
    let identity = listen(flags.listen, "--listen, or port 0 for any free one").await?;
    let keystone = format!("http://{}", identity.local_addr()?);
    let mut listeners = Vec::new();
    let mut all = BTreeMap::new();
    for region in simulator.regions() {
        for service in Service::ALL {
            if service == Service::Identity {
                all.insert((region.clone(), service), keystone.clone());
                continue;
            }
            let listener = listen(SocketAddr::new(flags.listen.ip(), 0), "--listen").await?;
            all.insert((region.clone(), service), format!("http://{}", listener.local_addr()?));
            listeners.push((listener, region.clone(), service));
        }
    }
    let first = simulator.regions().first().cloned().unwrap_or_default();
    listeners.push((identity, first, Service::Identity));
    simulator.set_endpoints(Endpoints(all));
    let endpoints = listen((Ipv4Addr::UNSPECIFIED, flags.endpoint_port).into(), "--endpoint-port").await?;
    announce(&simulator, &keystone, terminal)?;
    let apis = futures::future::join_all(
        listeners
            .into_iter()
            .map(|(listener, region, service)| simulator.serve(listener, Some((region, service)))),
    );
    tokio::select! {
        () = terminal.stopped() => {}
        () = simulator.drive() => {}
        _ = apis => {}
        () = hypervisor.serve(endpoints, Box::pin(std::future::pending())) => {}
    }
    Ok(())
}

fn announce(simulator: &Simulator, keystone: &str, terminal: &dyn Terminal) -> Result<(), ProviderError> {
    terminal.print(&format!("# a simulated OpenStack answers on {keystone}/v3; nothing is kept"))?;
    terminal.print(&clouds_yaml(simulator, &format!("{keystone}/v3"), &[TENANT, "admin"]))?;
    terminal.print(&format!(
        "# faults: curl -d '{{\"fault\":\"noValidHost\"}}' {keystone}/sim/faults; -X DELETE heals\n\
         # leaks:  curl {keystone}/sim/leaks?project={TENANT}\n\
         # dump:   curl {keystone}/sim/dump; restore it with -X PUT -d @FILE\n\
         # stop:   Ctrl-C"
    ))
}
