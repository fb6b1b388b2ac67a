//! `cargo xtask gitops`: clusters whose whole life is driven from a git repository by Flux.
//!
//! Flux's source-controller and kustomize-controller run on `capstan server` and follow a repository with a cluster of EKS
//! Anywhere's API and one of Cluster API, on a simulated CloudStack. Each commit is applied with `wait: true`: when Flux
//! reports it as done, the machines are exactly those that it asks for, and no object that somebody may wait for is in
//! progress again before the next commit.

mod flux;
mod git;
mod manifests;
mod watcher;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use self::flux::Flux;
use self::git::Repository;
use self::manifests::{ANYWHERE, Anywhere, NEW, OLD, PLAIN};
use self::watcher::Watcher;
use crate::api::Api;
use crate::bed::cloudstack::CloudStack;
use crate::bed::ports::free_port;
use crate::bed::{Server, Workdir, capstan, wait};
use crate::text::Lap;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

const ACCOUNT: &str = "capstan";
/// Namespaces of the machines.
const OF_ANYWHERE: &str = "eksa-system";
const OF_PLAIN: &str = "default";
/// For writes that should not come.
const SETTLE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(300);

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("gitops")?;
    let folder = workdir.folder("run")?;
    let mut lap = Lap::start();
    let mut cloud = CloudStack::start(&folder, &binary, &format!("{OLD},{NEW}"), ACCOUNT).await?;
    cloud.share_network(&binary, manifests::NETWORK).await?;
    let initially = cloud.leaks().await?.len();
    let plane = folder.join("plane");
    let server = Server::capstan_with(&plane, &binary, free_port()?, &["--lifecycle=true"]).await?;
    let api = server.api()?;
    credentials(&api, &cloud).await?;
    let watcher = Watcher::start(&api).await?;
    let flux = Flux::start(&folder.join("flux"), &server.kubeconfig, &api).await?;
    let repository = Repository::serve(workdir.folder("fleet")?).await?;
    flux.follow(&repository).await?;
    lap.end("Flux follows a repository");

    let endpoint = format!("127.77.0.10:{}", free_port()?);
    let address = cloud.free_address().await?;
    let mut session = Session { api, cloud, server, flux, repository, watcher, endpoint, address };
    session.anywhere(&mut lap).await?;
    session.plain(&mut lap).await?;
    let left = session.cloud.leaks().await?;
    ensure!(left.len() == initially, "left behind: {left:?}");
    session.watcher.judge()?;
    lap.end("nothing is left, and nobody who waited was misled");
    workdir.passed();
    Ok(())
}

/// The keys are the operator's and not in git.
async fn credentials(api: &Api, cloud: &CloudStack) -> Result<()> {
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": OF_ANYWHERE}})).await?.success()?;
    for (namespace, name) in [(OF_ANYWHERE, "global"), (OF_PLAIN, "cloudstack-credentials")] {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        api.post(&path, &cloud.secret(name)).await?.success()?;
    }
    Ok(())
}

/// The fleet and who drives it.
struct Session {
    api: Api,
    cloud: CloudStack,
    server: Server,
    flux: Flux,
    repository: Repository,
    watcher: Watcher,
    /// Of the cluster of EKS Anywhere's API.
    endpoint: String,
    /// Of the cluster of Cluster API.
    address: std::net::IpAddr,
}

/// Machines by name, with their versions.
type Machines = BTreeMap<String, String>;

