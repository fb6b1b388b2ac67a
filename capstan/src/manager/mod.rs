//! `capstan manager`: the same controllers on any Kubernetes.
//!
//! ```text
//! kubeconfig or service account ──▶ Client
//!   certificates (a Secret) ──▶ webhooks: /default /validate /convert ◀── kube-apiserver
//!                                                                     (every replica serves)
//!   Lease ──▶ leader: definitions, their conversion, webhook configurations ──▶ Runtime with the controllers
//!                                                                     (one replica writes and reconciles)
//! ```

mod certificates;
mod health;

mod registration;
mod web;
mod webhooks;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capstan_capi_core::contract::Definition;
use capstan_capi_plane::{Group, Reviewer, Versions};
use capstan_capi_types::conversion::Converter;
use capstan_controller::{Access, Caches, Candidate, Client, Election, Env, Remote, Runtime, TcpDial};
use capstan_object::Key;
use capstan_traces::Counts;
use clap::ArgMatches;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::assembly::{Assembly, ControllerArgs};
use crate::output::print_line;
use crate::plugins::Plugins;
use crate::signals;
use crate::traces::{Sending, TraceArgs};
use health::Health;
use registration::WebhookAddress;
use webhooks::Serving;

/// How often certificates and webhook configurations are checked.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(600);
/// For the first answer of the API server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `capstan manager`.
#[derive(clap::Args)]
pub struct Args {
    /// Kubeconfig of the cluster to run against; defaults to $KUBECONFIG, then the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Install or update the CustomResourceDefinitions of the chosen controllers
    #[arg(long)]
    install_crds: bool,
    /// Use leader election, so that one of several managers reconciles
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// Name of the Lease, the webhook configurations and other objects of this manager; derived from its controllers if not
    /// given
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Namespace of the Lease and of the webhooks' Secret and Service
    #[arg(long, value_name = "NAMESPACE", default_value = "capstan-system")]
    system_namespace: String,
    /// Address of /healthz, /readyz and /metrics; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    health_address: SocketAddr,
    /// Port of the defaulting, validating and converting webhooks; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    webhook_port: u16,
    /// URL at which the API server reaches the webhooks; defaults to the Service NAME-webhooks in a cluster, else to loopback
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    #[command(flatten)]
    assembly: ControllerArgs,
    #[command(flatten)]
    traces: TraceArgs,
}

/// Runs until SIGTERM, Ctrl-C or the loss of leadership. The providers' flags are in `matches`.
pub fn run(args: Args, plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    let exporter = args.traces.start_logging()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (sending, counts) = Sending::start(exporter);
        let outcome = manage(args, plugins, matches, counts).await;
        sending.stop().await;
        outcome
    })
}

async fn manage(
    args: Args,
    plugins: &Plugins,
    matches: &ArgMatches,
    traces: Option<Arc<Counts>>,
) -> Result<()> {
    let env = Env::system();
    let (access, in_cluster) = access(args.kubeconfig.as_deref())?;
    let server = format!("https://{}", access.authority());
    let client = Client::new(Arc::new(Remote::new(access, Arc::new(TcpDial), &env)?), "capstan");
    check_server(&client, &server).await?;

    let assembly = Assembly::new(&args.assembly, plugins, matches, &env).await?;
    let name = args.name.clone().unwrap_or_else(|| default_name(&assembly));
    let mut runtime = assembly.runtime(client.clone(), env.clone());
    let providers = assembly.metrics();
    let more = move || providers() + &traces.as_ref().map(|counts| counts.render()).unwrap_or_default();
    let health = Health::new(runtime.metrics().clone(), more);
    let mut tasks = JoinSet::new();
    let listener = listen(args.health_address, "--health-address").await?;
    let health_address = listener.local_addr()?;
    tasks.spawn(health.clone().serve(listener));

    capstan_capi_plane::ensure_namespace(&client, &args.system_namespace)
        .await
        .with_context(|| format!("cannot create the namespace {}", args.system_namespace))?;
    let webhooks = match args.webhook_port {
        0 => None,
        _ => {
            let address = WebhookAddress::new(&args, &name, in_cluster)?;
            Some(Webhooks::start(&name, &args, address, &assembly, &client, &env, &mut tasks).await?)
        }
    };
    let setup = Setup {
        name: &name,
        client: &client,
        env: &env,
        assembly: &assembly,
        webhooks: webhooks.as_ref(),
        install: args.install_crds,
    };
    let groups: Vec<&str> = assembly.groups().iter().map(|group| group.name()).collect();
    let banner = format!(
        "capstan manages clusters on {server} ({})\nhealth and metrics: http://{health_address}\nstop: Ctrl-C",
        groups.join(", ")
    );
    let ready = || {
        health.ready();
        print_line(&banner)
    };

    let lease = match &args.name {
        Some(name) => name.clone(),
        None => lease_name(&name, &args.assembly),
    };
    let lease = Key::new(args.system_namespace.as_str(), lease);
    let stand = || Candidate::new(client.clone(), env.clone(), Election::new(lease, identity(&env)));
    let mut candidate = args.leader_elect.then(stand);
    let outcome = tokio::select! {
        () = signals::stop() => Ok(()),
        outcome = lead_and_run(candidate.as_mut(), &mut runtime, &health, &setup, ready) => outcome,
    };
    // Stop writing before another manager may lead.
    runtime.stop().await;
    if let Some(candidate) = &mut candidate
        && let Err(error) = candidate.resign().await
    {
        tracing::warn!(%error, "cannot release the Lease; it expires after its duration");
    }
    tracing::info!("stopped");
    outcome
}

