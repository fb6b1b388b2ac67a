//! `capstan sim cloudstack`, and the cloud of `capstan demo`: the simulator and its machines on sockets.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use capstan_env::Env;
use capstan_hypervisor::{HypervisorOptions, NewHypervisor};
use capstan_provider_kit::{OpenSimulator, ProviderError, SimulatorOptions, Terminal};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use crate::{Layout, Settings, Simulator, UnknownAccount, control};

/// The tenant.
const ACCOUNT: &str = "capstan";

/// Serves a CloudStack management server whose machines boot and form clusters.
pub struct CloudStackSimulator {
    /// What its machines run on.
    pub hypervisor: NewHypervisor,
}

#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Address of the API; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Kubernetes versions that there are images of
    #[arg(long, value_name = "VERSION", value_delimiter = ',', default_value = "v1.35.0,v1.36.0")]
    kubernetes: Vec<String>,
    /// Port of load balancers: clusters answer on it, on public addresses in 127.0.0.0/8
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    endpoint_port: u16,
    /// Ids and keys come from this number: the same seed gives the same cloud
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl capstan_provider_kit::Simulator for CloudStackSimulator {
    fn command(&self) -> Command {
        let about = "Serve the API of a CloudStack management server, whose machines boot and form clusters";
        Flags::augment_args(Command::new("cloudstack"))
            .about(about)
            .subcommand(control::command())
            .args_conflicts_with_subcommands(true)
    }

    fn run<'a>(
        &'a self,
        matches: &'a ArgMatches,
        terminal: &'a dyn Terminal,
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        match matches.subcommand() {
            Some((_, control)) => Box::pin(control::run(control, terminal)),
            None => Box::pin(serve(self.hypervisor, matches, terminal)),
        }
    }

    fn open(&self, options: SimulatorOptions) -> Result<OpenSimulator, ProviderError> {
        let SimulatorOptions { api, endpoints, kubernetes, speed, prompt_deletion } = options;
        let env = Env::system();
        let machines = HypervisorOptions { endpoint_port: endpoints.local_addr()?.port(), speed };
        let hypervisor = (self.hypervisor)(env.clone(), machines);
        // A tenant who may expunge has what is deleted gone at once.
        let settings = Settings { allow_user_expunge_recover_vm: prompt_deletion, ..Settings::default() };
        let versions: Vec<&str> = kubernetes.iter().map(String::as_str).collect();
        let simulator = Simulator::new(env, &Layout::small(&versions), settings, Some(hypervisor.clone()));
        let address = api.local_addr()?;
        let keys = simulator.credentials(ACCOUNT).map_err(unknown)?;
        let credentials =
            [("api-url", url(address)), ("api-key", keys.api_key), ("secret-key", keys.secret_key)];
        let credentials: BTreeMap<String, String> =
            credentials.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
        let serve = async move {
            tokio::select! {
                () = simulator.serve(api, std::future::pending()) => {}
                () = hypervisor.serve(endpoints, Box::pin(std::future::pending())) => {}
            }
        };
        Ok(OpenSimulator { address, credentials, serve: Box::pin(serve) })
    }
}

fn unknown(error: UnknownAccount) -> ProviderError {
    ProviderError::caused_by("the simulated cloud", error)
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/client/api")
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
    let api = TcpListener::bind(flags.listen).await.map_err(|error| {
        let what = format!(
            "cannot listen on {}: choose another address with --listen, or port 0 for any free one",
            flags.listen
        );
        ProviderError::caused_by(what, error)
    })?;
    let endpoints =
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, flags.endpoint_port)).await.map_err(|error| {
            let what =
                format!("cannot listen on port {}: choose another with --endpoint-port", flags.endpoint_port);
            ProviderError::caused_by(what, error)
        })?;
    announce(api.local_addr()?, &simulator, terminal)?;
    tokio::join!(simulator.serve(api, terminal.stopped()), hypervisor.serve(endpoints, terminal.stopped()));
    Ok(())
}

fn announce(
    address: SocketAddr,
    simulator: &Simulator,
    terminal: &dyn Terminal,
) -> Result<(), ProviderError> {
    terminal.print(&format!("a simulated CloudStack answers on {}; nothing is kept", url(address)))?;
    for account in [ACCOUNT, "admin"] {
        let keys = simulator.credentials(account).map_err(unknown)?;
        terminal.print(&format!(
            "\naccount:    {account}\napi-key:    {}\nsecret-key: {}",
            keys.api_key, keys.secret_key
        ))?;
    }
    terminal.print(&format!(
        "\nfaults: capstan sim cloudstack ctl --url http://{address} inject noCapacity; heal ends them\n\
         leaks:  capstan sim cloudstack ctl --url http://{address} leaks {ACCOUNT}\n\
         stop:   Ctrl-C"
    ))
}