impl Session {
    async fn anywhere(&mut self, lap: &mut Lap) -> Result<()> {
        let one = Anywhere { control_plane: 1, workers: 1, version: OLD };
        let note = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "fleet", "namespace": "default"}, "data": {"owner": "operator"}});
        self.repository.write("anywhere/note.yaml", &[note])?;
        self.write(one)?;
        let revision = self.repository.commit("Create a cluster")?;
        self.flux.apply("anywhere").await?;
        let created = self.arrives("anywhere", &revision, OF_ANYWHERE, (2, OLD)).await?;
        lap.end("commit: a cluster of EKS Anywhere's API is created");

        self.write(Anywhere { workers: 2, ..one })?;
        let revision = self.commit("Scale the workers")?;
        let scaled = self.arrives("anywhere", &revision, OF_ANYWHERE, (3, OLD)).await?;
        ensure!(created.keys().all(|name| scaled.contains_key(name)), "{created:?} became {scaled:?}");
        lap.end("commit: scaled, and no machine replaced");

        let new = Anywhere { workers: 2, version: NEW, ..one };
        self.write(new)?;
        let revision = self.commit("Upgrade")?;
        let upgraded = self.arrives("anywhere", &revision, OF_ANYWHERE, (3, NEW)).await?;
        lap.end("commit: upgraded");

        self.write(Anywhere { control_plane: 2, ..new })?;
        let revision = self.repository.commit("Two control plane machines")?;
        let message = self.flux.wait_failed("anywhere", &revision).await?;
        ensure!(message.contains("control plane") || message.contains("controlPlane"), "{message}");
        println!("Flux reports: {message}");
        self.keeps(OF_ANYWHERE, &upgraded).await?;
        lap.end("commit: refused by admission, and reported by Flux");

        self.write(new)?;
        let revision = self.repository.commit("Revert the mistake")?;
        let kept = self.arrives("anywhere", &revision, OF_ANYWHERE, (3, NEW)).await?;
        ensure!(kept == upgraded, "{upgraded:?} became {kept:?}");
        self.unchanged_by_reconciling("anywhere").await?;
        lap.end("commit: mended; reconciling again changes nothing");

        self.repository.remove("anywhere/cluster.yaml")?;
        let revision = self.commit("Delete the cluster")?;
        self.flux.wait_ready("anywhere", &revision).await?;
        self.gone(
            "/apis/anywhere.eks.amazonaws.com/v1alpha1/namespaces/default/clusters",
            ANYWHERE,
            OF_ANYWHERE,
        )
        .await?;
        lap.end("commit: deleted by git rm");
        Ok(())
    }

    async fn plain(&mut self, lap: &mut Lap) -> Result<()> {
        let port = self.cloud.endpoint_port;
        let address = self.address;
        let objects = |workers, version| manifests::plain(workers, version, address, port);
        self.repository.write("plain/cluster.yaml", &objects(1, OLD)?)?;
        let revision = self.commit("Create a cluster of Cluster API")?;
        self.flux.apply("plain").await?;
        let created = self.arrives("plain", &revision, OF_PLAIN, (2, OLD)).await?;
        lap.end("commit: a cluster of Cluster API is created");

        self.repository.write("plain/cluster.yaml", &objects(2, OLD)?)?;
        let revision = self.commit("Scale the workers")?;
        let scaled = self.arrives("plain", &revision, OF_PLAIN, (3, OLD)).await?;
        ensure!(created.keys().all(|name| scaled.contains_key(name)), "{created:?} became {scaled:?}");
        lap.end("commit: scaled, and no machine replaced");

        self.repository.write("plain/cluster.yaml", &objects(2, NEW)?)?;
        let revision = self.commit("Upgrade")?;
        let upgraded = self.arrives("plain", &revision, OF_PLAIN, (3, NEW)).await?;
        self.unchanged_by_reconciling("plain").await?;
        self.keeps(OF_PLAIN, &upgraded).await?;
        lap.end("commit: upgraded; reconciling again changes nothing");

        self.watcher.expect_changes()?;
        self.flux.forget("plain").await?;
        self.gone("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters", PLAIN, OF_PLAIN).await?;
        lap.end("the Kustomization deleted with its cluster");
        Ok(())
    }

    fn write(&self, cluster: Anywhere) -> Result<()> {
        self.repository.write("anywhere/cluster.yaml", &cluster.objects(&self.cloud, &self.endpoint)?)
    }

    /// Commits something that changes the fleet.
    fn commit(&self, message: &str) -> Result<String> {
        self.watcher.expect_changes()?;
        self.repository.commit(message)
    }

    /// Waits until Flux reports the revision as applied. At that moment everything is there: so many machines, all of one
    /// version.
    async fn arrives(
        &mut self,
        folder: &str,
        revision: &str,
        namespace: &str,
        (count, version): (usize, &str),
    ) -> Result<Machines> {
        self.flux.wait_ready(folder, revision).await?;
        self.watcher.settled()?;
        let machines = self.machines(namespace).await?;
        let right = machines.len() == count && machines.values().all(|found| found == version);
        ensure!(right, "Flux is done with {count} machines of {version}, and there are {machines:?}");
        tokio::time::sleep(SETTLE).await;
        ensure!(machines == self.machines(namespace).await?, "machines changed after Flux was done");
        self.check()?;
        Ok(machines)
    }

    async fn machines(&self, namespace: &str) -> Result<Machines> {
        let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/machines");
        let list = self.api.get(&path).await?.success()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let machines = list["items"].as_array().context("no items")?.iter();
        Ok(machines.map(|it| (text(&it["metadata"]["name"]), text(&it["spec"]["version"]))).collect())
    }

    async fn keeps(&mut self, namespace: &str, before: &Machines) -> Result<()> {
        tokio::time::sleep(SETTLE).await;
        let after = self.machines(namespace).await?;
        ensure!(*before == after, "{before:?} became {after:?}");
        self.check()
    }

    /// What the server adds to objects does not look like drift to Flux.
    async fn unchanged_by_reconciling(&mut self, folder: &str) -> Result<()> {
        let before = self.generations().await?;
        self.flux.ask(folder, "again").await?;
        tokio::time::sleep(SETTLE).await;
        let after = self.generations().await?;
        ensure!(before == after, "generations {before:?} became {after:?}");
        Ok(())
    }

    async fn generations(&self) -> Result<BTreeMap<String, Value>> {
        let mut all = BTreeMap::new();
        for path in watcher::WATCHED {
            let list = self.api.get(path).await?.success()?;
            for object in list["items"].as_array().into_iter().flatten() {
                let meta = &object["metadata"];
                all.insert(format!("{path} {}", meta["name"]), meta["generation"].clone());
            }
        }
        Ok(all)
    }

    /// Waits until a cluster and its machines are gone.
    async fn gone(&mut self, path: &str, name: &str, namespace: &str) -> Result<()> {
        let path = format!("{path}/{name}");
        wait::until(&format!("{path} is gone"), PATIENCE, || async {
            let reply = self.api.get(&path).await?;
            Ok((reply.status == 404 && self.machines(namespace).await?.is_empty()).then_some(()))
        })
        .await?;
        self.check()
    }

    fn check(&mut self) -> Result<()> {
        self.flux.check()?;
        self.cloud.check()?;
        self.server.check()?;
        self.watcher.judge()
    }
}
