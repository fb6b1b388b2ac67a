//! An API server under test: kube-apiserver with etcd and kube-controller-manager, or ours.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::pki::Pki;
use super::ports::free_port;
use super::process::{Process, Program, Usage};
use super::{kubeconfig, wait};
use crate::api::Api;
use crate::peers::Cache;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Flavour {
    /// etcd, kube-apiserver and kube-controller-manager.
    Kube,
    /// `capstan server`.
    Capstan,
}

impl Flavour {
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Kube => "kube-apiserver",
            Flavour::Capstan => "capstan",
        }
    }
}

/// Which controllers kube-controller-manager runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// kube-controller-manager is not started.
    None,
    /// Those that our management plane has too.
    Plane,
    /// All that make sense without nodes.
    All,
}

impl Controllers {
    fn list(self) -> &'static str {
        match self {
            Controllers::None => "",
            Controllers::Plane => {
                "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                 serviceaccount-token-controller,root-ca-certificate-publisher-controller,\
                 clusterrole-aggregation-controller,resourcequota-controller,\
                 persistentvolume-protection-controller,persistentvolumeclaim-protection-controller"
            }
            // There are no kubelets: these three would only taint nodes and evict Pods.
            Controllers::All => {
                "*,-node-lifecycle-controller,-taint-eviction-controller,-node-ipam-controller"
            }
        }
    }
}

/// A running API server with everything it needs. Stops when dropped.
#[derive(Debug)]
pub struct Server {
    pub flavour: Flavour,
    pub kubeconfig: PathBuf,
    /// From the start of the first process to the first successful /readyz.
    pub start_time: Duration,
    folder: PathBuf,
    processes: Vec<Process>,
}

impl Server {
    /// Starts a server in a folder of its own. `capstan` is the path of our binary.
    pub async fn start(flavour: Flavour, folder: &Path, capstan: Option<&Path>) -> Result<Self> {
        match flavour {
            Flavour::Kube => Self::kube(folder, Controllers::All).await,
            Flavour::Capstan => Self::capstan(folder, &super::capstan::binary(capstan)?, free_port()?).await,
        }
    }

    /// Starts etcd, kube-apiserver, and kube-controller-manager with the given controllers.
    pub async fn kube(folder: &Path, controllers: Controllers) -> Result<Self> {
        let cache = Cache::locate()?;
        let [etcd, apiserver, manager] =
            ["etcd", "kube-apiserver", "kube-controller-manager"].map(|name| cache.built(name));
        let (etcd, apiserver, manager) = (etcd?, apiserver?, manager?);
        std::fs::create_dir_all(folder)?;
        let pki = Pki::create(&folder.join("pki"))?;
        let port = free_port()?;
        let kubeconfig = folder.join("kubeconfig");
        kubeconfig::write(&kubeconfig, &format!("https://127.0.0.1:{port}"), &pki)?;
        let mut server = Self {
            flavour: Flavour::Kube,
            kubeconfig,
            start_time: Duration::ZERO,
            folder: folder.to_owned(),
            processes: Vec::new(),
        };
        let started = Instant::now();
        let client = format!("http://127.0.0.1:{}", free_port()?);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        server.run(
            Program::new("etcd", etcd)
                .arg(format!("--data-dir={}", folder.join("etcd").display()))
                .args(["listen-client", "advertise-client"].map(|name| format!("--{name}-urls={client}")))
                .args(["listen-peer", "initial-advertise-peer"].map(|name| format!("--{name}-urls={peer}")))
                .arg(format!("--initial-cluster=default={peer}"))
                .arg("--log-level=warn"),
        )?;
        let file = |name: &str| pki.path(name).display().to_string();
        server.run(
            Program::new("kube-apiserver", apiserver)
                .arg(format!("--etcd-servers={client}"))
                .arg(format!("--secure-port={port}"))
                .arg("--bind-address=127.0.0.1")
                .arg(format!("--tls-cert-file={}", file("server.crt")))
                .arg(format!("--tls-private-key-file={}", file("server.key")))
                .arg(format!("--client-ca-file={}", file("ca.crt")))
                .arg("--service-account-issuer=https://kubernetes.default.svc")
                .arg(format!("--service-account-key-file={}", file("sa.pub")))
                .arg(format!("--service-account-signing-key-file={}", file("sa.key")))
                .arg("--service-cluster-ip-range=10.0.0.0/24")
                .arg("--authorization-mode=Node,RBAC")
                .arg("--profiling=false"),
        )?;
        server.wait_ready().await?;
        server.start_time = started.elapsed();
        if controllers != Controllers::None {
            server.run(
                Program::new("kube-controller-manager", manager)
                    .arg(format!("--kubeconfig={}", server.kubeconfig.display()))
                    .arg(format!("--root-ca-file={}", file("ca.crt")))
                    .arg(format!("--service-account-private-key-file={}", file("sa.key")))
                    .arg("--bind-address=127.0.0.1")
                    .arg(format!("--secure-port={}", free_port()?))
                    .arg("--use-service-account-credentials=false")
                    .arg(format!("--controllers={}", controllers.list()))
                    .args(["--leader-elect=false", "--kube-api-qps=200", "--kube-api-burst=400"]),
            )?;
        }
        server.wait_namespaces(controllers != Controllers::None).await?;
        Ok(server)
    }

