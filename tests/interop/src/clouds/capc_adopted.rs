//! `capstan adopt`: a cluster of CAPC and upstream's managers on a simulated CloudStack is taken over by Capstan. No call
//! changes anything in the cloud until a change is asked for. Then it is scaled, upgraded and deleted without a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::capc_on_sim::manifest::{self, KEYS, TemplateValues, VERSION};
use crate::api::{Api, content};
use crate::bed::cloudstack::CloudStack;
use crate::bed::cluster::Cluster;
use crate::bed::managers::ON_CLOUDSTACK;
use crate::bed::ports::free_port;
use crate::bed::tool::Tool;
use crate::bed::{Controllers, Managers, Server, Workdir, capstan};
use crate::discovery::Discovery;
use crate::text::Lap;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// CAPC looks up its account with a command that ordinary users may not call.
const ACCOUNT: &str = "admin";
/// Name and namespace of the cluster.
const NAME: &str = "adopted";
/// The version that it is upgraded to.
const NEXT: &str = "v1.36.1";
/// Whom the operator lets in, in place of everybody.
const OFFICE: &str = "127.0.0.0/8";
/// For controllers to finish what they are doing.
const SETTLE: Duration = Duration::from_secs(15);

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("capc-adopted")?;
    let folder = workdir.folder("run")?;
    let mut lap = Lap::start();
    let mut cloud = CloudStack::start(&folder, &binary, &format!("{VERSION},{NEXT}"), ACCOUNT).await?;

    let mut old = Server::kube(&folder.join("old"), Controllers::Plane).await?;
    let mut managers =
        Managers::start_some(&folder.join("managers"), &old.kubeconfig, &ON_CLOUDSTACK).await?;
    let old_api = old.api()?;
    old_api.post("/api/v1/namespaces/default/secrets", &cloud.secret(KEYS)).await?.success()?;
    let values = TemplateValues { name: NAME, machines: (1, 1), address: cloud.free_address().await? };
    let manifests = manifest::published("", &values, &cloud)?;
    let made = Cluster::prepare(&old_api, NAME, manifests.clone()).await?;
    made.create().await?;
    made.install_cni(&folder.join("workload.kubeconfig")).await?;
    made.wait_available(1, 1, &mut || old.check().and_then(|()| managers.check())).await?;
    cloud.narrow_firewall(cloud.endpoint_port, OFFICE).await?;
    lap.end("CAPC's cluster is ready, and its firewall rule narrowed by hand");

    let mut new = Server::capstan_with(&folder.join("new"), &binary, free_port()?, &[]).await?;
    let tool = Tool::new(binary, folder.clone());
    adopted(&tool, &mut cloud, &old, &old_api, &new).await?;
    managers.check()?;
    drop(managers);
    lap.end("taken over: no call that changes anything");

    let api = new.api()?;
    let cluster = Cluster::known(&api, NAME, manifests.clone()).await?;
    let before = (changes(&cloud).await?, resources(&cloud).await?);
    cluster.wait_available(1, 1, &mut || new.check()).await?;
    tokio::time::sleep(SETTLE).await;
    ensure!(
        before == (changes(&cloud).await?, resources(&cloud).await?),
        "something changed after the take-over"
    );

    cluster.scale(1, 2).await?;
    cluster.wait_available(1, 2, &mut || new.check()).await?;
    lap.end("scaled");
    upgrade(&cluster, &api, &manifests).await?;
    let workload = cluster.workload(&folder.join("workload.kubeconfig")).await?;
    cluster.wait_nodes(&workload, 3, NEXT).await?;
    cluster.wait_available(1, 2, &mut || new.check()).await?;
    lap.end("upgraded");
    let deleted = ["delete", NAME, "-n", NAME, "--yes", "--wait", "--timeout", "10m"];
    tool.run(&new.kubeconfig, &deleted).await?;
    let left = cloud.leaks().await?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    lap.end("deleted, nothing is left");
    old.check()?;
    workdir.passed();
    Ok(())
}

