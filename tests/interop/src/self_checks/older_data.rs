//! `cargo xtask older-data`: records a data directory with a cluster, for the test that opens it with later versions
//! (`capstan/tests/it/older.rs`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::bed::cluster::{Cluster, examples};
use crate::bed::ports::free_port;
use crate::bed::site::Site;
use crate::bed::{Server, Workdir, capstan};

const FOLDER: &str = "capstan/tests/older";
/// Escapes ids as one path segment.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
/// Lists that must be unchanged afterwards.
const LISTS: [&str; 8] = [
    "cluster.x-k8s.io/v1beta2/namespaces/default/clusters",
    "cluster.x-k8s.io/v1beta2/namespaces/default/machines",
    "cluster.x-k8s.io/v1beta2/namespaces/default/machinesets",
    "cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments",
    "controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanes",
    "bootstrap.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmconfigs",
    "infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/simclusters",
    "infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/simmachines",
];

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("older-data")?;
    let site = Site::start(&workdir.folder("site")?, &binary).await?;
    let folder = workdir.folder("server")?;
    let mut server = Server::capstan_with(&folder, &binary, free_port()?, &[&site.flag()]).await?;
    let api = server.api()?;
    let cluster = Cluster::known(&api, "default", examples(&["cni.yaml", "sim-cluster.yaml"])?).await?;
    cluster.create().await?;
    cluster.wait_available(1, 1, &mut || server.check()).await?;
    cluster.wait_rest().await?;

    let mut cloud = Map::new();
    let machines = site.get("/v1/machines").await?;
    for machine in machines.as_array().context("a list")? {
        let id = machine["id"].as_str().context("an id")?;
        cloud.insert(format!("/v1/machines/{}", utf8_percent_encode(id, PART)), machine.clone());
    }
    ensure!(cloud.len() == 2, "two machines: {machines}");
    cloud.insert("/v1/machines".to_owned(), machines);
    let balancer = "/v1/balancers/default%2Fquick";
    cloud.insert(balancer.to_owned(), site.get(balancer).await?);
    let mut objects = BTreeMap::new();
    for list in LISTS {
        let path = format!("/apis/{list}");
        let found = api.get(&path).await?.success()?;
        let items = found["items"].as_array().context("a list")?;
        let known = |item: &Value| {
            let meta = &item["metadata"];
            (meta["name"].as_str().unwrap_or_default().to_owned(), json!([meta["uid"], meta["generation"]]))
        };
        ensure!(!items.is_empty(), "nothing in {path}");
        objects.insert(path, items.iter().map(known).collect::<BTreeMap<_, _>>());
    }
    server.stop()?;

    let to = crate::cargo::root().join(FOLDER);
    std::fs::create_dir_all(&to)?;
    let facts = json!({"cloud": cloud, "objects": objects});
    std::fs::write(to.join("facts.json"), serde_json::to_string_pretty(&facts)? + "\n")?;
    let packed = Command::new("tar")
        .args(["--create", "--gzip", "--sort=name", "--owner=0", "--group=0", "--file"])
        .arg(to.join("data.tar.gz"))
        .arg("--directory")
        .arg(&folder)
        .arg("data")
        .status()?;
    ensure!(packed.success(), "tar: {packed}");
    println!("{} KiB", to.join("data.tar.gz").metadata()?.len() / 1024);
    workdir.passed();
    Ok(())
}
