//! Our parts and upstream's in one management cluster.
//!
//! `cargo xtask sim-under-upstream`: upstream's Go core, bootstrap and control plane managers drive our simulated
//! machines on kube-apiserver. `cargo xtask core-over-capd`: our controllers on our server drive upstream's in-memory
//! provider.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::{ensure_no_warnings, simulated};
use crate::bed::cluster::{Cluster, examples};
use crate::bed::managers::{CAPD_OF_MACHINES, DRIVERS};
use crate::bed::ports::free_port;
use crate::bed::{Controllers, Managers, Server, Workdir, capstan};
use crate::text::Lap;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// Upstream's managers drive our provider.
pub async fn sim_under_upstream(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("sim-under-upstream")?;
    let mut lap = Lap::start();
    let mut server = Server::kube(&workdir.folder("server")?, Controllers::Plane).await?;
    let api = server.api()?;
    let folder = workdir.folder("managers")?;
    let mut managers = Managers::start_some(&folder, &server.kubeconfig, &DRIVERS).await?;
    let mut infrastructure = simulated(&folder, &binary, &server.kubeconfig).await?;
    lap.end("managers ready");
    let cluster = Cluster::prepare(&api, "mixed", examples(&["cni.yaml", "sim-cluster.yaml"])?).await?;
    let healthy = || server.check().and_then(|()| managers.check()).and_then(|()| infrastructure.check());
    lifecycle(&cluster, &mut lap, healthy).await?;
    ensure_no_warnings([infrastructure.logged_warnings()])?;
    workdir.passed();
    Ok(())
}

/// Creates a cluster, scales it up and deletes it.
async fn lifecycle(
    cluster: &Cluster<'_>,
    lap: &mut Lap,
    mut healthy: impl FnMut() -> Result<()>,
) -> Result<()> {
    cluster.create().await?;
    cluster.wait_available(1, 1, &mut healthy).await?;
    lap.end("1+1 available");
    cluster.scale(3, 2).await?;
    cluster.wait_available(3, 2, &mut healthy).await?;
    lap.end("scaled to 3+2");
    cluster.delete(&mut healthy).await?;
    lap.end("deleted, nothing left");
    Ok(())
}

/// Our controllers drive upstream's provider.
pub async fn core_over_capd(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("core-over-capd")?;
    let mut lap = Lap::start();
    // Upstream's in-memory provider panics on keys that are not RSA.
    let arguments = ["--controllers=core,bootstrap,control-plane,addons", "--key-algorithm=RSA-2048"];
    let mut server =
        Server::capstan_with(&workdir.folder("server")?, &binary, free_port()?, &arguments).await?;
    let api = server.api()?;
    let mut managers =
        Managers::start_some(&workdir.folder("managers")?, &server.kubeconfig, &[CAPD_OF_MACHINES]).await?;
    lap.end("server and provider ready");
    let cluster = Cluster::prepare(&api, "mixed", in_memory()?).await?;
    let healthy = || server.check().and_then(|()| managers.check());
    lifecycle(&cluster, &mut lap, healthy).await?;
    ensure_no_warnings([server.logged_warnings()])?;
    workdir.passed();
    Ok(())
}

/// Our example with upstream's in-memory kinds in place of the simulated ones. Their nodes are ready without a CNI.
pub fn in_memory() -> Result<Vec<Value>> {
    let mut manifests = examples(&["sim-cluster.yaml"])?;
    for object in &mut manifests {
        match object["kind"].as_str() {
            Some("SimCluster") => {
                object["apiVersion"] = "infrastructure.cluster.x-k8s.io/v1beta2".into();
                object["kind"] = "DevCluster".into();
                object["spec"] = json!({"backend": {"inMemory": {}}});
                // Upstream's provider panics on objects without annotations.
                object["metadata"]["annotations"] = json!({"example.org/cluster": "in-memory"});
            }
            Some("SimMachineTemplate") => {
                object["apiVersion"] = "infrastructure.cluster.x-k8s.io/v1beta2".into();
                object["kind"] = "DevMachineTemplate".into();
                object["spec"] = json!({"template": {"spec": {"backend": {"inMemory": {}}}}});
            }
            _ => rename(object),
        }
    }
    Ok(manifests)
}

/// Renames the kinds in references.
fn rename(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(kind) = fields.get_mut("kind") {
                let renamed = kind.as_str().map(|kind| kind.replace("Sim", "Dev"));
                *kind = renamed.into();
            }
            fields.values_mut().for_each(rename);
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        _ => {}
    }
}
