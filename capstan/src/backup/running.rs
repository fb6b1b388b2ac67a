//! The backup of a running server, asked for over its API.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use capstan_apiserver::backup::PATH;
use http::{Method, StatusCode};
use http_body_util::BodyExt;

use crate::client::{Client, Kubeconfig};

/// Writes the backup of the server that a kubeconfig leads to. Whether it came whole is for the reader of the
/// file to check.
pub fn fetch(kubeconfig: &Path, server: Option<&str>, out: &mut dyn Write) -> Result<()> {
    let mut config = Kubeconfig::read(kubeconfig)?;
    if let Some(server) = server {
        config.server = server.trim_end_matches('/').to_owned();
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(stream(&config, out))
}

async fn stream(config: &Kubeconfig, out: &mut dyn Write) -> Result<()> {
    let answer = Client::new(config)?.send(Method::GET, PATH, String::new()).await?;
    let status = answer.status();
    let mut body = answer.into_body();
    if status != StatusCode::OK {
        let text = body.collect().await?.to_bytes();
        let message = serde_json::from_slice::<serde_json::Value>(&text)
            .ok()
            .and_then(|status| status["message"].as_str().map(str::to_owned))
            .unwrap_or_else(|| String::from_utf8_lossy(&text).into_owned());
        bail!("{} refuses ({status}): {message}", config.server);
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.with_context(|| format!("{} went away before the end", config.server))?;
        if let Ok(data) = frame.into_data() {
            out.write_all(&data)?;
        }
    }
    Ok(())
}
