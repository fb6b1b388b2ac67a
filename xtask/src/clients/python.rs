//! The Python client of PyPI, in a virtual environment of the cache.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use super::Options;
use crate::bed::ports::free_port;
use crate::bed::{Flavour, Server, Workdir, capstan};
use crate::peers::Cache;
use crate::text::human_duration;

/// Release of the `kubernetes` package.
const PACKAGE: &str = "kubernetes==37.0.2";
const LIMIT: Duration = Duration::from_secs(300);

pub async fn run(options: &Options) -> Result<()> {
    let python = environment().await?;
    let mut workdir = Workdir::new("clients")?;
    let folder = workdir.folder("server")?;
    let mut place = Place { server: None, folder, binary: None, port: free_port()? };
    match options.server {
        Flavour::Kube => place.server = Some(Server::start(Flavour::Kube, &place.folder, None).await?),
        Flavour::Capstan => {
            place.binary = Some(capstan::binary(options.capstan.as_deref())?);
            place.restart().await?;
        }
    }
    let kubeconfig = place.server.as_ref().context("no server")?.kubeconfig.clone();
    println!("{PACKAGE} on {}", options.server.name());
    let started = Instant::now();
    tokio::time::timeout(LIMIT, talk(&python, &kubeconfig, &mut place))
        .await
        .with_context(|| format!("the suite did not end within {LIMIT:?}"))??;
    println!("the Python client is content, {}", human_duration(started.elapsed()));
    workdir.passed();
    Ok(())
}

/// A server that can be restarted where it was.
struct Place {
    server: Option<Server>,
    folder: PathBuf,
    binary: Option<PathBuf>,
    port: u16,
}

impl Place {
    /// kube-apiserver forgets what watchers saw when it is restarted, so only ours is.
    async fn restart(&mut self) -> Result<()> {
        let Some(binary) = &self.binary else { return Ok(()) };
        if let Some(mut server) = self.server.take() {
            server.stop()?;
        }
        self.server = Some(Server::capstan(&self.folder, binary, self.port).await?);
        Ok(())
    }
}

/// Runs the script; it says when the server should be restarted.
async fn talk(python: &Path, kubeconfig: &Path, place: &mut Place) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients/python/suite.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("start python")?;
    let mut answers = child.stdin.take().context("no standard input")?;
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    let mut done = false;
    while let Some(line) = lines.next_line().await? {
        match line.as_str() {
            "RESTART" => {
                place.restart().await?;
                answers.write_all(b"\n").await?;
            }
            "DONE" => done = true,
            _ => println!("  {line}"),
        }
    }
    let status = child.wait().await?;
    if !done || !status.success() {
        bail!("the Python client is not content ({status})");
    }
    Ok(())
}

/// The interpreter of a virtual environment with the client in it, made once.
async fn environment() -> Result<PathBuf> {
    let folder = Cache::locate()?.folder("python")?.join(PACKAGE);
    let python = folder.join("bin/python");
    let ready = folder.join("ready");
    if ready.is_file() {
        return Ok(python);
    }
    println!("installing {PACKAGE} into {}", folder.display());
    let folder_text = folder.to_str().context("the cache's path is not UTF-8")?;
    let interpreter = Path::new("python3");
    checked(interpreter, &["-m", "venv", "--clear", folder_text])
        .await
        .context("a Python 3 with its venv module is needed: install python3 and python3-venv")?;
    checked(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]).await?;
    std::fs::write(ready, "")?;
    Ok(python)
}

async fn checked(program: &Path, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output().await;
    let output = output.with_context(|| format!("run {}", program.display()))?;
    if !output.status.success() {
        bail!("{} {}: {}", program.display(), arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
