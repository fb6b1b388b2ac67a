//! `cargo xtask helm`: the chart and the manifests of a release, used by Helm and kubectl on kube-apiserver.
//!
//! There are no nodes: the manager of the installed Deployment is run as a process, with its arguments and as its
//! ServiceAccount.

mod objects;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::api::Api;
use crate::bed::manager::Manager;
use crate::bed::release::Packer;
use crate::bed::tool::Tool;
use crate::bed::{Controllers, Server, Workdir, capstan, wait};
use crate::cluster_api::manager::ensure_no_warnings;
use crate::peers::Cache;
use crate::text::Lap;
use objects::{Objects, objects};

const NAMESPACE: &str = "capstan-system";
const RELEASE: &str = "capstan";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const CLUSTERS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.cluster.x-k8s.io";

/// Values, and an object that they add or remove.
const CHOICES: &[(&str, &str, bool)] = &[
    ("networkPolicy: {enabled: true}", "NetworkPolicy/capstan", true),
    ("podDisruptionBudget: {enabled: false}", "PodDisruptionBudget/capstan", false),
    ("rbac: {clusterAdmin: true}", "ClusterRole/capstan-manager", false),
    (EVERYTHING, "Deployment/capstan", true),
];

/// A value for every setting whose default is empty.
const EVERYTHING: &str = "
controllers: [core]
installCrds: false
extraArgs: [--watch-filter=a]
imagePullSecrets: [{name: a}]
nodeSelector: {a: b}
tolerations: [{operator: Exists}]
podAnnotations: {a: b}
priorityClassName: system-cluster-critical
networkPolicy: {enabled: true, metricsFrom: {a: b}}
rbac: {extraRules: [{apiGroups: [example.org], resources: ['*'], verbs: ['*']}]}
";

