//! `clusterctl move` from CAPC to Capstan: clusters in an isolated network, in a VPC and in a shared network, all of them
//! beside machines and rules of an operator. No call changes anything in the cloud until a change is asked for, and after
//! the deletion the cloud has exactly what it had before, but for what CAPC leaves too.

mod operator;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use self::operator::{Inventory, Operator};
use super::capc_adopted::changes;
use super::capc_on_sim::manifest::{self, KEYS, TemplateValues, VERSION};
use crate::api::Api;
use crate::bed::cloudstack::CloudStack;
use crate::bed::cluster::Cluster;
use crate::bed::managers::ON_CLOUDSTACK;
use crate::bed::ports::free_port;
use crate::bed::tool::Tool;
use crate::bed::{Controllers, Managers, Server, Workdir, capstan};
use crate::peers::Cache;
use crate::text::Lap;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

/// CAPC looks up its account with a command that ordinary users may not call.
const ACCOUNT: &str = "admin";
/// Longer than the time between two comparisons of the cloud with the record.
const SETTLE: Duration = Duration::from_secs(90);

/// A cluster and the network of the operator that it uses.
struct Moved {
    name: &'static str,
    /// Of CAPC's published templates.
    template: &'static str,
    network: &'static str,
    /// Its endpoint, if no load balancer of the cloud has it.
    endpoint: Option<&'static str>,
}

const ISOLATED: Moved = Moved { name: "isolated", template: "", network: operator::OFFICE, endpoint: None };
/// Its tier is its own, the VPC is the operator's.
const TIERED: Moved =
    Moved { name: "tiered", template: "-with-existing-vpc-network", network: "tiered", endpoint: None };
const SHARED: Moved = Moved {
    name: "shared",
    template: "-with-kube-vip",
    network: operator::SHARED,
    endpoint: Some("127.77.0.11"),
};
const ALL: [Moved; 3] = [ISOLATED, TIERED, SHARED];

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let clusterctl = Cache::locate()?.built("clusterctl")?;
    let mut workdir = Workdir::new("capc-moved")?;
    let folder = workdir.folder("run")?;
    let mut lap = Lap::start();
    let mut cloud = CloudStack::start(&folder, &binary, VERSION, ACCOUNT).await?;
    cloud.share_network(&binary, operator::SHARED).await?;
    let operator = Operator::new(Tool::new(binary.clone(), folder.clone()), &cloud);
    operator.prepare().await?;
    let at_first = operator.inventory().await?;
    lap.end("the operator has networks, a VPC, machines and rules");

    let mut old = Server::kube(&folder.join("old"), Controllers::Plane).await?;
    let mut managers =
        Managers::start_some(&folder.join("managers"), &old.kubeconfig, &ON_CLOUDSTACK).await?;
    let old_api = old.api()?;
    credentials(&old_api, &cloud).await?;
    let mut manifests = Vec::new();
    let mut made = Vec::new();
    for moved in &ALL {
        manifests.push(moved.objects(&mut cloud).await?);
    }
    for (moved, objects) in ALL.iter().zip(&manifests) {
        let cluster = Cluster::prepare(&old_api, moved.name, objects.clone()).await?;
        cluster.create().await?;
        made.push(cluster);
    }
    for (moved, cluster) in ALL.iter().zip(&made) {
        cluster.install_cni(&folder.join(moved.name)).await?;
    }
    for cluster in &made {
        cluster.wait_available(1, 1, &mut || old.check().and_then(|()| managers.check())).await?;
    }
    operator.meddle(&cloud).await?;
    lap.end("CAPC's clusters are ready, and their rules changed by hand");

    let mut new = Server::capstan_with(&folder.join("new"), &binary, free_port()?, &[]).await?;
    let api = new.api()?;
    credentials(&api, &cloud).await?;
    let clusterctl = Tool::new(clusterctl, folder.clone());
    let to = new.kubeconfig.to_str().context("path")?;
    let before = operator.inventory().await?;
    for moved in &ALL {
        let arguments = ["move", "--namespace", moved.name, "--to-kubeconfig", to];
        clusterctl.run(&old.kubeconfig, &arguments).await?;
    }
    managers.check()?;
    drop(managers);
    let calls = changes(&cloud).await?;
    let mut clusters = Vec::new();
    for (moved, objects) in ALL.iter().zip(&manifests) {
        let cluster = Cluster::known(&api, moved.name, objects.clone()).await?;
        cluster.wait_available(1, 1, &mut || new.check()).await?;
        clusters.push(cluster);
    }
    tokio::time::sleep(SETTLE).await;
    operator.same(&before, "after the move").await?;
    let since = changes(&cloud).await?;
    ensure!(calls == since, "calls that change something after the move: from {calls:?} to {since:?}");
    lap.end("moved: no call that changes anything");

    for cluster in &clusters {
        cluster.scale(1, 2).await?;
    }
    for cluster in &clusters {
        cluster.wait_available(1, 2, &mut || new.check()).await?;
    }
    operator.rules_stay(&before).await?;
    lap.end("scaled, and the rules are as the operator left them");
    for cluster in &clusters {
        cluster.delete(&mut || new.check()).await?;
    }
    operator.same(&expected_at_last(at_first, before), "after the deletion").await?;
    lap.end("deleted: the cloud has what it had before the clusters");
    old.check()?;
    workdir.passed();
    Ok(())
}

/// What is left of the cloud at last: all that was there at first. CAPC also let everything out of the operator's network,
/// leaves that on deletion, and its rules look like those of the operator, so they stay here too.
fn expected_at_last(mut at_first: Inventory, mut moved: Inventory) -> Inventory {
    let exits = "listEgressFirewallRules";
    at_first.insert(exits, moved.remove(exits).unwrap_or_default());
    at_first
}

async fn credentials(api: &Api, cloud: &CloudStack) -> Result<()> {
    api.post("/api/v1/namespaces/default/secrets", &cloud.secret(KEYS)).await?.success()?;
    Ok(())
}

impl Moved {
    async fn objects(&self, cloud: &mut CloudStack) -> Result<Vec<Value>> {
        let address = match self.endpoint {
            Some(endpoint) => endpoint.parse()?,
            None => cloud.free_address().await?,
        };
        let values = TemplateValues { name: self.name, machines: (1, 1), address };
        let mut objects = manifest::published(self.template, &values, cloud)?;
        for object in &mut objects {
            with_port_of_kube_vip(object, cloud.endpoint_port);
            if object["kind"] != "CloudStackCluster" {
                continue;
            }
            let network = &mut object["spec"]["failureDomains"][0]["zone"]["network"];
            network["name"] = self.network.into();
            if !network["vpc"].is_null() {
                network["vpc"] = json!({"name": operator::VPC});
            }
        }
        Ok(objects)
    }
}

/// The template leaves kube-vip its default port. All API servers of the simulated cloud have one and the same.
fn with_port_of_kube_vip(object: &mut Value, port: u16) {
    let files = object.pointer_mut("/spec/kubeadmConfigSpec/files").and_then(Value::as_array_mut);
    for file in files.into_iter().flatten() {
        let Some(content) = file["content"].as_str() else { continue };
        let more = format!("env:\n    - {{name: port, value: \"{port}\"}}\n");
        file["content"] = content.replace("env:\n", &more).into();
    }
}
