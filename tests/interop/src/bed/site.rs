//! `capstan sim site` as a separate process: machines that outlive the planes that created them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::ports::free_port;
use super::process::{Process, Program, Usage};
use super::wait;

/// A running site. Its machines are gone when it is dropped.
#[derive(Debug)]
pub struct Site {
    process: Process,
    url: String,
}

impl Site {
    /// Starts it and waits until it answers.
    pub async fn start(folder: &Path, binary: &Path) -> Result<Self> {
        Self::start_with(folder, binary, &[]).await
    }

    /// Like [`Self::start`], with additional arguments.
    pub async fn start_with(folder: &Path, binary: &Path, arguments: &[&str]) -> Result<Self> {
        let port = free_port()?;
        let process = Program::new("site", binary)
            .args(["sim", "site", "--instant"])
            .arg(format!("--listen=127.0.0.1:{port}"))
            .arg(format!("--endpoint-port={}", free_port()?))
            .args(arguments.iter().map(|argument| (*argument).to_owned()))
            .start(folder)?;
        let site = Self { process, url: format!("http://127.0.0.1:{port}") };
        wait::until("the site answers", Duration::from_secs(60), || async {
            Ok(Some(site.machines().await?))
        })
        .await?;
        Ok(site)
    }

    /// Fails if the process has exited.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Its name, memory and CPU time.
    pub fn usage(&self) -> Result<(String, Usage)> {
        Ok((self.process.name().to_owned(), self.process.usage()?))
    }

    /// The flag that connects servers and managers to it.
    pub fn flag(&self) -> String {
        format!("--simulator-url={}", self.url)
    }

    /// Response to a GET, as JSON.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        let reply = client.get(format!("{}{path}", self.url).parse()?).await?;
        Ok(serde_json::from_slice(&reply.into_body().collect().await?.to_bytes())?)
    }

    pub async fn machines(&self) -> Result<BTreeSet<String>> {
        let machines: Vec<Value> = serde_json::from_value(self.get("/v1/machines").await?)?;
        let id =
            |machine: &Value| machine["id"].as_str().map(ToOwned::to_owned).context("a machine without id");
        machines.iter().map(id).collect()
    }
}