/// Credentials, and whether this process is a Pod of that cluster.
fn access(kubeconfig: Option<&Path>) -> Result<(Access, bool)> {
    let from_environment = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(path) = kubeconfig.map(Path::to_owned).or(from_environment) {
        let access = Access::from_file(&path)
            .with_context(|| format!("{} is not a usable kubeconfig", path.display()))?;
        return Ok((access, false));
    }
    match Access::in_cluster().context("cannot use the Pod's service account")? {
        Some(access) => Ok((access, true)),
        None => bail!("no cluster: use --kubeconfig, set KUBECONFIG, or run in a Pod"),
    }
}

/// Fails early if the server does not answer or refuses the credentials.
async fn check_server(client: &Client, server: &str) -> Result<()> {
    let version = tokio::time::timeout(TIMEOUT, client.document("/version")).await;
    let version = version.with_context(|| format!("{server} did not answer within {TIMEOUT:?}"))?;
    let version = version.with_context(|| format!("cannot use {server}"))?;
    let version: Value = serde_json::from_slice(&version).unwrap_or_default();
    tracing::info!(server, version = version["gitVersion"].as_str(), "connected to the API server");
    Ok(())
}

async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address}: use another address with {flag}"))
}

/// Default name: from its controllers, unless it runs all.
fn default_name(assembly: &Assembly) -> String {
    let groups = assembly.groups();
    if groups.len() == Group::ALL.len() {
        return "capstan".to_owned();
    }
    groups.iter().fold("capstan".to_owned(), |name, group| format!("{name}-{}", group.name()))
}

/// Managers of the same objects share a Lease; those of other namespaces or filters have their own.
fn lease_name(name: &str, args: &ControllerArgs) -> String {
    let parts = [Some(name), Some(args.namespace.as_str()), args.watch_filter.as_deref()];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .map(|part| part.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"))
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("-")
}

/// Identity of this process in the Lease.
fn identity(env: &Env) -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "capstan".to_owned());
    format!("{host}_{}", env.uuid())
}

/// Runs the controllers, after winning the leader election if there is one. Returns only on failure or when leadership is
/// lost.
///
/// Only the leader writes definitions and webhook configurations: replicas of two releases, or with two addresses, would
/// otherwise overwrite each other's, and API servers would call replicas that no longer exist.
async fn lead_and_run(
    candidate: Option<&mut Candidate>,
    runtime: &mut Runtime,
    health: &Health,
    setup: &Setup<'_>,
    ready: impl Fn() -> Result<()>,
) -> Result<()> {
    let Some(candidate) = candidate else { return lead(runtime, health, setup, ready).await };
    let standby = !candidate.leads_at_once().await;
    if standby {
        tracing::info!("waiting for leadership");
        ready()?;
        tokio::select! {
            () = candidate.lead() => {}
            never = setup.maintain_certificates() => never,
        }
    }
    tracing::info!("became leader");
    let ready = || if standby { Ok(()) } else { ready() };
    tokio::select! {
        () = candidate.keep() => bail!(
            "leadership lost: another manager leads, or the Lease was not renewed in time; restart this manager"
        ),
        outcome = lead(runtime, health, setup, ready) => outcome,
    }
}

/// Prepares the server and runs the controllers. Returns only on failure.
async fn lead(
    runtime: &mut Runtime,
    health: &Health,
    setup: &Setup<'_>,
    ready: impl FnOnce() -> Result<()>,
) -> Result<()> {
    setup.prepare().await?;
    runtime.start();
    health.leads();
    ready()?;
    setup.maintain().await
}

/// The webhooks that this process serves.
struct Webhooks {
    serving: Arc<Serving>,
    secret: Key,
    address: WebhookAddress,
    /// Keeps watching the definitions, which conversions need.
    _definitions: Caches,
}

