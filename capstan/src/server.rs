//! `capstan server`: the Kubernetes API from a data directory, with the Cluster API controllers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use capstan_apiserver::front::ConnectionLimits;
use capstan_apiserver::{Config, InFlightLimits, Server as ApiServer, ServiceRange};
use capstan_capi_plane::ClusterApi;
use capstan_controller::{Client, Runtime};
use capstan_env::Env;
use capstan_oidc::Oidc;
use capstan_pki::Pki;
use capstan_traces::Exporter;
use clap::{ArgAction, ArgMatches, Command, Id};
use tokio::net::TcpListener;

use crate::assembly::{Assembly, ControllerArgs};
use crate::audit::{self, LogArgs};
use crate::connection::ADMIN;
use crate::encryption::{self, EncryptionArgs, cipher};
use crate::open_files;
use crate::output::print_line;
use crate::plugins::Plugins;
use crate::signals;
use crate::systemd::{self, State};
use crate::traces::{Sending, TraceArgs};

/// Arguments of `capstan server`.
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the store, keys and the administrator's kubeconfig; created if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present = "in_memory")]
    data_dir: Option<PathBuf>,
    /// Keep objects in memory only; with --data-dir, keys and kubeconfig are still written there
    #[arg(long)]
    in_memory: bool,
    /// Address to listen on; port 0 takes any free port. A socket passed by systemd (capstan.socket) is used instead
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Additional host name or address in the serving certificate
    #[arg(long, value_name = "NAME")]
    tls_san: Vec<String>,
    /// Serve only the API, without Cluster API kinds and controllers
    #[arg(long, conflicts_with_all = ["controllers", "namespace", "watch_filter", "otlp_endpoint"])]
    api_only: bool,
    /// Create a new key for ServiceAccount tokens if pki/sa.key is lost; every token signed with the lost one is invalid
    #[arg(long)]
    new_token_key: bool,
    #[command(flatten)]
    api: ApiArgs,
    #[command(flatten)]
    assembly: ControllerArgs,
    #[command(flatten)]
    traces: TraceArgs,
}

/// Whom a server lets in, what it takes on at once, and what it records.
#[derive(clap::Args, Clone, Default)]
pub struct ApiArgs {
    #[command(flatten)]
    limits: LimitArgs,
    /// Accept tokens of OpenID Connect issuers: an AuthenticationConfiguration (apiserver.config.k8s.io/v1)
    #[arg(long, value_name = "FILE")]
    authentication_config: Option<PathBuf>,
    /// Network that cluster IPs of Services are allocated from; the ServiceCIDR kubernetes keeps that of the first start
    #[arg(long, value_name = "CIDR", default_value_t)]
    service_cluster_ip_range: ServiceRange,
    #[command(flatten)]
    audit: LogArgs,
    #[command(flatten)]
    encryption: EncryptionArgs,
}

impl ApiArgs {
    /// The defaults, with the encryption key in the data directory.
    pub fn with_key_inside(dir: &Path) -> Self {
        Self { encryption: EncryptionArgs::inside(dir), ..Self::default() }
    }

    fn oidc(&self) -> Result<Option<Arc<Oidc>>> {
        let Some(file) = &self.authentication_config else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the authentication configuration {}", file.display()))?;
        let oidc = Oidc::parse(&text);
        let oidc = oidc.with_context(|| format!("authentication configuration {}", file.display()))?;
        Ok(Some(Arc::new(oidc)))
    }
}

/// How much a server takes on at once.
#[derive(clap::Args, Clone)]
pub struct LimitArgs {
    /// Maximum number of open connections; fewer if the limit of open files is too low for them, 0 for as many as that allows
    #[arg(long, value_name = "COUNT", default_value_t = ConnectionLimits::default().total)]
    max_connections: usize,
    /// Maximum number of open connections from one IPv4 address or one IPv6 /64 network; 0 for no limit
    #[arg(long, value_name = "COUNT", default_value_t = ConnectionLimits::default().per_address)]
    max_connections_per_address: usize,
    /// Seats for requests that only read; priority levels share them with those for writes; 0 for no limit
    #[arg(long, value_name = "COUNT", default_value_t = InFlightLimits::default().read_only)]
    max_requests_inflight: usize,
    /// Seats for all other requests; 0 for no limit
    #[arg(long, value_name = "COUNT", default_value_t = InFlightLimits::default().mutating)]
    max_mutating_requests_inflight: usize,
}

impl Default for LimitArgs {
    fn default() -> Self {
        let (connections, requests) = (ConnectionLimits::default(), InFlightLimits::default());
        Self {
            max_connections: connections.total,
            max_connections_per_address: connections.per_address,
            max_requests_inflight: requests.read_only,
            max_mutating_requests_inflight: requests.mutating,
        }
    }
}

