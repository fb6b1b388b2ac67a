//! Cluster API's Go managers as plain local processes, against any API server.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::install::{self, Manifests};
use super::pki::Pki;
use super::ports::free_port;
use super::process::{Process, Program, Usage};
use crate::api::Api;
use crate::peers::catalog::{
    CAPC, CAPC_MODULE, CAPO, CAPO_MODULE, CLUSTER_API, CLUSTER_API_MODULE, CLUSTER_API_TEST_MODULE, ORC,
    ORC_MODULE,
};
use crate::peers::{Cache, module_dir};

#[derive(Clone, Copy, Debug)]
pub struct Manager {
    pub program: &'static str,
    module: &'static str,
    version: &'static str,
    /// Kustomize folders with its CRDs, webhooks and namespace.
    manifests: &'static [&'static str],
    /// Definitions of another project that it does not start without: module, version and file.
    foreign: &'static [(&'static str, &'static str, &'static str)],
    flags: Flags,
}

#[derive(Clone, Copy, Debug)]
enum Flags {
    ClusterApi {
        feature_gates: &'static str,
    },
    /// Its webhook port cannot be changed.
    Capc,
}

/// Webhook port of CAPC, whatever its flags say.
const CAPC_WEBHOOKS: u16 = 9443;

pub const CORE: Manager = Manager {
    program: "capi-core",
    module: CLUSTER_API_MODULE,
    version: CLUSTER_API,
    manifests: &["core/config/default"],
    foreign: &[],
    flags: Flags::ClusterApi { feature_gates: "MachinePool=true,ClusterTopology=true" },
};
const BOOTSTRAP: Manager = Manager {
    program: "capi-bootstrap",
    module: CLUSTER_API_MODULE,
    version: CLUSTER_API,
    manifests: &["bootstrap/kubeadm/config/default"],
    foreign: &[],
    flags: Flags::ClusterApi { feature_gates: "MachinePool=true" },
};
const CONTROL_PLANE: Manager = Manager {
    program: "capi-controlplane",
    module: CLUSTER_API_MODULE,
    version: CLUSTER_API,
    manifests: &["controlplane/kubeadm/config/default"],
    foreign: &[],
    flags: Flags::ClusterApi { feature_gates: "MachinePool=true,ClusterTopology=true" },
};
pub const CAPD: Manager = Manager {
    program: "capd",
    module: CLUSTER_API_TEST_MODULE,
    version: CLUSTER_API,
    manifests: &["infrastructure/docker/config/default"],
    foreign: &[],
    flags: Flags::ClusterApi { feature_gates: "MachinePool=true,ClusterTopology=true" },
};
/// The development provider for a plane without MachinePools and ClusterClasses.
pub const CAPD_OF_MACHINES: Manager =
    Manager { flags: Flags::ClusterApi { feature_gates: "MachinePool=false,ClusterTopology=false" }, ..CAPD };
/// The CloudStack provider. Its `config/default` refers to a file that only its release process creates.
const CLOUDSTACK: Manager = Manager {
    program: "capc",
    module: CAPC_MODULE,
    version: CAPC,
    manifests: &["config/crd", "config/webhook"],
    foreign: &[],
    flags: Flags::Capc,
};

/// The OpenStack provider. It watches images of the OpenStack Resource Controller, which need not run.
pub const OPENSTACK: Manager = Manager {
    program: "capo",
    module: CAPO_MODULE,
    version: CAPO,
    manifests: &["config/default"],
    foreign: &[(ORC_MODULE, ORC, "config/crd/bases/openstack.k-orc.cloud_images.yaml")],
    flags: Flags::ClusterApi { feature_gates: "" },
};

/// The managers that drive an infrastructure provider.
pub const DRIVERS: [Manager; 3] = [CORE, BOOTSTRAP, CONTROL_PLANE];
/// The same with the feature gates of everything that our controllers support.
pub const DRIVERS_OF_TOPOLOGIES: [Manager; 3] =
    [with_all(CORE), with_all(BOOTSTRAP), with_all(CONTROL_PLANE)];
pub const MANAGERS: [Manager; 4] = [CORE, BOOTSTRAP, CONTROL_PLANE, CAPD];
pub const ON_CLOUDSTACK: [Manager; 4] = [CORE, BOOTSTRAP, CONTROL_PLANE, CLOUDSTACK];
pub const ON_OPENSTACK: [Manager; 4] = [CORE, BOOTSTRAP, CONTROL_PLANE, OPENSTACK];

const fn with_all(manager: Manager) -> Manager {
    const GATES: &str = "MachinePool=true,ClusterTopology=true,MachineTaintPropagation=true,\
                         KubeadmBootstrapFormatIgnition=true";
    Manager { flags: Flags::ClusterApi { feature_gates: GATES }, ..manager }
}

impl Manager {
    /// Its manifests, rendered by kustomize. Cached: rendering takes seconds.
    pub fn render(&self, cache: &Cache) -> Result<String> {
        let version = format!("v{}", self.version);
        let mut text = install::rendered(cache, self.program, self.module, &version, self.manifests)?;
        for (module, version, file) in self.foreign {
            let path = module_dir(module, &format!("v{version}"))?.join(file);
            let definition = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            text.push_str("\n---\n");
            text.push_str(&definition);
        }
        Ok(text)
    }

