//! `clusterctl describe cluster` with the flags that change what it asks for.

use anyhow::{Result, ensure};

use super::own::{Bed, NAME};
use crate::bed::Server;

/// Flags, and what each must bring to light.
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

pub(super) async fn run(bed: &Bed<'_>, plane: &Server) -> Result<()> {
    for (flags, expected) in VIEWS {
        let tree = bed.ctl(plane, &[&["describe", "cluster", NAME][..], *flags].concat()).await?;
        for what in *expected {
            // A kind and the beginning of a name, or the type of a condition.
            let (kind, name) = what.split_once('/').unwrap_or((what, ""));
            let shown = tree.lines().any(|line| {
                let mut words = line.split_whitespace().flat_map(|word| word.split('/'));
                line.contains(kind) && words.any(|word| word.starts_with(name))
            });
            ensure!(shown, "describe {} shows no {what}:\n{tree}", flags.join(" "));
        }
        // A cluster at rest has nothing to complain of, and says so in every line.
        let bad = tree.lines().find(|line| line.contains("False  Warning") || line.contains(" Unknown "));
        ensure!(
            bad.is_none(),
            "describe {} shows a bad line: {}\n{tree}",
            flags.join(" "),
            bad.unwrap_or_default()
        );
    }
    Ok(())
}