/// Values that no Deployment can be made of, and the setting that the error names.
const REFUSED: &[(&str, &str)] = &[
    ("replicas: two", "/replicas"),
    ("controllers: [all]", "/controllers"),
    ("image: {registry: example.org}", "/image"),
    ("replica: 1", "'replica'"),
];

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// The program that packs releases [default: built with the profile `ci`]
    #[arg(long, env = "CAPSTAN_RELEASE_BIN")]
    capstan_release: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let packer = Packer::locate(options.capstan_release.as_deref())?;
    let cache = Cache::locate()?;
    let mut workdir = Workdir::new("helm")?;
    let mut lap = Lap::start();
    let files = workdir.path().join("files");
    packer.pack(&binary, &files).await?;
    let chart = Chart {
        helm: Tool::new(cache.built("helm")?, workdir.folder("home")?),
        package: path_text(&files.join(format!("capstan-{VERSION}.tgz")))?,
        values: workdir.path().join("values.yaml"),
    };
    chart.helm.plain(&["lint", "--strict", &chart.package]).await?;
    let mut plain = objects(&std::fs::read_to_string(files.join("capstan-manager.yaml"))?)?;
    ensure!(plain.remove(&format!("Namespace/{NAMESPACE}")).is_some(), "the manifest has no Namespace");
    same(&plain, &chart.render("").await?)?;
    for (values, name, wanted) in CHOICES {
        ensure!(chart.render(values).await?.contains_key(*name) == *wanted, "{values}: {name}");
    }
    for (values, named) in REFUSED {
        let Err(error) = chart.render(values).await else { anyhow::bail!("Helm accepts {values}") };
        ensure!(format!("{error:#}").contains(named), "{values}: the error does not name {named}: {error:#}");
    }
    lap.end("the chart renders, and is the plain manifest");

    let mut server = Server::kube(&workdir.folder("server")?, Controllers::Plane).await?;
    let api = server.api()?;
    lap.end("kube-apiserver ready");

    let kubeconfig = &server.kubeconfig;
    let place = ["--namespace", NAMESPACE];
    let install = ["install", RELEASE, &chart.package, "--create-namespace"];
    chart.helm.run(kubeconfig, &[&install[..], &place].concat()).await?;
    let kubectl = Tool::new(cache.built("kubectl")?, workdir.folder("home")?);
    let rendered = workdir.path().join("rendered.yaml");
    std::fs::write(&rendered, chart.text("").await?)?;
    let rendered = path_text(&rendered)?;
    let listed = kubectl.run(kubeconfig, &["get", "-f", &rendered, "-o", "name"]).await?;
    ensure!(listed.lines().count() == plain.len(), "{} objects installed:\n{listed}", plain.len());
    lap.end("installed");

    let mut manager =
        Manager::installed(&server, &api, &workdir.folder("manager")?, &binary, NAMESPACE, RELEASE).await?;
    wait::until("the manager installs its definitions", Duration::from_secs(60), || async {
        Ok(api.get(CLUSTERS).await?.status.is_success().then_some(()))
    })
    .await?;
    lap.end("its manager runs with its arguments and rights");

    std::fs::write(&chart.values, EVERYTHING)?;
    let values = path_text(&chart.values)?;
    let upgrade = ["upgrade", RELEASE, &chart.package, "--values", &values];
    chart.helm.run(kubeconfig, &[&upgrade[..], &place].concat()).await?;
    ensure!(deployment(&api).await?["spec"]["template"]["spec"]["nodeSelector"]["a"] == "b", "not upgraded");
    chart.helm.run(kubeconfig, &[&["rollback", RELEASE, "1"][..], &place].concat()).await?;
    let selector = deployment(&api).await?["spec"]["template"]["spec"]["nodeSelector"].take();
    ensure!(selector.is_null(), "not rolled back: {selector}");
    lap.end("upgraded with every setting, and rolled back");

    manager.check()?;
    manager.stop()?;
    ensure_no_warnings([manager.logged_warnings()])?;
    chart.helm.run(kubeconfig, &[&["uninstall", RELEASE, "--wait"][..], &place].concat()).await?;
    let left = kubectl.run(kubeconfig, &["get", "-f", &rendered, "-o", "name", "--ignore-not-found"]).await?;
    ensure!(left.is_empty(), "left after uninstall:\n{left}");
    api.get(CLUSTERS).await?.success().context("the definitions are gone, and every cluster with them")?;
    lap.end("uninstalled, definitions stay");

    let manifest = path_text(&files.join("capstan-manager.yaml"))?;
    let applied = kubectl.run(kubeconfig, &["apply", "-f", &manifest]).await?;
    // kubectl prints one line per object, its warnings elsewhere.
    ensure!(applied.lines().count() == plain.len() + 1, "kubectl applied:\n{applied}");
    let mut manager =
        Manager::installed(&server, &api, &workdir.folder("plain")?, &binary, NAMESPACE, RELEASE).await?;
    manager.stop()?;
    server.check()?;
    lap.end("plain manifests applied, and their manager runs");
    workdir.passed();
    Ok(())
}

/// The packed chart and who reads it.
struct Chart {
    helm: Tool,
    package: String,
    values: PathBuf,
}

impl Chart {
    /// Output of `helm template`.
    async fn text(&self, values: &str) -> Result<String> {
        std::fs::write(&self.values, values)?;
        let values = path_text(&self.values)?;
        self.helm
            .plain(&["template", RELEASE, &self.package, "--namespace", NAMESPACE, "--values", &values])
            .await
    }

    async fn render(&self, values: &str) -> Result<Objects> {
        objects(&self.text(values).await?)
    }
}

fn same(plain: &Objects, rendered: &Objects) -> Result<()> {
    for name in plain.keys().chain(rendered.keys()) {
        ensure!(plain.get(name) == rendered.get(name), "{name} of chart and manifest differ");
    }
    Ok(())
}

async fn deployment(api: &Api) -> Result<Value> {
    api.get(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RELEASE}")).await?.success()
}

fn path_text(path: &Path) -> Result<String> {
    Ok(path.to_str().context("a path that is not UTF-8")?.to_owned())
}
