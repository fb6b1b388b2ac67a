//! `capstan server`: the Kubernetes API from a data directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use capstan_apiserver::env::Env;
use capstan_apiserver::pki::Pki;
use capstan_apiserver::plane::{Config, Plane};
use tokio::net::TcpListener;

/// Arguments of `capstan server`.
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the store, keys and the administrator's kubeconfig; made if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present = "in_memory")]
    data_dir: Option<PathBuf>,
    /// Keep objects in memory only; with --data-dir, keys and kubeconfig are still kept there
    #[arg(long)]
    in_memory: bool,
    /// Address to serve on; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Further host names or addresses the serving certificate is valid for
    #[arg(long, value_name = "NAME")]
    tls_san: Vec<String>,
}

/// Serves until SIGTERM or Ctrl-C.
pub fn run(args: Args) -> Result<()> {
    crate::logging::start();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(args))
}

async fn serve(args: Args) -> Result<()> {
    let started = Instant::now();
    let temporary = match &args.data_dir {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary directory could be made")?),
    };
    let dir: &Path = match (&args.data_dir, &temporary) {
        (Some(dir), _) => dir,
        (None, Some(temporary)) => temporary.path(),
        (None, None) => Path::new("."),
    };
    let pki = Pki::load_or_create(&dir.join("pki"), Env::system())
        .with_context(|| format!("the keys in {} could not be read or made", dir.display()))?;
    let pki = Arc::new(pki);
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!(
            "cannot listen on {}: choose another address with --listen, or port 0 for any free one",
            args.listen
        )
    })?;
    let address = listener.local_addr()?;
    let config = if args.in_memory { Config::in_memory() } else { Config::on_disk(dir) };
    let plane = Plane::start(config, pki.clone()).await?;

    let kubeconfig = dir.join("admin.kubeconfig");
    write_kubeconfig(&pki, &kubeconfig, address)
        .with_context(|| format!("{} could not be written", kubeconfig.display()))?;
    announce(address, &kubeconfig, args.in_memory, started);

    let mut names = vec![address.ip().to_string(), "localhost".into(), "kubernetes.default.svc".into()];
    names.extend(args.tls_san);
    plane.serve(listener, &names, stop_signal()).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Writes the administrator's kubeconfig, readable by its owner only from the first moment on.
fn write_kubeconfig(pki: &Pki, path: &Path, address: SocketAddr) -> Result<()> {
    let kubeconfig = pki.admin_kubeconfig("capstan", &format!("https://{address}"))?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    std::io::Write::write_all(&mut file, format!("{kubeconfig:#}\n").as_bytes())?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is what the command has to say")]
fn announce(address: SocketAddr, kubeconfig: &Path, in_memory: bool, started: Instant) {
    let kind = if in_memory { "in memory, nothing is kept" } else { "durable" };
    println!(
        "capstan serves the Kubernetes API on https://{address} ({kind}; ready in {:.0?})",
        started.elapsed()
    );
    println!("kubeconfig: {}", kubeconfig.display());
    println!();
    println!("try:  export KUBECONFIG={}", kubeconfig.display());
    println!("      kubectl get namespaces");
    println!("      kubectl apply -f my-crd.yaml");
    println!("stop: Ctrl-C");
}

async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = interrupt => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be heard; stop with Ctrl-C");
                let _ = interrupt.await;
            }
        }
    }
    #[cfg(not(unix))]
    {
        let _ = interrupt.await;
    }
}
