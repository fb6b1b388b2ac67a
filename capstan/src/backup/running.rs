//! Backup of a running server over its API.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use capstan_apiserver::backup::PATH;
use capstan_controller::{Access, ApiError, Env, Remote, TcpDial, Transport as _};
use http::{Request, StatusCode};

/// Downloads a backup. The caller checks that it is complete.
pub fn fetch(kubeconfig: &Path, server: Option<&str>, out: &mut dyn Write) -> Result<()> {
    let mut access = Access::from_file(kubeconfig)
        .with_context(|| format!("{} is not a usable kubeconfig", kubeconfig.display()))?;
    if let Some(server) = server {
        access =
            access.at(server).with_context(|| format!("{server} is not a URL such as https://host:port"))?;
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(stream(access, out))
}

async fn stream(access: Access, out: &mut dyn Write) -> Result<()> {
    let server = format!("https://{}", access.authority());
    let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
    let answer = remote.send(Request::get(PATH).body(Bytes::new())?).await;
    let answer = answer.with_context(|| format!("cannot reach {server}"))?;
    let status = answer.status();
    let mut body = answer.into_body();
    if status != StatusCode::OK {
        let mut text = Vec::new();
        while let Some(piece) = body.next().await {
            text.extend_from_slice(&piece?);
        }
        bail!("{server} refused ({status}): {}", ApiError::from_body(status.as_u16(), &text));
    }
    while let Some(piece) = body.next().await {
        out.write_all(&piece.with_context(|| format!("{server} closed the connection early"))?)?;
    }
    Ok(())
}
