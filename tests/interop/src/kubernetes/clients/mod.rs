//! `cargo xtask clients`: third-party client libraries, used as their users do.
//!
//! A suite is a program that takes a kubeconfig, prints one line per claim, `RESTART` when the server should be
//! restarted, and `DONE` at its end.

mod kube_rs;
pub mod python;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::bed::ports::free_port;
use crate::bed::{Flavour, Server, Workdir, capstan};
use crate::text::human_duration;

/// Timeout of a suite.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub struct Options {
    /// Only this client
    #[arg(long)]
    only: Option<Library>,
    /// Which server; kube-apiserver is not restarted
    #[arg(long, default_value = "capstan")]
    server: Flavour,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// A client library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Library {
    Python,
    KubeRs,
}

impl Library {
    const ALL: [Self; 2] = [Self::Python, Self::KubeRs];

    /// The program of its suite. The caller adds the kubeconfig.
    async fn suite(self) -> Result<Command> {
        match self {
            Self::Python => python::suite().await,
            Self::KubeRs => kube_rs::suite().await,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Python => python::PACKAGE,
            Self::KubeRs => "kube-rs",
        }
    }
}

pub async fn run(options: Options) -> Result<()> {
    for library in Library::ALL.into_iter().filter(|one| options.only.is_none_or(|only| only == *one)) {
        let program = library.suite().await?;
        let mut workdir = Workdir::new("clients")?;
        let folder = workdir.folder("server")?;
        let mut target = RestartableServer { server: None, folder, binary: None, port: free_port()? };
        match options.server {
            Flavour::Kube => target.server = Some(Server::start(Flavour::Kube, &target.folder, None).await?),
            Flavour::Capstan => {
                target.binary = Some(capstan::binary(options.capstan.as_deref())?);
                target.restart().await?;
            }
        }
        println!("{} on {}", library.name(), options.server.name());
        let started = Instant::now();
        tokio::time::timeout(LIMIT, run_suite(program, &mut target))
            .await
            .with_context(|| format!("the suite of {} did not end within {LIMIT:?}", library.name()))?
            .with_context(|| format!("the suite of {} failed", library.name()))?;
        println!("{} passed in {}", library.name(), human_duration(started.elapsed()));
        workdir.passed();
    }
    Ok(())
}

/// A server that can be restarted on the same data and port.
struct RestartableServer {
    server: Option<Server>,
    folder: PathBuf,
    binary: Option<PathBuf>,
    port: u16,
}

impl RestartableServer {
    /// Restarts our server. kube-apiserver loses its watch cache on a restart, so it is not restarted.
    async fn restart(&mut self) -> Result<()> {
        let Some(binary) = &self.binary else { return Ok(()) };
        if let Some(mut server) = self.server.take() {
            server.stop()?;
        }
        self.server = Some(Server::capstan(&self.folder, binary, self.port).await?);
        Ok(())
    }
}

/// Runs a suite and restarts the server on request.
async fn run_suite(mut program: Command, target: &mut RestartableServer) -> Result<()> {
    let kubeconfig = target.server.as_ref().context("no server")?.kubeconfig.clone();
    let mut child = program
        .arg(kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("start the suite")?;
    let mut answers = child.stdin.take().context("no standard input")?;
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    let mut done = false;
    while let Some(line) = lines.next_line().await? {
        match line.as_str() {
            "RESTART" => {
                target.restart().await?;
                answers.write_all(b"\n").await?;
            }
            "DONE" => done = true,
            _ => println!("  {line}"),
        }
    }
    let status = child.wait().await?;
    if !done || !status.success() {
        bail!("it exited with {status}");
    }
    Ok(())
}
