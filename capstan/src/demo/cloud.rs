//! The simulated cloud of the demo: a process of its own, which keeps running while the demo is stopped or killed, and
//! exits when the data directory is removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capstan_provider_kit::SimulatorOptions;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use super::choice::{Choice, PROVIDERS};
use crate::plugins::Plugins;

/// Address and credentials of the cloud, in the data directory.
const FILE: &str = "cloud.json";
/// A path that only simulators answer with JSON.
const PROBE: &str = "/sim/faults";
/// For the start of the cloud.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Arguments of the cloud's process.
#[derive(Debug, clap::Args)]
pub struct CloudArgs {
    /// Data directory of the demo; the cloud exits when it is removed
    #[arg(long)]
    data_dir: PathBuf,
    /// The cloud
    #[arg(long, value_parser = PROVIDERS)]
    cloud: String,
    /// Port of the API servers of clusters
    #[arg(long)]
    endpoint_port: u16,
    /// How many times faster machines are
    #[arg(long)]
    speed: f64,
    /// Kubernetes versions with images
    #[arg(long, value_delimiter = ',')]
    kubernetes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cloud {
    address: SocketAddr,
    /// Fields of the Secret for the provider.
    pub credentials: BTreeMap<String, String>,
    pub process: u32,
}

impl Cloud {
    /// Finds the cloud of a directory, or starts one if `new`: a cloud that exited has lost its machines.
    pub async fn open(
        dir: &Path,
        choice: &Choice,
        endpoint_port: u16,
        speed: f64,
        versions: &[&str],
        new: bool,
    ) -> Result<Self> {
        if let Some(found) = Self::find(dir)? {
            return Ok(found);
        }
        if !new {
            bail!(
                "the simulated cloud of {0} has exited and its machines are lost: remove {0} to start over",
                dir.display()
            );
        }
        drop(std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, endpoint_port)).with_context(|| {
            format!("cannot serve clusters on port {endpoint_port}: use another with --endpoint-port")
        })?);
        let log = File::options().create(true).append(true).open(dir.join("cloud.log"))?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut started = Command::new(program)
            .arg("demo-cloud")
            .arg("--data-dir")
            .arg(std::path::absolute(dir)?)
            .args(["--cloud", choice.provider])
            .args(["--endpoint-port", &endpoint_port.to_string(), "--speed", &speed.to_string()])
            .args(["--kubernetes", &versions.join(",")])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C stops the demo, not the cloud.
            .process_group(0)
            .spawn()
            .context("cannot start the simulated cloud")?;
        let waiting = async {
            loop {
                if let Some(found) = Self::find(dir)? {
                    return Ok(found);
                }
                if let Some(status) = started.try_wait()? {
                    bail!(
                        "the simulated cloud did not start ({status}); see {}",
                        dir.join("cloud.log").display()
                    );
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.context("the simulated cloud does not answer")?
    }

    /// The cloud of a directory, if it is running.
    fn find(dir: &Path) -> Result<Option<Self>> {
        let Ok(bytes) = std::fs::read(dir.join(FILE)) else { return Ok(None) };
        let cloud: Self = serde_json::from_slice(&bytes)
            .with_context(|| format!("{} was not written by `capstan demo`", dir.join(FILE).display()))?;
        // Another process may have the port by now.
        Ok(is_running(cloud.address).then_some(cloud))
    }

    pub fn url(&self) -> String {
        let url = self.credentials.get("api-url");
        url.cloned().unwrap_or_else(|| format!("http://{}", self.address))
    }
}

/// Whether a simulated cloud listens at an address.
fn is_running(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET {PROBE} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(4096).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200") && answer.contains("application/json"))
}

/// Serves the cloud until its directory is removed, or until SIGTERM.
pub fn run(args: &CloudArgs, plugins: &Plugins) -> Result<()> {
    crate::logging::start(None)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(args, plugins))
}

async fn serve(args: &CloudArgs, plugins: &Plugins) -> Result<()> {
    let simulator = plugins.simulator(&args.cloud).context("this program has no simulator of this cloud")?;
    let opened = simulator.open(SimulatorOptions {
        api: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        endpoints: TcpListener::bind((Ipv4Addr::UNSPECIFIED, args.endpoint_port)).await?,
        kubernetes: args.kubernetes.clone(),
        speed: args.speed,
        prompt_deletion: true,
    })?;
    let cloud =
        Cloud { address: opened.address, credentials: opened.credentials, process: std::process::id() };
    let file = args.data_dir.join(FILE);
    let fresh = args.data_dir.join("cloud.json.new");
    crate::server::write_private(&fresh, &serde_json::to_vec(&cloud)?)?;
    std::fs::rename(fresh, &file)?;
    tokio::select! {
        () = opened.serve => {}
        () = crate::signals::stop() => {}
        () = removed(&file) => {}
    }
    Ok(())
}

async fn removed(file: &Path) {
    while file.exists() {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}