    fn webhook_port(&self) -> Result<u16> {
        match self.flags {
            Flags::ClusterApi { .. } => free_port(),
            Flags::Capc => Ok(CAPC_WEBHOOKS),
        }
    }

    /// Whether its port is fixed, so that a machine can run only one of it.
    fn only_one(&self) -> bool {
        [CAPD.program, CLOUDSTACK.program].contains(&self.program)
    }

    /// Its own flags, in addition to those that all managers get.
    fn arguments(&self, webhook_port: u16, health_port: u16) -> Vec<String> {
        match self.flags {
            Flags::ClusterApi { feature_gates } => vec![
                format!("--webhook-port={webhook_port}"),
                format!("--health-addr=127.0.0.1:{health_port}"),
                format!("--feature-gates={feature_gates}"),
            ],
            Flags::Capc => vec![format!("--health-probe-bind-address=127.0.0.1:{health_port}")],
        }
    }
}

/// Running managers.
#[derive(Debug)]
pub struct Managers {
    /// What was installed for them.
    pub manifests: Manifests,
    /// Plain HTTP ports of their metrics.
    pub metrics_ports: Vec<u16>,
    processes: Vec<Process>,
    /// Locks on managers with fixed ports.
    _only_one: Vec<File>,
}

impl Managers {
    /// Installs CRDs, starts the managers, waits until they are ready, installs the webhooks.
    pub async fn start(folder: &Path, kubeconfig: &Path) -> Result<Self> {
        Self::start_some(folder, kubeconfig, &MANAGERS).await
    }

    /// Like [`Self::start`], with a choice of managers.
    pub async fn start_some(folder: &Path, kubeconfig: &Path, managers: &[Manager]) -> Result<Self> {
        let cache = Cache::locate()?;
        let programs: Result<Vec<_>> = managers.iter().map(|manager| cache.built(manager.program)).collect();
        let programs = programs?;
        let alone = managers.iter().filter(|manager| manager.only_one());
        let only_one = alone.map(|manager| only_one(&cache, manager.program)).collect::<Result<_>>()?;
        std::fs::create_dir_all(folder)?;
        let pki = Pki::create(&folder.join("pki"))?;
        let api = Api::from_kubeconfig(kubeconfig)?;

        let mut manifests = Manifests::default();
        let mut webhook_ports = Vec::new();
        for manager in managers {
            let port = manager.webhook_port()?;
            webhook_ports.push(port);
            manifests.add(&manager.render(&cache)?, port, &pki.read("ca.crt")?)?;
        }
        manifests.create_kinds(&api).await?;

        let mut running =
            Self { manifests, metrics_ports: Vec::new(), processes: Vec::new(), _only_one: only_one };
        let mut health_ports = Vec::new();
        for ((manager, program), webhook_port) in managers.iter().zip(programs).zip(webhook_ports) {
            let health_port = free_port()?;
            health_ports.push(health_port);
            let metrics_port = free_port()?;
            running.metrics_ports.push(metrics_port);
            running.processes.push(
                Program::new(manager.program, program)
                    .arg(format!("--kubeconfig={}", kubeconfig.display()))
                    .arg(format!("--webhook-cert-dir={}", pki.webhook_folder().display()))
                    .args(manager.arguments(webhook_port, health_port))
                    .arg(format!("--diagnostics-address=127.0.0.1:{metrics_port}"))
                    .args(["--insecure-diagnostics=true", "--v=0"])
                    .env("POD_IP", "127.0.0.1")
                    .env("POD_NAMESPACE", "default")
                    .env("POD_NAME", manager.program)
                    .env("POD_UID", "bed")
                    .start(folder)?,
            );
        }
        for (process, port) in running.processes.iter_mut().zip(health_ports) {
            wait_ready(process, port).await?;
        }
        running.manifests.create_webhooks(&api).await?;
        Ok(running)
    }

    /// Fails if one of them has exited.
    pub fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    pub fn usage(&self) -> Result<Vec<(String, Usage)>> {
        self.processes.iter().map(|process| Ok((process.name().to_owned(), process.usage()?))).collect()
    }

    /// Name and log of each.
    pub fn logs(&self) -> Vec<(String, PathBuf)> {
        self.processes.iter().map(|process| (process.name().to_owned(), process.log().to_owned())).collect()
    }
}

fn only_one(cache: &Cache, program: &str) -> Result<File> {
    let path = cache.root()?.join(format!("{program}.lock"));
    let file = File::create(&path).with_context(|| format!("open {}", path.display()))?;
    if file.try_lock().is_err() {
        println!("waiting for another suite that runs {program} on this machine");
        file.lock().with_context(|| format!("lock {}", path.display()))?;
    }
    Ok(file)
}

async fn wait_ready(process: &mut Process, port: u16) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !answers_ready(port).await {
        process.check()?;
        if Instant::now() > deadline {
            bail!("{} is not ready; see {}", process.name(), process.log().display());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Whether the manager's readiness endpoint reports ready.
pub async fn answers_ready(port: u16) -> bool {
    let answer = tokio::time::timeout(Duration::from_secs(2), plain(port, "/readyz")).await;
    answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.split_whitespace().nth(1) == Some("200")))
}

/// Response to a GET over plain HTTP, headers included; for health and metrics endpoints. HTTP/1.0 responses are not
/// chunked.
pub async fn plain(port: u16, path: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
