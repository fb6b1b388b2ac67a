//! `clusterctl move`: from plane to plane, and through a directory. No machine may be replaced.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::identity::Identity;
use super::own::{Bed, NAME, NAMESPACE};
use crate::bed::Server;
use crate::bed::cluster::{Cluster, examples};
use crate::text::Lap;

pub(super) async fn run(bed: &Bed<'_>, mut first: Server, workload: &Path, lap: &mut Lap) -> Result<()> {
    let manifests = examples(&["cni.yaml", "sim-cluster.yaml"])?;
    let before = Identity::of(bed, &first.api()?, workload).await?;
    ensure!(before.machines.len() == 2 && before.nodes.len() == 2, "expected two machines: {before:?}");

    let mut second = bed.plane("second").await?;
    let to = second.kubeconfig.to_str().context("path")?;
    bed.ctl(&first, &["move", "--to-kubeconfig", to, "--dry-run"]).await?;
    bed.ctl(&first, &["move", "--to-kubeconfig", to]).await?;
    let left =
        bed.kubectl.run(&first.kubeconfig, &["get", "cluster-api", "-n", NAMESPACE, "-o", "name"]).await?;
    ensure!(left.trim().is_empty(), "move left behind:\n{left}");
    let api = second.api()?;
    let cluster = Cluster::known(&api, NAMESPACE, manifests.clone()).await?;
    cluster.wait_available(1, 1, &mut || first.check().and_then(|()| second.check())).await?;
    unchanged(bed, &second, workload, &before).await?;
    first.stop()?;
    lap.end("moved to a second plane, the same machines");

    let folder = bed.workdir.folder("directory")?;
    let folder = folder.to_str().context("path")?;
    bed.ctl(&second, &["move", "--to-directory", folder]).await?;
    second.stop()?;
    let mut third = bed.plane("third").await?;
    let to = third.kubeconfig.to_str().context("path")?;
    let arguments = ["move", "--from-directory", folder, "--to-kubeconfig", to, "--namespace", NAMESPACE];
    bed.clusterctl.plain(&arguments).await?;
    let api = third.api()?;
    let cluster = Cluster::known(&api, NAMESPACE, manifests).await?;
    cluster.wait_available(1, 1, &mut || third.check()).await?;
    unchanged(bed, &third, workload, &before).await?;
    lap.end("through a directory to a third plane, the same machines");

    // The new plane really manages the cluster: it scales it up and deletes it completely.
    cluster.scale(1, 2).await?;
    cluster.wait_available(1, 2, &mut || third.check()).await?;
    let grown = Identity::of(bed, &api, workload).await?;
    ensure!(grown.has_all_of(&before) && grown.instances.len() == 3, "from {before:?} to {grown:?}");
    let delete = ["delete", "cluster", NAME, "-n", NAMESPACE, "--timeout=120s"];
    bed.kubectl.run(&third.kubeconfig, &delete).await?;
    let left = bed.site.machines().await?;
    ensure!(left.is_empty(), "machines are left after deletion: {left:?}");
    lap.end("scaled up and deleted there");
    third.stop()
}

async fn unchanged(bed: &Bed<'_>, plane: &Server, workload: &Path, before: &Identity) -> Result<()> {
    let now = Identity::of(bed, &plane.api()?, workload).await?;
    ensure!(now == *before, "machines were replaced: from {before:?} to {now:?}");
    Ok(())
}
