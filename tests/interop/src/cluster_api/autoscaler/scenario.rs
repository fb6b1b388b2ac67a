//! What happens to one node group.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use super::groups::{Group, Member};
use super::pods::Workload;
use super::until;

/// Pods of which each needs a Node for itself.
#[derive(Debug)]
pub struct Load<'a> {
    pub name: &'a str,
    /// Nodes with this label, or any.
    pub pool: Option<&'a str>,
    pub cpu: &'a str,
    pub pods: usize,
}

/// Pods come, and machines for them; the Pods go, and the machines too.
pub async fn grow_and_shrink(
    group: &Group<'_>,
    workload: &Workload,
    load: &Load<'_>,
    min: i64,
    healthy: &mut impl FnMut() -> Result<()>,
) -> Result<()> {
    grow(group, workload, load, min, healthy).await?;
    shrink(group, workload, load, min, healthy).await
}

/// From the least number of machines to one for each Pod.
pub async fn grow(
    group: &Group<'_>,
    workload: &Workload,
    load: &Load<'_>,
    min: i64,
    healthy: &mut impl FnMut() -> Result<()>,
) -> Result<()> {
    group.wait_size(min, healthy).await.context("at first")?;
    let capacity = group.capacity().await?;
    for resource in ["cpu", "memory"] {
        ensure!(
            capacity.contains_key(resource),
            "no {resource} in the capacity of {}: {capacity:?}",
            group.name
        );
    }
    workload.create(load).await?;
    let placed = workload.wait_running(load, healthy).await?;
    let nodes: BTreeSet<&String> = placed.values().collect();
    ensure!(nodes.len() == load.pods, "Pods share Nodes: {placed:?}");
    group.wait_size(i64::try_from(load.pods)?, healthy).await.context("grown")?;
    until(&format!("the Pods run on machines of {}: {placed:?}", group.name), healthy, async || {
        let members = group.machines().await?;
        let own: BTreeSet<&String> = members.iter().map(|member| &member.node).collect();
        Ok((own == nodes).then_some(()))
    })
    .await
}

/// To one machine, which is the newest and the first that the MachineSet would delete by itself. Then to the least number.
pub async fn shrink(
    group: &Group<'_>,
    workload: &Workload,
    load: &Load<'_>,
    min: i64,
    healthy: &mut impl FnMut() -> Result<()>,
) -> Result<()> {
    let placed = workload.wait_running(load, healthy).await?;
    let choices = group.watch_choices().await?;
    let members = group.machines().await?;
    let kept = members.last().context("no machines")?.clone();
    let mut last = None;
    for (pod, node) in &placed {
        if *node == kept.node {
            last = Some(pod);
        } else {
            workload.delete(pod, healthy).await?;
        }
    }
    let last = last.with_context(|| format!("no Pod runs on {}", kept.node))?;
    group.wait_size(1, healthy).await.context("two Pods less")?;
    let left = group.machines().await?;
    ensure!(left.iter().all(|member| member.name == kept.name), "{left:?} is left, not {}", kept.name);
    let mut gone: Vec<&Member> = members.iter().filter(|member| member.name != kept.name).collect();
    workload.delete(last, healthy).await?;
    if min == 0 {
        group.wait_size(0, healthy).await.context("no Pod is left")?;
        gone.push(&kept);
    }
    let chosen = choices.names()?;
    let unasked: Vec<&str> =
        gone.iter().map(|member| member.name.as_str()).filter(|name| !chosen.contains(*name)).collect();
    ensure!(unasked.is_empty(), "{unasked:?} went without being chosen; {chosen:?} were");
    let nodes = workload.nodes().await?;
    let stay: Vec<&str> = gone
        .iter()
        .map(|member| member.node.as_str())
        .filter(|node| nodes.iter().any(|it| it == node))
        .collect();
    ensure!(stay.is_empty(), "Nodes without a machine: {stay:?}");
    Ok(())
}