impl Webhooks {
    async fn start(
        name: &str,
        args: &Args,
        address: WebhookAddress,
        assembly: &Assembly,
        client: &Client,
        env: &Env,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        let listener = listen((address.bind(), args.webhook_port).into(), "--webhook-port").await?;
        let versions = Arc::new(Versions::default());
        let definitions = Caches::new("");
        let learned = versions.clone();
        definitions.ensure::<Definition>();
        definitions.listen::<Definition>(move |change| match &change.new {
            Some(definition) => learned.learn(&change.key.name, &definition.metadata.labels),
            None => learned.learn(&change.key.name, &Default::default()),
        });
        definitions.start(client);
        definitions.synced().await;
        let converter = Converter::new(Arc::new(move |group, kind| versions.of(group, kind)));
        let reviewer = Reviewer::new(assembly.rules(), converter, client.clone());
        let reviewer = Arc::new(reviewer.converting(assembly.versions()));

        let secret = Key::new(args.system_namespace.as_str(), format!("{name}-webhooks"));
        let webhooks = Self { serving: Arc::default(), secret, address, _definitions: definitions };
        webhooks.renew(client, env).await?;
        let serving = webhooks.serving.clone();
        tasks.spawn(async move {
            if let Err(error) = webhooks::serve(listener, serving, reviewer).await {
                tracing::error!(%error, "cannot serve webhooks");
            }
        });
        Ok(webhooks)
    }

    /// Loads or renews the serving certificate; returns the CA bundle.
    async fn renew(&self, client: &Client, env: &Env) -> Result<String> {
        let current = certificates::current(client, &self.secret, &self.address.names(), env).await;
        let current =
            current.with_context(|| format!("the Secret {} with the webhooks' certificates", self.secret))?;
        self.serving.renew(&current.serving)?;
        Ok(current.authorities)
    }
}

/// What the manager keeps on the server: definitions, webhook configurations, inventory.
struct Setup<'a> {
    name: &'a str,
    client: &'a Client,
    env: &'a Env,
    assembly: &'a Assembly,
    webhooks: Option<&'a Webhooks>,
    /// Install definitions instead of waiting for them.
    install: bool,
}

impl Setup<'_> {
    /// Installs definitions, webhook configurations and the inventory entry. Writes only what differs.
    async fn prepare(&self) -> Result<()> {
        let mut definitions = self.assembly.definitions();
        let authorities = match self.webhooks {
            Some(webhooks) => webhooks.renew(self.client, self.env).await?,
            None => String::new(),
        };
        if let Some(webhooks) = self.webhooks {
            registration::set_conversion(&mut definitions, &webhooks.address, &authorities);
        }
        if self.install {
            capstan_capi_plane::install(self.client, &definitions).await?;
        } else {
            let missing = "definitions are missing: install Cluster API, use --install-crds, or switch off the \
                           providers that you do not use";
            capstan_capi_plane::establish(self.client, &definitions).await.context(missing)?;
            capstan_capi_plane::set_conversion(self.client, &definitions).await?;
        }
        if let Some(webhooks) = self.webhooks {
            let rules = self.assembly.rules();
            registration::register(self.client, self.name, &rules, &webhooks.address, &authorities).await?;
        }
        if self.install {
            self.assembly.register(self.client).await?;
        }
        Ok(())
    }

    /// Renews certificates and restores what others changed, for ever.
    async fn maintain(&self) -> ! {
        loop {
            tokio::time::sleep(MAINTENANCE_INTERVAL).await;
            if let Err(error) = self.prepare().await {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "cannot update definitions or webhook configurations"
                );
            }
        }
    }

    /// Reloads the serving certificate, which the leader may have renewed, for ever.
    async fn maintain_certificates(&self) -> ! {
        loop {
            tokio::time::sleep(MAINTENANCE_INTERVAL).await;
            if let Some(webhooks) = self.webhooks
                && let Err(error) = webhooks.renew(self.client, self.env).await
            {
                tracing::warn!(error = format!("{error:#}"), "cannot reload the certificates");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ControllerArgs,
    }

    #[test]
    fn managers_of_different_objects_have_different_leases() {
        for (line, expected) in [
            (&["capstan"][..], "capstan"),
            (&["capstan", "--namespace", "blue"], "capstan-blue"),
            (&["capstan", "--watch-filter", "Team_A"], "capstan-team-a"),
            (&["capstan", "--namespace", "blue", "--watch-filter", "a"], "capstan-blue-a"),
        ] {
            let args = Line::try_parse_from(line).expect("arguments").args;
            assert_eq!(lease_name("capstan", &args), expected);
        }
    }
}
