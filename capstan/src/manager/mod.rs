//! `capstan manager`: the same controllers on any Kubernetes.
//!
//! ```text
//! kubeconfig or service account ──▶ Client
//!   certificates (a Secret) ──▶ webhooks: /default /validate /convert ◀── kube-apiserver
//!                                                                     (every replica serves)
//!   Lease ──▶ leader: definitions, their conversion, webhook configurations ──▶ Runtime with the controllers
//!                                                                     (one replica writes and works)
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
use clap::ArgMatches;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::assembly::{Assembly, ControllerArgs};
use crate::output::say;
use crate::plugins::Plugins;
use crate::signals;
use health::Health;
use registration::Reach;
use webhooks::Serving;

/// How often certificates and registration are looked after.
const LOOK_AFTER: Duration = Duration::from_secs(600);
/// How long an API server that does not answer is waited for at the start.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `capstan manager`.
#[derive(clap::Args)]
pub struct Args {
    /// Kubeconfig of the cluster to run against; $KUBECONFIG if not given, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Install or update the definitions of the kinds that the chosen controllers look after
    #[arg(long)]
    install_crds: bool,
    /// Wait for a Lease before the controllers run, so that of several managers one works
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// Names the Lease, the webhook configurations and what else belongs to this manager; from its controllers if not
    /// given, so that managers of different controllers do not meet
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Namespace of the Lease and of the webhooks' Secret and Service
    #[arg(long, value_name = "NAMESPACE", default_value = "capstan-system")]
    system_namespace: String,
    /// Address of /healthz, /readyz and /metrics; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    health_address: SocketAddr,
    /// Port of the webhooks that default, validate and convert; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    webhook_port: u16,
    /// How the API server reaches the webhooks; in a cluster by the Service NAME-webhooks, else by loopback
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    #[command(flatten)]
    assembly: ControllerArgs,
}

/// Runs until SIGTERM, Ctrl-C or the loss of leadership. The providers' flags are in `matches`.
pub fn run(args: Args, plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    crate::logging::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(manage(args, plugins, matches))
}

async fn manage(args: Args, plugins: &Plugins, matches: &ArgMatches) -> Result<()> {
    let env = Env::system();
    let (access, in_cluster) = access(args.kubeconfig.as_deref())?;
    let server = format!("https://{}", access.authority());
    let client = Client::new(Arc::new(Remote::new(access, Arc::new(TcpDial), &env)?), "capstan");
    greet(&client, &server).await?;

    let assembly = Assembly::new(&args.assembly, plugins, matches, &env).await?;
    let name = args.name.clone().unwrap_or_else(|| name(&assembly));
    let mut runtime = assembly.runtime(client.clone(), env.clone());
    let health = Health::new(runtime.metrics().clone(), assembly.metrics());
    let mut tasks = JoinSet::new();
    let listener = listen(args.health_address, "--health-address").await?;
    let health_address = listener.local_addr()?;
    tasks.spawn(health.clone().serve(listener));

    capstan_capi_plane::ensure_namespace(&client, &args.system_namespace)
        .await
        .with_context(|| format!("the namespace {} could not be made", args.system_namespace))?;
    let webhooks = match args.webhook_port {
        0 => None,
        _ => {
            let reach = Reach::new(&args, &name, in_cluster)?;
            Some(Webhooks::start(&name, &args, reach, &assembly, &client, &env, &mut tasks).await?)
        }
    };
    let place = Place {
        name: &name,
        client: &client,
        env: &env,
        assembly: &assembly,
        webhooks: webhooks.as_ref(),
        install: args.install_crds,
    };
    let groups: Vec<&str> = assembly.groups().iter().map(|group| group.name()).collect();
    let words = format!(
        "capstan manages clusters from {server} ({})\nhealth and metrics: http://{health_address}\nstop: Ctrl-C",
        groups.join(", ")
    );
    let ready = || {
        health.ready();
        say(&words)
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
        outcome = work(candidate.as_mut(), &mut runtime, &health, &place, ready) => outcome,
    };
    // Nothing is written any more when the next one may lead.
    runtime.stop().await;
    if let Some(candidate) = &mut candidate
        && let Err(error) = candidate.resign().await
    {
        tracing::warn!(%error, "the Lease could not be let go; it runs out by itself");
    }
    tracing::info!("stopped");
    outcome
}

/// Where to work, and whether that is the cluster this process is a Pod of.
fn access(kubeconfig: Option<&Path>) -> Result<(Access, bool)> {
    let from_environment = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(path) = kubeconfig.map(Path::to_owned).or(from_environment) {
        let access = Access::from_file(&path)
            .with_context(|| format!("{} does not lead to a server", path.display()))?;
        return Ok((access, false));
    }
    match Access::in_cluster().context("the Pod's service account cannot be used")? {
        Some(access) => Ok((access, true)),
        None => bail!("no cluster to work in: give --kubeconfig, set KUBECONFIG, or run in a Pod"),
    }
}

/// Fails early, and says why, if the server does not answer or does not let us in.
async fn greet(client: &Client, server: &str) -> Result<()> {
    let version = tokio::time::timeout(PATIENCE, client.document("/version")).await;
    let version = version.with_context(|| format!("{server} does not answer within {PATIENCE:?}"))?;
    let version = version.with_context(|| format!("{server} cannot be used"))?;
    let version: Value = serde_json::from_slice(&version).unwrap_or_default();
    tracing::info!(server, version = version["gitVersion"].as_str(), "found an API server");
    Ok(())
}

async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address}: choose another address with {flag}"))
}

