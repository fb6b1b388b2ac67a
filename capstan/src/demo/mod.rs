//! `capstan demo`: a management cluster, a simulated cloud and a cluster on it.
//!
//! ```text
//! data directory ─┬─ store, keys, admin.kubeconfig        the management plane, as in `capstan server`
//!                 ├─ demo.json, cloud.json                state for the next run
//!                 └─ demo.kubeconfig, demo.log            for the user
//! ```
//!
//! The cloud and its machines are another process, which keeps running when this one is stopped or killed. The management
//! plane reaches it and its clusters over loopback. A second run continues.

mod choice;
mod cloud;
mod state;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_core::secret::Secret;
use capstan_env::Env;
use capstan_object::Key;
use serde_json::{Value, json};

use crate::apply::{Applier, read};
use crate::assembly::{Assembly, ControllerArgs};
use crate::connection::Management;
use crate::exit::Exit;
use crate::follow::{Ending, Limits, Screen, follow, watch};
use crate::output::print_line;
use crate::plugins::Plugins;
use crate::server::{ApiArgs, Listen, Server};
use crate::signals;
pub use choice::ABOUT;
use choice::{CLOUD_HELP, Choice, PROVIDERS, SAMPLE_PORT};
use cloud::Cloud;
pub use cloud::{CloudArgs, run as run_cloud};
use state::State;

/// The CNI of the sample cluster.
const NETWORK: &str = include_str!("../../../examples/cni.yaml");
const NAME: &str = "demo";
const NAMESPACE: &str = "default";

/// Kubernetes versions with images in the cloud: the cluster's, and the one to upgrade to.
const VERSIONS: [&str; 2] = ["v1.35.0", "v1.36.0"];

/// Arguments of `capstan demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Data directory; created if it does not exist, continued if it does
    #[arg(long, value_name = "DIR", default_value = "capstan-demo")]
    data_dir: PathBuf,
    #[arg(long, value_parser = PROVIDERS, help = CLOUD_HELP)]
    cloud: Option<String>,
    /// Address of the management cluster; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Port of the API servers of simulated clusters, whose addresses are 127.x.y.z; defaults to 16443, or the port that the
    /// data directory was created with
    #[arg(long, value_name = "PORT")]
    endpoint_port: Option<u16>,
    /// Print a line for every transition instead of a tree
    #[arg(long)]
    headless: bool,
    /// How many times faster than small virtual machines the simulated ones boot and join
    #[arg(long, value_name = "FACTOR", default_value_t = 3.0, value_parser = speed)]
    speed: f64,
    /// Exit when the cluster is ready instead of serving until Ctrl-C
    #[arg(long)]
    once: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor =
        text.parse().ok().filter(|factor: &f64| factor.is_finite() && (0.1..=1000.0).contains(factor));
    factor.ok_or_else(|| format!("{text:?} is not a number from 0.1 to 1000"))
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let state = State::open(&args.data_dir, args.cloud.as_deref(), args.endpoint_port)?;
    crate::logging::start_in(&args.data_dir.join("demo.log"))?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run_demo(args, plugins, state))
}

async fn run_demo(args: &Args, plugins: &Plugins, mut state: State) -> Result<Exit> {
    let choice = state.choice()?;
    let env = Env::system();
    let (controllers, flags) = ControllerArgs::defaults(plugins)?;
    let assembly = Assembly::new(&controllers, plugins, &flags, &env).await?;
    // The lock of the store also protects the cloud from a second demo.
    let mut server = Server::open(
        &args.data_dir,
        false,
        Listen::At(args.listen),
        Some(assembly),
        &ApiArgs::with_key_inside(&args.data_dir),
    )
    .await?;
    let cloud =
        Cloud::open(&args.data_dir, choice, state.endpoint_port, args.speed, &VERSIONS, !state.applied)
            .await?;
    let client = server.client("capstan-demo");
    server.start_controllers(env).await?;
    let management =
        Management::new(client, NAMESPACE.to_owned(), server.address().to_string(), plugins.clone());
    print_line(&format!(
        "management cluster: https://{}\nsimulated {}: {}  (log: {})\n",
        server.address(),
        choice.name,
        cloud.url(),
        args.data_dir.join("demo.log").display()
    ))?;
    let (stopped, stop) = tokio::sync::watch::channel(false);
    let serving = tokio::spawn(server.serve(Vec::new(), until(stop.clone())));
    let shown = show(args, choice, &mut state, &management, &cloud).await;
    let _ = stopped.send(true);
    serving.await.context("the server stopped unexpectedly")??;
    shown
}