impl LimitArgs {
    fn requests(&self) -> InFlightLimits {
        InFlightLimits {
            read_only: self.max_requests_inflight,
            mutating: self.max_mutating_requests_inflight,
        }
    }

    /// Raises the limit of open files, and lowers the number of connections to what it allows.
    fn connections(&self) -> ConnectionLimits {
        let files = open_files::raise_limit();
        let wanted =
            ConnectionLimits { total: self.max_connections, per_address: self.max_connections_per_address };
        let limits = wanted.within(files);
        if wanted.total != 0 && limits != wanted {
            tracing::warn!(
                files,
                connections = limits.total,
                per_address = limits.per_address,
                "the limit of open files allows fewer connections than --max-connections; raise it (LimitNOFILE, ulimit -Hn)"
            );
        }
        limits
    }
}

/// The command. `--api-only` conflicts with the flags that enable a provider.
pub fn command(command: Command, plugins: &Plugins) -> Command {
    let flags = plugins.arguments(Command::new("flags"));
    let enabling = flags.get_arguments().filter(|flag| matches!(flag.get_action(), ArgAction::SetTrue));
    let enabling: Vec<Id> = enabling.map(|flag| flag.get_id().clone()).collect();
    command
        .mut_args(|flag| if flag.get_id() == "api_only" { flag.conflicts_with_all(&enabling) } else { flag })
}

/// Serves until SIGTERM or Ctrl-C. The providers' flags are in `matches`.
pub fn run(args: Args, plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    let exporter = args.traces.start_logging()?;
    let listen = match systemd::inherited_listener()? {
        Some(listener) => Listen::On(listener),
        None => Listen::At(args.listen),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args, listen, plugins, matches, exporter))
}

async fn serve(
    args: Args,
    listen: Listen,
    plugins: &Plugins,
    matches: &ArgMatches,
    exporter: Option<Exporter>,
) -> Result<()> {
    let started = Instant::now();
    let temporary = match &args.data_dir {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("cannot create a temporary directory")?),
    };
    let dir: &Path = match (&args.data_dir, &temporary) {
        (Some(dir), _) => dir,
        (None, Some(temporary)) => temporary.path(),
        (None, None) => Path::new("."),
    };
    if args.new_token_key {
        Pki::replace_lost_token_key(&dir.join("pki")).context("no key for tokens could be created")?;
    }
    let env = Env::system();
    let assembly = match args.api_only {
        true => None,
        false => Some(Assembly::new(&args.assembly, plugins, matches, &env).await?),
    };
    let mut server = Server::open(dir, args.in_memory, listen, assembly, &args.api).await?;
    let (sending, counts) = Sending::start(exporter);
    if let Some(counts) = counts {
        server.api.show_metrics(move || counts.render());
    }
    server.start_controllers(env).await?;
    announce(&server, &args, started)?;
    systemd::notify(State::Ready);
    let volatile = server.assembly.as_ref().and_then(Assembly::volatile);
    let served = server.serve(args.tls_san, stop()).await;
    sending.stop().await;
    served?;
    if let Some(lost) = volatile {
        print_line(&format!("stopped: {lost}"))?;
    }
    Ok(())
}

/// Resolves when the process shall stop, which may take a while from then on.
async fn stop() {
    signals::stop().await;
    systemd::notify(State::Stopping);
}

/// Where a server listens.
pub enum Listen {
    At(SocketAddr),
    /// A socket that somebody else has bound.
    On(std::net::TcpListener),
}

impl Listen {
    async fn bind(self) -> Result<TcpListener> {
        match self {
            Self::On(listener) => Ok(TcpListener::from_std(listener)?),
            Self::At(address) => TcpListener::bind(address).await.with_context(|| {
                format!(
                    "cannot listen on {address}: use another address with --listen, or port 0 for any free port"
                )
            }),
        }
    }
}