/// What a manager is called that was given no name: by its controllers, unless it runs all.
fn name(assembly: &Assembly) -> String {
    let groups = assembly.groups();
    if groups.len() == Group::ALL.len() {
        return "capstan".to_owned();
    }
    groups.iter().fold("capstan".to_owned(), |name, group| format!("{name}-{}", group.name()))
}

/// The Lease of managers that look after the same objects: those of other namespaces or filters work beside them.
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

/// Names this process among those that stand for the Lease.
fn identity(env: &Env) -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "capstan".to_owned());
    format!("{host}_{}", env.uuid())
}

/// Runs the controllers, once this process leads if it has to. Returns only if it cannot or no longer does.
///
/// Only who leads writes definitions and webhook configurations: replicas of two releases, or on two addresses, would
/// otherwise overwrite each other's, and API servers would call one that is long gone.
async fn work(
    candidate: Option<&mut Candidate>,
    runtime: &mut Runtime,
    health: &Health,
    place: &Place<'_>,
    ready: impl Fn() -> Result<()>,
) -> Result<()> {
    let Some(candidate) = candidate else { return lead(runtime, health, place, ready).await };
    let stands_by = !candidate.leads_at_once().await;
    if stands_by {
        tracing::info!("this manager stands by");
        ready()?;
        tokio::select! {
            () = candidate.lead() => {}
            never = place.stand_by() => never,
        }
    }
    tracing::info!("this manager leads");
    let ready = || if stands_by { Ok(()) } else { ready() };
    tokio::select! {
        () = candidate.keep() => bail!(
            "leadership was lost: another manager leads, or the Lease could not be renewed in time; start again"
        ),
        outcome = lead(runtime, health, place, ready) => outcome,
    }
}

/// Has the server as the controllers need it, and runs them. Returns only if that cannot be.
async fn lead(
    runtime: &mut Runtime,
    health: &Health,
    place: &Place<'_>,
    ready: impl FnOnce() -> Result<()>,
) -> Result<()> {
    place.prepare().await?;
    runtime.start();
    health.leads();
    ready()?;
    place.look_after().await
}

/// The webhooks that this process serves.
struct Webhooks {
    serving: Arc<Serving>,
    secret: Key,
    reach: Reach,
    /// Definitions are followed for as long as conversions need them.
    _definitions: Caches,
}

impl Webhooks {
    async fn start(
        name: &str,
        args: &Args,
        reach: Reach,
        assembly: &Assembly,
        client: &Client,
        env: &Env,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        let listener = listen((reach.bind(), args.webhook_port).into(), "--webhook-port").await?;
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
        let webhooks = Self { serving: Arc::default(), secret, reach, _definitions: definitions };
        webhooks.renew(client, env).await?;
        let serving = webhooks.serving.clone();
        tasks.spawn(async move {
            if let Err(error) = webhooks::serve(listener, serving, reviewer).await {
                tracing::error!(%error, "webhooks cannot be served");
            }
        });
        Ok(webhooks)
    }

    /// Serves with the certificate of the moment; answers the authorities that vouch for it.
    async fn renew(&self, client: &Client, env: &Env) -> Result<String> {
        let current = certificates::current(client, &self.secret, &self.reach.names(), env).await;
        let current =
            current.with_context(|| format!("the Secret {} with the webhooks' certificates", self.secret))?;
        self.serving.renew(&current.serving)?;
        Ok(current.authorities)
    }
}

/// What is to be so on the server.
struct Place<'a> {
    name: &'a str,
    client: &'a Client,
    env: &'a Env,
    assembly: &'a Assembly,
    webhooks: Option<&'a Webhooks>,
    /// Definitions are installed, not waited for.
    install: bool,
}

impl Place<'_> {
    /// Definitions are there, and the webhooks and clusterctl's inventory know of this manager. Writes only what is not so yet.
    async fn prepare(&self) -> Result<()> {
        let mut definitions = self.assembly.definitions();
        let authorities = match self.webhooks {
            Some(webhooks) => webhooks.renew(self.client, self.env).await?,
            None => String::new(),
        };
        if let Some(webhooks) = self.webhooks {
            registration::converted(&mut definitions, &webhooks.reach, &authorities);
        }
        if self.install {
            capstan_capi_plane::install(self.client, &definitions).await?;
        } else {
            let missing = "definitions are missing: install Cluster API, or let --install-crds do it";
            capstan_capi_plane::establish(self.client, &definitions).await.context(missing)?;
            capstan_capi_plane::set_conversion(self.client, &definitions).await?;
        }
        if let Some(webhooks) = self.webhooks {
            let rules = self.assembly.rules();
            registration::judge(self.client, self.name, &rules, &webhooks.reach, &authorities).await?;
        }
        if self.install {
            self.assembly.register(self.client).await?;
        }
        Ok(())
    }

    /// Renews certificates before they end and puts back what others took away.
    async fn look_after(&self) -> ! {
        loop {
            tokio::time::sleep(LOOK_AFTER).await;
            if let Err(error) = self.prepare().await {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "definitions or webhooks could not be looked after"
                );
            }
        }
    }

    /// Serves webhooks with the certificates of the moment, which who leads may have renewed.
    async fn stand_by(&self) -> ! {
        loop {
            tokio::time::sleep(LOOK_AFTER).await;
            if let Some(webhooks) = self.webhooks
                && let Err(error) = webhooks.renew(self.client, self.env).await
            {
                tracing::warn!(error = format!("{error:#}"), "certificates could not be looked after");
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
    fn managers_of_different_objects_do_not_wait_for_each_other() {
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
