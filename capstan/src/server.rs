//! `capstan server`: the Kubernetes API from a data directory, and the controllers of Cluster API on it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use capstan_apiserver::env::Env;
use capstan_apiserver::pki::Pki;
use capstan_apiserver::{Config, Server as ApiServer};
use capstan_capi_plane::ClusterApi;
use capstan_controller::{Client, Runtime};
use clap::{ArgAction, ArgMatches, Command, Id};
use tokio::net::TcpListener;

use crate::assembly::{Assembly, ControllerArgs};
use crate::output::say;
use crate::plugins::Plugins;
use crate::reach::ADMIN;
use crate::signals;

/// Arguments of `capstan server`.
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the store, keys and the administrator's kubeconfig; made if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present = "in_memory")]
    data_dir: Option<PathBuf>,
    /// Keep objects in memory only; with --data-dir, keys and kubeconfig are still kept there
    #[arg(long)]
    in_memory: bool,
    /// Address to serve on; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Further host names or addresses the serving certificate is valid for
    #[arg(long, value_name = "NAME")]
    tls_san: Vec<String>,
    /// Serve the bare API: no definitions, no controllers
    #[arg(long, conflicts_with_all = ["controllers", "namespace", "watch_filter"])]
    api_only: bool,
    #[command(flatten)]
    assembly: ControllerArgs,
}

/// The command, whose flag for the bare API conflicts with those that ask for a provider.
pub fn command(command: Command, plugins: &Plugins) -> Command {
    let flags = plugins.arguments(Command::new("flags"));
    let asking = flags.get_arguments().filter(|flag| matches!(flag.get_action(), ArgAction::SetTrue));
    let asking: Vec<Id> = asking.map(|flag| flag.get_id().clone()).collect();
    command.mut_args(|flag| if flag.get_id() == "api_only" { flag.conflicts_with_all(&asking) } else { flag })
}

/// Serves until SIGTERM or Ctrl-C. The providers' flags are in `matches`.
pub fn run(args: Args, plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    crate::logging::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args, plugins, matches))
}

async fn serve(args: Args, plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    let started = Instant::now();
    let temporary = match &args.data_dir {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary directory could be made")?),
    };
    let dir: &Path = match (&args.data_dir, &temporary) {
        (Some(dir), _) => dir,
        (None, Some(temporary)) => temporary.path(),
        (None, None) => Path::new("."),
    };
    let env = Env::system();
    let assembly = match args.api_only {
        true => None,
        false => Some(Assembly::new(&args.assembly, plugins, matches, &env).await?),
    };
    let mut server = Server::open(dir, args.in_memory, args.listen, assembly).await?;
    server.control(env).await?;
    announce(&server, &args, started)?;
    server.serve(args.tls_san, signals::stop()).await
}

/// A server on a data directory, with or without controllers on it.
pub struct Server {
    api: ApiServer,
    listener: TcpListener,
    address: SocketAddr,
    kubeconfig: PathBuf,
    assembly: Option<Assembly>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Opens the store, takes the address and writes the administrator's kubeconfig. No controller runs yet, and nobody
    /// is answered.
    pub async fn open(
        dir: &Path,
        in_memory: bool,
        listen: SocketAddr,
        assembly: Option<Assembly>,
    ) -> Result<Self> {
        let pki = Pki::load_or_create(&dir.join("pki"), Env::system())
            .with_context(|| format!("the keys in {} could not be read or made", dir.display()))?;
        let pki = Arc::new(pki);
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!(
                "cannot listen on {listen}: choose another address with --listen, or port 0 for any free one"
            )
        })?;
        let address = listener.local_addr()?;
        let mut config = if in_memory { Config::in_memory() } else { Config::on_disk(dir) };
        if let Some(assembly) = &assembly {
            let kinds = ClusterApi::new(assembly.rules()).converting(assembly.versions());
            config = config.with_kinds(Arc::new(kinds));
        }
        let api = ApiServer::start(config, pki.clone()).await?;
        let kubeconfig = dir.join(ADMIN);
        let text = pki.admin_kubeconfig("capstan", &format!("https://{address}"))?;
        write_private(&kubeconfig, format!("{text:#}\n").as_bytes())
            .with_context(|| format!("{} could not be written", kubeconfig.display()))?;
        Ok(Self { api, listener, address, kubeconfig, assembly, runtime: None })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client with all rights.
    pub fn client(&self, name: &str) -> Client {
        Client::in_process(self.api.clone(), name)
    }

    /// Installs what the controllers need and starts them.
    pub async fn control(&mut self, env: Env) -> Result<()> {
        let Some(assembly) = &self.assembly else { return Ok(()) };
        let client = self.client("capstan");
        capstan_capi_plane::install(&client, &assembly.definitions()).await?;
        assembly.register(&client).await?;
        let mut runtime = assembly.runtime(client, env);
        let (metrics, providers) = (runtime.metrics().clone(), assembly.metrics());
        self.api.show_metrics(move || metrics.render() + &providers());
        runtime.start();
        self.runtime = Some(runtime);
        Ok(())
    }

    /// Answers until `stop` resolves, under further names too.
    pub async fn serve(self, more: Vec<String>, stop: impl Future<Output = ()> + Send) -> Result<()> {
        let Self { api, listener, address, assembly, runtime, .. } = self;
        let mut names = vec![address.ip().to_string(), "localhost".into(), "kubernetes.default.svc".into()];
        names.extend(more);
        // Controllers stop before the store closes under them.
        let stop = async {
            stop.await;
            if let Some(runtime) = runtime {
                runtime.stop().await;
            }
            drop(assembly);
        };
        api.serve(listener, &names, stop).await?;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Writes a file that is readable by its owner only from the first moment on.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    std::io::Write::write_all(&mut options.open(path)?, bytes)
}

fn announce(server: &Server, args: &Args, started: Instant) -> Result<()> {
    let (address, assembly) = (server.address, server.assembly.as_ref());
    let kind = if args.in_memory { "in memory, nothing is kept" } else { "durable" };
    let ready = started.elapsed();
    say(&format!("capstan serves the Kubernetes API on https://{address} ({kind}; ready in {ready:.0?})"))?;
    if let Some(assembly) = assembly {
        let groups: Vec<&str> = assembly.groups().iter().map(|group| group.name()).collect();
        say(&format!("controllers: {}", groups.join(", ")))?;
    }
    let next = match assembly {
        Some(assembly) => assembly.hint().unwrap_or("kubectl get clusters --all-namespaces"),
        None => "kubectl get namespaces\n      kubectl apply -f my-crd.yaml",
    };
    let path = server.kubeconfig.display();
    say(&format!("kubeconfig: {path}\n\ntry:  export KUBECONFIG={path}\n      {next}\nstop: Ctrl-C"))
}