/// Imports, refuses, rolls back, imports again and unlocks.
async fn adopted(
    tool: &Tool,
    cloud: &mut CloudStack,
    old: &Server,
    old_api: &Api,
    new: &Server,
) -> Result<()> {
    let from = old.kubeconfig.to_str().context("path")?;
    let before = (changes(cloud).await?, resources(cloud).await?);
    let import = ["adopt", "--from-kubeconfig", from, "-n", NAME];
    let unlock = ["adopt", "--unlock", NAME, "--from-kubeconfig", from, "-n", NAME];
    let printed = tool.run(&new.kubeconfig, &import).await?;
    ensure!(printed.contains("\nno changes\n"), "{printed}");
    let refused = tool.refused(&new.kubeconfig, &unlock).await?;
    ensure!(refused.contains("which still reconciles it: run `kubectl"), "{refused}");
    tool.run(&new.kubeconfig, &["adopt", "--rollback", NAME, "-n", NAME]).await?;

    let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAME}/clusters/{NAME}");
    let paused = json!({"spec": {"paused": true}});
    old_api.patch(&path, content::MERGE_PATCH, &paused).await?.success()?;
    let printed = tool.run(&new.kubeconfig, &import).await?;
    ensure!(printed.contains("\nno changes\n"), "{printed}");
    let printed = tool.run(&new.kubeconfig, &unlock).await?;
    ensure!(printed.starts_with("no changes\n"), "{printed}");
    let after = (changes(cloud).await?, resources(cloud).await?);
    ensure!(before == after, "the cloud changed from {before:?} to {after:?}");
    Ok(())
}

/// Numbers of commands so far that change something.
pub(super) async fn changes(cloud: &CloudStack) -> Result<BTreeMap<String, u64>> {
    let reads = |name: &str| ["list", "get", "query", "find"].iter().any(|verb| name.starts_with(verb));
    Ok(cloud.calls().await?.into_iter().filter(|(name, _)| !reads(name)).collect())
}

async fn resources(cloud: &CloudStack) -> Result<BTreeSet<String>> {
    Ok(cloud.leaks().await?.iter().map(Value::to_string).collect())
}

/// Creates templates for the next version and changes the cluster to them.
async fn upgrade(cluster: &Cluster<'_>, api: &Api, manifests: &[Value]) -> Result<()> {
    let discovery = Discovery::read(api).await?;
    let next = |name: &str| format!("{name}-next");
    let mut names = BTreeMap::new();
    for object in manifests.iter().filter(|object| object["kind"] == "CloudStackMachineTemplate") {
        let mut template = object.clone();
        let name = object["metadata"]["name"].as_str().context("a template without a name")?;
        template["metadata"]["name"] = next(name).into();
        template["spec"]["template"]["spec"]["template"]["name"] = format!("ubuntu-2404-kube-{NEXT}").into();
        discovery.create(api, &template, Some(NAME)).await?;
        names.insert(name.to_owned(), next(name));
    }
    let of = |kind: &str, field: &str| -> Result<String> {
        let object = manifests.iter().find(|object| object["kind"] == kind).context("no such kind")?;
        let name = object.pointer(field).and_then(Value::as_str).context("no reference")?;
        names.get(name).cloned().context("no template of that name")
    };
    let control_plane = of("KubeadmControlPlane", "/spec/machineTemplate/infrastructureRef/name")?;
    let workers = of("MachineDeployment", "/spec/template/spec/infrastructureRef/name")?;
    let control_plane = json!({"spec": {"version": NEXT, "machineTemplate": {"spec":
        {"infrastructureRef": {"name": control_plane}}}}});
    let workers =
        json!({"spec": {"template": {"spec": {"version": NEXT, "infrastructureRef": {"name": workers}}}}});
    cluster.change(control_plane, workers).await
}