/// A server on a data directory, with or without controllers.
pub struct Server {
    api: ApiServer,
    listener: TcpListener,
    address: SocketAddr,
    kubeconfig: PathBuf,
    assembly: Option<Assembly>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Opens the store, binds the address and writes the administrator's kubeconfig. Controllers are not started and no
    /// request is answered yet.
    pub async fn open(
        dir: &Path,
        in_memory: bool,
        listen: Listen,
        assembly: Option<Assembly>,
        args: &ApiArgs,
    ) -> Result<Self> {
        let encryption = if in_memory { None } else { args.encryption.for_server(dir)? };
        if !in_memory {
            crate::store::expect(dir, encryption.as_ref())?;
        }
        let pki = Pki::load_or_create(&dir.join("pki"), Env::system())
            .with_context(|| format!("cannot read or create the keys in {}", dir.display()))?;
        let pki = Arc::new(pki);
        let listener = listen.bind().await?;
        let address = listener.local_addr()?;
        let config = if in_memory { Config::in_memory() } else { Config::on_disk(dir) };
        let config = config.with_cipher(cipher(encryption.as_ref()));
        let config = config.with_services(args.service_cluster_ip_range).with_pod_admission();
        let mut config =
            config.with_connections(args.limits.connections()).with_in_flight(args.limits.requests());
        if let Some(oidc) = args.oidc()? {
            config = config.with_oidc(oidc);
        }
        let audit = args.audit.open()?;
        if let Some(audit) = &audit {
            config = config.with_audit(audit.clone());
        }
        if let Some(assembly) = &assembly {
            let kinds = ClusterApi::new(assembly.rules()).converting(assembly.versions());
            config = config.with_kinds(Arc::new(kinds));
        }
        let api = ApiServer::start(config, pki.clone()).await?;
        if let Some(audit) = audit {
            api.show_metrics(move || audit::metrics(&audit));
        }
        if let Some(encryption) = encryption {
            encryption::keep_current(api.store().clone(), encryption);
        }
        let kubeconfig = dir.join(ADMIN);
        let text = pki.admin_kubeconfig("capstan", &format!("https://{address}"))?;
        let text = format!("{text:#}\n");
        // Not written again if it is there: a server also starts on a full disk.
        let written = match std::fs::read_to_string(&kubeconfig) {
            Ok(present) if present == text => Ok(()),
            _ => write_private(&kubeconfig, text.as_bytes()),
        };
        written.with_context(|| format!("cannot write {}", kubeconfig.display()))?;
        Ok(Self { api, listener, address, kubeconfig, assembly, runtime: None })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An in-process client with all rights.
    pub fn client(&self, name: &str) -> Client {
        Client::in_process(self.api.clone(), name)
    }

    /// Installs definitions and starts the controllers.
    pub async fn start_controllers(&mut self, env: Env) -> Result<()> {
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

    /// Serves until `stop` resolves. `more` are additional names in the serving certificate.
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

/// Writes a file with mode 0600.
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

/// The folder of example manifests: beside the program, as in the archive, in the documentation of its package, or in the
/// repository that it was built in.
fn examples(program: &Path) -> Option<PathBuf> {
    let beside = program.parent()?.join("examples");
    let packaged = program.parent()?.parent()?.join("share/doc/capstan/examples");
    let built = program.ancestors().nth(3).map(|root| root.join("examples"));
    let candidates = [Some(beside), Some(packaged), built];
    candidates.into_iter().flatten().find(|folder| folder.join("cni.yaml").is_file())
}

fn announce(server: &Server, args: &Args, started: Instant) -> Result<()> {
    let (address, assembly) = (server.address, server.assembly.as_ref());
    let kind = if args.in_memory { "in memory, not durable" } else { "durable" };
    let ready = started.elapsed();
    print_line(&format!(
        "capstan serves the Kubernetes API on https://{address} ({kind}; ready in {ready:.0?})"
    ))?;
    if let Some(assembly) = assembly {
        let groups: Vec<&str> = assembly.groups().iter().map(|group| group.name()).collect();
        print_line(&format!("controllers: {}", groups.join(", ")))?;
        if let Some(lost) = assembly.volatile() {
            print_line(&format!("note: {lost}"))?;
        }
    }
    let next = match assembly {
        Some(assembly) => assembly.hint().unwrap_or("kubectl get clusters --all-namespaces"),
        None => "kubectl get namespaces\n      kubectl apply -f my-crd.yaml",
    };
    let next = match std::env::current_exe().ok().and_then(|program| examples(&program)) {
        Some(folder) => next.replace("examples/", &format!("{}/", folder.display())),
        None => next.to_owned(),
    };
    // Hints work from any directory.
    let path = std::path::absolute(&server.kubeconfig)?;
    let path = path.display();
    print_line(&format!("kubeconfig: {path}\n\ntry:  export KUBECONFIG={path}\n      {next}\nstop: Ctrl-C"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_found_where_each_kind_of_installation_has_them() {
        let dir = tempfile::tempdir().expect("a folder");
        for (program, folder) in [
            ("archive/capstan", "archive/examples"),
            ("usr/bin/capstan", "usr/share/doc/capstan/examples"),
            ("clone/target/release/capstan", "clone/examples"),
        ] {
            let (program, folder) = (dir.path().join(program), dir.path().join(folder));
            assert_eq!(examples(&program), None);
            std::fs::create_dir_all(&folder).expect("made");
            std::fs::write(folder.join("cni.yaml"), "").expect("written");
            assert_eq!(examples(&program), Some(folder));
        }
    }
}
