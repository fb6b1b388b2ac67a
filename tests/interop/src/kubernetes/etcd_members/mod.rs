//! `cargo xtask etcd-members`: our client with real etcd, and real etcdctl with our server.
//!
//! Our client sends every request of a control plane to three etcd members over mutual TLS, and the results are
//! compared with etcdctl's. Then etcdctl manages three members of our own server.

pub mod ours;
mod real;
pub mod tls;

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::bed::Workdir;
use crate::bed::pki::Pki;
use crate::peers::Cache;
use crate::text::human_duration;

#[derive(Debug, Args)]
pub struct Options {}

/// Runs both halves.
pub async fn run(_: &Options) -> Result<()> {
    let begin = Instant::now();
    let cache = Cache::locate()?;
    let (etcd, etcdctl) = (cache.built("etcd")?, cache.built("etcdctl")?);
    let mut workdir = Workdir::new("etcd-members")?;
    let pki = Pki::create(&workdir.folder("pki")?)?;
    let etcdctl = Etcdctl { program: etcdctl, pki: pki.clone() };
    real::run(&etcd, &etcdctl, &pki, &workdir.folder("etcd")?).await.context("our client and etcd")?;
    ours::run(&etcdctl, &pki).await.context("etcdctl and our server")?;
    println!("etcd-members: passed in {}", human_duration(begin.elapsed()));
    workdir.passed();
    Ok(())
}

pub struct Etcdctl {
    program: PathBuf,
    pki: Pki,
}

impl Etcdctl {
    /// Runs it against endpoints and returns its output.
    async fn run(&self, endpoints: &[String], arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["--endpoints", &endpoints.join(","), "--command-timeout=20s"]);
        for (flag, file) in [("--cacert", "ca.crt"), ("--cert", "admin.crt"), ("--key", "admin.key")] {
            command.arg(flag).arg(self.pki.path(file));
        }
        command.args(arguments);
        // The server may be in this very process.
        let output = tokio::task::spawn_blocking(move || command.output()).await?.context("run etcdctl")?;
        if !output.status.success() {
            bail!("etcdctl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs it and parses its JSON output.
    async fn json(&self, endpoints: &[String], arguments: &[&str]) -> Result<Value> {
        let text = self.run(endpoints, &[arguments, &["--write-out=json"]].concat()).await?;
        serde_json::from_str(&text).with_context(|| format!("etcdctl {} printed {text}", arguments.join(" ")))
    }

    /// Runs it where it must fail, and returns its error output.
    async fn complaint(&self, endpoints: &[String], arguments: &[&str]) -> Result<String> {
        match self.run(endpoints, arguments).await {
            Ok(printed) => bail!("etcdctl {} succeeded: {printed}", arguments.join(" ")),
            Err(error) => Ok(error.to_string()),
        }
    }
}
