//! `clusterctl describe cluster` with the flags that change what it asks for.

use anyhow::{Context, Result, ensure};

use super::own::{Bed, NAME, NAMESPACE};
use crate::bed::Server;

/// Flags, and what the output must contain with each.
const VIEWS: &[(&[&str], &[&str])] = &[
    (
        &[],
        &[
            "Cluster/quick",
            "SimCluster/quick",
            "KubeadmControlPlane/quick",
            "MachineDeployment/quick-workers",
        ],
    ),
    (
        &["--show-conditions=all"],
        &[
            "InfrastructureReady",
            "ControlPlaneAvailable",
            "RemoteConnectionProbe",
            "EtcdClusterHealthy",
            "NodeHealthy",
        ],
    ),
    (&["--grouping=false", "--echo"], &["SimMachine/quick", "KubeadmConfig/quick", "Machine/quick-workers"]),
    (&["--show-machinesets"], &["MachineSet/quick-workers"]),
    (&["--show-templates"], &["SimMachineTemplate/quick", "KubeadmConfigTemplate/quick-workers"]),
    (&["--show-resourcesets"], &["ClusterResourceSet/cni"]),
];

/// A MachinePool without a controller.
const POOL: &str = "
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: kept}
spec:
  clusterName: quick
  replicas: 2
  template:
    spec:
      clusterName: quick
      version: 1.36.0
      bootstrap: {dataSecretName: none}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: SimMachinePool, name: none}
";

/// Kinds that had a `Ready` condition in v1beta1.
const OLD: [&str; 5] = [
    "clusters.v1beta1.cluster.x-k8s.io",
    "machinedeployments.v1beta1.cluster.x-k8s.io",
    "machinesets.v1beta1.cluster.x-k8s.io",
    "machines.v1beta1.cluster.x-k8s.io",
    "kubeadmcontrolplanes.v1beta1.controlplane.cluster.x-k8s.io",
];

pub(super) async fn run(bed: &Bed<'_>, plane: &Server) -> Result<()> {
    views(bed, plane).await?;
    let kubectl = async |arguments: &[&str]| {
        bed.kubectl.run(&plane.kubeconfig, &[arguments, &["--namespace", NAMESPACE]].concat()).await
    };
    for kind in OLD {
        kubectl(&["wait", kind, "--all", "--for=condition=Ready", "--timeout=30s"]).await?;
    }
    let manifest = bed.workdir.path().join("pool.yaml");
    std::fs::write(&manifest, POOL)?;
    let manifest = manifest.to_str().context("path")?;
    kubectl(&["apply", "-f", manifest]).await?;
    let tree = bed.ctl(plane, &["describe", "cluster", NAME]).await?;
    ensure!(tree.contains("MachinePool"), "describe shows no MachinePool:\n{tree}");
    views(bed, plane).await?;
    kubectl(&["delete", "-f", manifest]).await?;
    Ok(())
}

async fn views(bed: &Bed<'_>, plane: &Server) -> Result<()> {
    for (flags, expected) in VIEWS {
        let tree = bed.ctl(plane, &[&["describe", "cluster", NAME][..], *flags].concat()).await?;
        for what in *expected {
            // A kind and the prefix of a name, or the type of a condition.
            let (kind, name) = what.split_once('/').unwrap_or((what, ""));
            let shown = tree.lines().any(|line| {
                let mut words = line.split_whitespace().flat_map(|word| word.split('/'));
                line.contains(kind) && words.any(|word| word.starts_with(name))
            });
            ensure!(shown, "describe {} shows no {what}:\n{tree}", flags.join(" "));
        }
        // A healthy cluster has no warning in any line.
        let bad = tree.lines().find(|line| line.contains("False  Warning") || line.contains(" Unknown "));
        ensure!(
            bad.is_none(),
            "describe {} shows a warning: {}\n{tree}",
            flags.join(" "),
            bad.unwrap_or_default()
        );
    }
    Ok(())
}
