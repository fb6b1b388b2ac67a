//! `clusterctl init --infrastructure cloudstack` from the files of a release, on kube-apiserver.
//!
//! There are no nodes: the manager of the installed Deployment is run as a process, with its arguments and as its
//! ServiceAccount. cert-manager is two empty definitions, which is how clusterctl finds that it need not install it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::api::Api;
use crate::bed::manager::Manager;
use crate::bed::managers::CORE;
use crate::bed::release::Packer;
use crate::bed::tool::Tool;
use crate::bed::{Controllers, Server, Workdir, wait};
use crate::peers::catalog::{CLUSTER_API, CLUSTER_API_MODULE};
use crate::peers::{Cache, module_dir};
use crate::text::Lap;

const NAMESPACE: &str = "capc-system";
const ACCOUNT: &str = "capstan-cloudstack";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

pub(super) async fn run(binary: &Path, packer: &Packer) -> Result<()> {
    let cache = Cache::locate()?;
    let mut workdir = Workdir::new("clusterctl-init")?;
    let mut lap = Lap::start();
    let mut server = Server::kube(&workdir.folder("server")?, Controllers::Plane).await?;
    let api = server.api()?;
    for (plural, kind) in [("issuers", "Issuer"), ("certificates", "Certificate")] {
        empty_definition(&api, plural, kind).await?;
    }
    lap.end("kube-apiserver ready");

    let config = repositories(&cache, &workdir, binary, packer).await?;
    let config = config.to_str().context("path")?;
    lap.end("release packed");

    let clusterctl = Tool::new(cache.built("clusterctl")?, workdir.folder("home")?);
    let core = format!("cluster-api:v{CLUSTER_API}");
    let provider = format!("cloudstack:{VERSION}");
    let arguments = [
        "init",
        "--config",
        config,
        "--core",
        &core,
        "--bootstrap",
        "-",
        "--control-plane",
        "-",
        "--infrastructure",
        &provider,
    ];
    clusterctl.run(&server.kubeconfig, &arguments).await?;
    let inventory = api
        .get(&format!(
            "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/namespaces/{NAMESPACE}/providers/infrastructure-cloudstack"
        ))
        .await?
        .success()?;
    ensure!(inventory["version"] == VERSION, "the inventory has another version: {inventory}");
    let plan = clusterctl.run(&server.kubeconfig, &["upgrade", "plan", "--config", config]).await?;
    ensure!(plan.contains("infrastructure-cloudstack"), "upgrade plan does not know it:\n{plan}");
    lap.end("installed, and in the inventory");

    flavours(&clusterctl, &server.kubeconfig, config).await?;
    lap.end("templates are generated, every flavour");

    let mut manager =
        Manager::installed(&server, &api, &workdir.folder("manager")?, binary, NAMESPACE, ACCOUNT).await?;
    let path = format!("{DEFINITIONS}/cloudstackclusters.infrastructure.cluster.x-k8s.io");
    wait::until("the manager keeps the definitions' conversion", Duration::from_secs(60), || async {
        let definition = api.get(&path).await?.success()?;
        Ok((definition["spec"]["conversion"]["strategy"] == "Webhook").then_some(()))
    })
    .await?;
    refuses_a_wrong_cluster(&api).await?;
    lap.end("its manager runs with the rights of its role and validates");
    manager.check()?;
    server.check()?;
    super::super::manager::ensure_no_warnings([manager.logged_warnings()])?;
    manager.stop()?;
    workdir.passed();
    Ok(())
}

/// Unpacks our repository as a user does, puts the core provider beside it, and writes the file that names both.
async fn repositories(
    cache: &Cache,
    workdir: &Workdir,
    binary: &Path,
    packer: &Packer,
) -> Result<std::path::PathBuf> {
    let (files, root) = (workdir.path().join("files"), workdir.folder("repositories")?);
    packer.pack(binary, &files).await?;
    let archive = files.join(format!("capstan-{}-clusterctl.tar.gz", env!("CARGO_PKG_VERSION")));
    let unpacked = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&root).status().await?;
    ensure!(unpacked.success(), "tar: {unpacked}");
    let core = root.join(format!("cluster-api/v{CLUSTER_API}"));
    std::fs::create_dir_all(&core)?;
    std::fs::write(core.join("core-components.yaml"), CORE.render(cache)?)?;
    let metadata = module_dir(CLUSTER_API_MODULE, &format!("v{CLUSTER_API}"))?.join("metadata.yaml");
    std::fs::copy(&metadata, core.join("metadata.yaml")).with_context(|| metadata.display().to_string())?;
    let url = |path: String| root.join(path).display().to_string();
    let config = json!({"providers": [
        {"name": "cluster-api", "type": "CoreProvider",
         "url": url(format!("cluster-api/v{CLUSTER_API}/core-components.yaml"))},
        {"name": "cloudstack", "type": "InfrastructureProvider",
         "url": url(format!("infrastructure-cloudstack/{VERSION}/infrastructure-components.yaml"))},
    ]});
    let path = workdir.path().join("clusterctl.yaml");
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

/// Renders each template of the repository.
async fn flavours(clusterctl: &Tool, kubeconfig: &Path, config: &str) -> Result<()> {
    for flavour in ["", "affinity", "autoscale", "disk-offering", "kube-vip", "project", "ssh"] {
        let provider = format!("cloudstack:{VERSION}");
        let list =
            ["generate", "cluster", "a", "--config", config, "--infrastructure", &provider, "--flavor"];
        let variables =
            clusterctl.run(kubeconfig, &[&list[..], &[flavour, "--list-variables"]].concat()).await?;
        ensure!(variables.contains("CLOUDSTACK_"), "flavour {flavour:?} has no variables:\n{variables}");
    }
    Ok(())
}

/// The webhook answers: a cluster that our rules refuse is not created.
async fn refuses_a_wrong_cluster(api: &Api) -> Result<()> {
    let path = "/apis/infrastructure.cluster.x-k8s.io/v1beta3/namespaces/default/cloudstackclusters";
    let domain = json!({"name": "a", "acsEndpoint": {"name": "a"}, "zone": {"network": {"name": "a"}}});
    let cluster = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "CloudStackCluster",
        "metadata": {"name": "wrong"},
        "spec": {"failureDomains": [domain], "controlPlaneEndpoint": {"host": "", "port": 6443}},
    });
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    wait::until("webhooks are registered", Duration::from_secs(60), || async {
        let all = api.get(webhooks).await?.success()?;
        let ours = |it: &Value| it["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(ACCOUNT));
        Ok(all["items"].as_array().is_some_and(|items| items.iter().any(ours)).then_some(()))
    })
    .await?;
    let reply = api.post(path, &cluster).await?;
    let text = reply.json()?.to_string();
    let refused = !reply.status.is_success() && text.contains("Name and Namespace are required");
    ensure!(refused, "credentials without a namespace are accepted: {text}");
    Ok(())
}

async fn empty_definition(api: &Api, plural: &str, kind: &str) -> Result<()> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.cert-manager.io")},
        "spec": {
            "group": "cert-manager.io", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    api.post(DEFINITIONS, &definition).await?.success()?;
    let path = format!("{DEFINITIONS}/{plural}.cert-manager.io");
    wait::until("cert-manager's kinds are served", Duration::from_secs(30), || async {
        let conditions = api.get(&path).await?.success()?["status"]["conditions"].take();
        let established = |it: &Value| it["type"] == "Established" && it["status"] == "True";
        Ok(conditions.as_array().is_some_and(|all| all.iter().any(established)).then_some(()))
    })
    .await
}