async fn until(mut stop: tokio::sync::watch::Receiver<bool>) {
    // A dropped sender also means stop.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

/// Applies the cluster, unless an earlier run did, and shows it.
async fn show(
    args: &Args,
    choice: &Choice,
    state: &mut State,
    management: &Management,
    cloud: &Cloud,
) -> Result<Exit> {
    let mut applier = Applier::new(&management.client, &management.namespace);
    applier.apply(&credentials(choice, cloud)).await?;
    let new = !state.applied;
    if new {
        let mut objects = [read(NETWORK)?, read(choice.cluster)?].concat();
        // Referenced objects first, so that the tree does not start with missing references.
        objects.sort_by_key(|object| match object["kind"].as_str() {
            Some("Cluster") => 2,
            Some("KubeadmControlPlane" | "MachineDeployment") => 1,
            _ => 0,
        });
        for mut object in objects {
            replace_port(&mut object, state.endpoint_port);
            applier.apply(&object).await?;
        }
        state.applied = true;
        state.write(&args.data_dir)?;
    }
    let mut screen = Screen::new(args.headless);
    let planned = Duration::try_from_secs_f64(f64::from(choice.unhurried_seconds) / args.speed).ok();
    let limits = Limits { planned, ready_polls: 2, ..Limits::default() };
    match follow(management, NAME, &mut screen, limits, signals::stop()).await? {
        Ending::Interrupted => {
            print_line(&stopped(args, cloud))?;
            return Ok(Exit::Done);
        }
        Ending::Gone => print_line(&format!(
            "cluster {NAME} was deleted; remove {} to start over",
            args.data_dir.display()
        ))?,
        ending => {
            let kubeconfig = write_kubeconfig(args, management).await?;
            let took = match ending {
                // An earlier run has created the cluster.
                Ending::Ready(took) if new => format!(" in {} s", took.as_secs()),
                _ => String::new(),
            };
            print_line(&next(args, choice, &kubeconfig, &took))?;
        }
    }
    if !args.once {
        let mut screen = Screen::lines();
        watch(management, NAME, &mut screen, signals::stop()).await?;
        print_line(&stopped(args, cloud))?;
    }
    Ok(Exit::Done)
}

/// Puts the port of API servers where the sample has its own.
fn replace_port(value: &mut Value, port: u16) {
    match value {
        Value::Number(number) if number.as_u64() == Some(SAMPLE_PORT.into()) => *value = port.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_port(item, port)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_port(field, port)),
        _ => {}
    }
}

/// The Secret with the credentials of the cloud.
fn credentials(choice: &Choice, cloud: &Cloud) -> Value {
    let data = cloud.credentials.iter().map(|(field, value)| (field.clone(), STANDARD.encode(value).into()));
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": choice.credentials},
        "data": Value::Object(data.collect()),
    })
}

/// Writes the kubeconfig of the workload cluster to the data directory.
async fn write_kubeconfig(args: &Args, management: &Management) -> Result<PathBuf> {
    let key = Key::new(NAMESPACE, format!("{NAME}-kubeconfig"));
    let secret = management.client.get::<Secret>(&key).await?;
    let text = secret.context("the cluster has no kubeconfig")?.text("value")?;
    let path = args.data_dir.join(format!("{NAME}.kubeconfig"));
    crate::server::write_private(&path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn stopped(args: &Args, cloud: &Cloud) -> String {
    let dir = absolute(&args.data_dir);
    let dir = dir.display();
    format!(
        "\nstopped; the simulated cloud and its machines keep running (process {}).\n\
         `{}` continues; remove {dir} to stop them",
        cloud.process,
        continue_command(args)
    )
}

/// Hints work from any directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn continue_command(args: &Args) -> String {
    format!("capstan demo --data-dir {}", absolute(&args.data_dir).display())
}

fn next(args: &Args, choice: &Choice, kubeconfig: &Path, took: &str) -> String {
    let machines = choice.machines;
    let dir = absolute(&args.data_dir);
    let dir = dir.display();
    let to = VERSIONS[1];
    format!(
        "\ncluster {NAME} is ready{took}. In another terminal:\n\n  \
           kubectl --kubeconfig {} get nodes            # the new cluster\n  \
           export KUBECONFIG={dir}/admin.kubeconfig     # the management cluster\n  \
           kubectl get cluster,machine,{machines}\n  \
           capstan describe {NAME} --all\n  \
           capstan scale {NAME} --workers workers=5\n  \
           capstan upgrade {NAME} --to {to} --control-plane-template {NAME}-control-plane-{to} --worker-template {NAME}-workers-{to}\n  \
           capstan delete {NAME} --wait\n\n\
         stop: Ctrl-C; `{}` continues\n",
        absolute(kubeconfig).display(),
        continue_command(args)
    )
}

#[cfg(test)]
mod tests {
    use super::choice::CHOICES;
    use super::*;

    #[test]
    fn a_speed_is_a_sensible_factor() {
        assert_eq!(speed("2.5"), Ok(2.5));
        for wrong in ["0", "-1", "nan", "inf", "fast", "1e9"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_hints_use_names_of_the_sample_cluster() {
        for choice in &CHOICES {
            let objects = read(choice.cluster).expect("objects");
            let titles: Vec<String> = objects.iter().map(crate::apply::title).collect();
            let kind = choice.template_kind;
            for expected in [
                "Cluster/demo".to_owned(),
                format!("{kind}/demo-control-plane-{}", VERSIONS[1]),
                format!("{kind}/demo-workers-{}", VERSIONS[1]),
            ] {
                assert!(titles.contains(&expected), "{expected}");
            }
            assert!(choice.cluster.contains(choice.credentials) && choice.cluster.contains(VERSIONS[0]));
        }
    }

    #[test]
    fn the_samples_take_the_port_of_the_data_directory() {
        for choice in &CHOICES {
            let mut objects = Value::Array(read(choice.cluster).expect("objects"));
            assert!(objects.to_string().contains(&SAMPLE_PORT.to_string()), "{}", choice.name);
            replace_port(&mut objects, 7001);
            let text = objects.to_string();
            assert!(!text.contains(&SAMPLE_PORT.to_string()) && text.contains("7001"), "{}", choice.name);
        }
    }
}