    /// Starts `capstan server` with the API only, on a data directory inside the folder. Another start with the same
    /// folder and port resumes it.
    pub async fn capstan(folder: &Path, binary: &Path, port: u16) -> Result<Self> {
        Self::capstan_with(folder, binary, port, &["--api-only"]).await
    }

    /// Starts `capstan server` with additional arguments.
    pub async fn capstan_with(folder: &Path, binary: &Path, port: u16, arguments: &[&str]) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let data = folder.join("data");
        let mut server = Self {
            flavour: Flavour::Capstan,
            kubeconfig: data.join("admin.kubeconfig"),
            start_time: Duration::ZERO,
            folder: folder.to_owned(),
            processes: Vec::new(),
        };
        let started = Instant::now();
        server.run(
            Program::new("capstan", binary)
                .arg("server")
                .args(arguments.iter().map(|argument| (*argument).to_owned()))
                .args(["--data-dir".into(), data.into_os_string()])
                .args(["--listen".to_owned(), format!("127.0.0.1:{port}")]),
        )?;
        server.wait_ready().await?;
        server.start_time = started.elapsed();
        server.wait_namespaces(true).await?;
        Ok(server)
    }

    fn run(&mut self, program: Program) -> Result<()> {
        self.processes.push(program.start(&self.folder)?);
        Ok(())
    }

    /// A client with administrator rights.
    pub fn api(&self) -> Result<Api> {
        Api::from_kubeconfig(&self.kubeconfig)
    }

    async fn wait_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(180);
        loop {
            self.check()?;
            let answer = match self.api() {
                Ok(api) => api.get("/readyz").await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(reply) if reply.status.is_success() => return Ok(()),
                _ if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
                Ok(reply) => {
                    bail!("{} is not ready: {}", self.flavour.name(), String::from_utf8_lossy(&reply.body))
                }
                Err(error) => return Err(error.context(format!("{} does not answer", self.flavour.name()))),
            }
        }
    }

    /// Clients expect that `default` and its service account exist.
    async fn wait_namespaces(&mut self, controllers: bool) -> Result<()> {
        let api = self.api()?;
        let path = if controllers {
            "/api/v1/namespaces/default/serviceaccounts/default"
        } else {
            "/api/v1/namespaces/default"
        };
        wait::until(path, Duration::from_secs(60), || async {
            Ok(api.get(path).await?.status.is_success().then_some(()))
        })
        .await
    }

    /// Fails if one of its processes has exited.
    pub fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    /// Warnings and errors in the log of our own server. Empty for kube-apiserver, whose log has another format.
    pub fn logged_warnings(&self) -> Result<Vec<String>> {
        match self.flavour {
            Flavour::Kube => Ok(Vec::new()),
            Flavour::Capstan => {
                let all: Result<Vec<_>> = self.processes.iter().map(Process::logged_warnings).collect();
                Ok(all?.concat())
            }
        }
    }

    /// The process that was started last: the API server.
    pub fn process_id(&self) -> Result<u32> {
        self.processes.last().map(Process::id).context("no process")
    }

    /// Memory and CPU time of its processes.
    pub fn usage(&self) -> Result<Vec<(String, Usage)>> {
        self.processes.iter().map(|process| Ok((process.name().to_owned(), process.usage()?))).collect()
    }

    /// Sends SIGKILL to every process, last started first.
    pub fn kill(&mut self) -> Result<()> {
        self.processes.iter_mut().rev().try_for_each(|process| process.kill().map(drop))
    }

    /// Stops every process, last started first: kube-apiserver cannot shut down without etcd.
    pub fn stop(&mut self) -> Result<()> {
        for process in self.processes.iter_mut().rev() {
            process.stop(Duration::from_secs(10)).with_context(|| format!("stop {}", process.name()))?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        while let Some(process) = self.processes.pop() {
            drop(process);
        }
    }
}
