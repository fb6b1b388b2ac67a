//! `cargo xtask port-forward`: real clients reach ports of Pods through our API server.
//!
//! kubectl forwards ports with both protocols, SPDY over WebSocket and plain SPDY, with several connections at once
//! and more bytes than any buffer holds. Then Cluster API's etcd client, as its control plane uses it, manages
//! members of our own server through such a port.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use capstan_apiserver::{Config, Server};
use capstan_env::Env;
use capstan_pki::Pki;
use capstan_streams::{PodStreamError, PodStreams, Stream};
use clap::Args;
use futures::future::BoxFuture;
use regex::Regex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::api::{Api, content};
use crate::bed::process::Program;
use crate::bed::wait::until;
use crate::bed::{self, Workdir};
use crate::kubernetes::etcd_members::{ours, tls};
use crate::peers::{self, Cache, catalog};
use crate::text::human_duration;

const PROGRAM: &str = include_str!("main.go");
const TIMEOUT: Duration = Duration::from_secs(30);
const PODS: &str = "/api/v1/namespaces/kube-system/pods";

#[derive(Debug, Args)]
pub struct Options {}

/// Port 80 of a Pod is an echo server, port 2379 an etcd member.
struct Pods {
    etcd: Arc<dyn capstan_etcd::Service>,
    tls: Arc<rustls::ServerConfig>,
}

impl PodStreams for Pods {
    fn connect<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, PodStreamError>> {
        let (near, far) = tokio::io::duplex(16 * 1024);
        match port {
            80 => drop(tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            })),
            2379 => drop(tokio::spawn(capstan_etcd::serve(far, Some(self.tls.clone()), self.etcd.clone()))),
            _ => return Box::pin(async { Err(PodStreamError::Refused) }),
        }
        Box::pin(async move { Ok(Box::new(near) as Box<dyn Stream>) })
    }
}

pub async fn run(_: &Options) -> Result<()> {
    let begin = Instant::now();
    let kubectl = Cache::locate()?.built("kubectl")?;
    let mut workdir = Workdir::new("port-forward")?;
    let etcd_pki = bed::pki::Pki::create(&workdir.folder("pki")?)?;
    let pods =
        Pods { etcd: ours::cluster(&vec![String::new(); 3]).swap_remove(0), tls: tls::server(&etcd_pki)? };
    let pki = Arc::new(Pki::ephemeral(Env::system()));
    let plane = Server::start(Config::in_memory().with_pods(Arc::new(pods)), pki).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("https://{}", listener.local_addr()?);
    let kubeconfig = workdir.path().join("kubeconfig");
    std::fs::write(&kubeconfig, plane.pki().admin_kubeconfig("pods", &server)?.to_string())?;
    tokio::spawn(async move {
        let names = ["127.0.0.1".to_owned()];
        plane.serve(listener, &names, std::future::pending()).await
    });
    let api = Api::from_kubeconfig(&kubeconfig)?;
    for name in ["web", "etcd-a"] {
        create(&api, name).await?;
    }
    for (how, websockets) in [("SPDY inside WebSocket", "true"), ("SPDY", "false")] {
        kubectl_forwards(
            &kubectl,
            &kubeconfig,
            &workdir.folder(&format!("kubectl-{websockets}"))?,
            websockets,
        )
        .await
        .with_context(|| format!("kubectl over {how}"))?;
        println!("kubectl over {how}: both directions, close, and an error");
    }
    cluster_api_manages_etcd(&kubeconfig, &etcd_pki).await?;
    println!("port-forward: passed in {}", human_duration(begin.elapsed()));
    workdir.passed();
    Ok(())
}

/// Creates a running Pod.
async fn create(api: &Api, name: &str) -> Result<()> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": "here", "containers": [{"name": "c", "image": "i"}]},
    });
    api.post(PODS, &pod).await?.success()?;
    let running = json!({"status": {"phase": "Running"}});
    api.patch(&format!("{PODS}/{name}/status"), content::MERGE_PATCH, &running).await?.success()?;
    Ok(())
}

async fn kubectl_forwards(kubectl: &Path, kubeconfig: &Path, folder: &Path, websockets: &str) -> Result<()> {
    let forward = |port: u16| {
        Program::new(&format!("kubectl-{port}"), kubectl)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--namespace=kube-system", "port-forward", "pod/web"])
            .arg(format!(":{port}"))
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets)
            .start(folder)
    };
    let output =
        |port: u16| std::fs::read_to_string(folder.join(format!("kubectl-{port}.log"))).unwrap_or_default();
    let local = async |port: u16| {
        let line = Regex::new(&format!(r"Forwarding from 127\.0\.0\.1:(\d+) -> {port}"))?;
        until("a forwarded port", TIMEOUT, || async {
            line.captures(&output(port)).map(|found| found[1].parse::<u16>()).transpose().map_err(Into::into)
        })
        .await
        .with_context(|| output(port))
    };
    let mut process = forward(80)?;
    let port = local(80).await?;
    let exchanges = (0..6u8).map(|seed| tokio::time::timeout(TIMEOUT, echoed(port, seed)));
    for exchange in futures::future::join_all(exchanges).await {
        exchange.context("an exchange took too long")??;
    }
    process.check()?;

    let _refused = forward(81)?;
    let port = local(81).await?;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"hello?").await?;
    until("an error", TIMEOUT, || async {
        let wanted = "error forwarding port 81 to pod web: connection refused";
        Ok(output(81).contains(wanted).then_some(()))
    })
    .await
    .with_context(|| output(81))
}

/// Sends more than fits into the buffers, and checks the echo.
async fn echoed(port: u16, seed: u8) -> Result<()> {
    let sent: Vec<u8> =
        (0..2_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 ^ seed).collect();
    let (mut read, mut write) = TcpStream::connect(("127.0.0.1", port)).await?.into_split();
    let mut heard = Vec::with_capacity(sent.len());
    let sending = async {
        write.write_all(&sent).await?;
        write.shutdown().await
    };
    let (written, read) = tokio::join!(sending, read.read_to_end(&mut heard));
    written?;
    read?;
    ensure!(heard == sent, "{} bytes came back of {}", heard.len(), sent.len());
    Ok(())
}

async fn cluster_api_manages_etcd(kubeconfig: &Path, pki: &bed::pki::Pki) -> Result<()> {
    let (module, version) = catalog::Family::ClusterApi.main_module();
    let upstream = std::fs::read_to_string(peers::module_dir(module, &version)?.join("go.mod"))?;
    let go_mod = catalog::Family::ClusterApi.go_mod(&upstream);
    let program = peers::small_program("etcd-through-pods", &go_mod, PROGRAM)?;
    let mut command = std::process::Command::new(program);
    command.args([kubeconfig, &pki.path("admin.crt"), &pki.path("admin.key")]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "Cluster API's client of etcd: {complaint}");
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    let names = |members: &Value| -> Vec<String> {
        let members = members.as_array().map(Vec::as_slice).unwrap_or_default();
        members.iter().map(|member| member["Name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    ensure!(reported["leader"] == 1 && names(&reported["members"]) == ["m1", "m2", "m3"], "{reported}");
    ensure!(reported["alarms"] == json!([{"MemberID": 2, "Type": 1}]), "{reported}");
    ensure!(names(&reported["left"]) == ["m1", "m2"], "{reported}");
    ensure!(reported["refused"].as_str().is_some_and(|text| text.contains("member not found")), "{reported}");
    ensure!(reported["absent"].as_str().is_some_and(|text| !text.is_empty()), "{reported}");
    println!("Cluster API's client of etcd: members, alarms, move-leader, remove-member");
    Ok(())
}
