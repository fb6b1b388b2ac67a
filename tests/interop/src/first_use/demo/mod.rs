//! `cargo xtask demo`: the first five minutes of a user on a terminal: `capstan demo`, interrupted, killed and
//! continued, its cluster used with kubectl, broken on purpose and explained.

mod broken;
mod plane;
mod screen;
mod terminal;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::process::Signal;

use crate::bed::cluster::example;
use crate::bed::ports::free_port;
use crate::bed::process::Process;
use crate::bed::tool::Tool;
use crate::bed::{Server, Workdir, capstan, wait};
use crate::peers::Cache;
use crate::text::Lap;
pub use plane::{Demo, wait_for_output};
pub use screen::{Cell, Screen};

/// Width of the terminal.
const COLUMNS: usize = 100;

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("demo")?;
    let kubectl = Tool::new(Cache::locate()?.built("kubectl")?, workdir.folder("home")?);
    let mut demo = Demo::new(&workdir.folder("demo")?, &binary)?;
    let mut lap = Lap::start();

    interrupted_and_killed(&mut demo).await?;
    lap.end("drawn live, interrupted, killed, continued to 3+3");

    let mut plane = demo.headless()?;
    wait_for_output(&mut plane, "cluster demo is ready").await?;
    used(&mut demo, &kubectl).await?;
    refused(&demo, &workdir)?;
    lap.end("used with kubectl; startup errors explained");

    let manifest = workdir.path().join("second.yaml");
    std::fs::write(&manifest, sample("second", demo.endpoint_port)?)?;
    up_interrupted(&mut demo, manifest.to_str().context("path")?).await?;
    lap.end("up: interrupted, killed, continued");

    broken::explained(&demo, &kubectl, &workdir).await?;
    lap.end("five broken clusters explained");

    deleted(&mut demo, plane).await?;
    lap.end("deleted, with the plane killed on the way");

    lost(&demo, &binary, &workdir).await?;
    lap.end("orphans of a lost plane are found and removed");
    workdir.passed();
    Ok(())
}

/// The demo manifest for a cluster of another name with one control plane machine and one worker.
fn sample(name: &str, endpoint_port: u16) -> Result<String> {
    let text = std::fs::read_to_string(example("demo.yaml"))?;
    let named = regex::Regex::new(r"\bdemo\b")?.replace_all(&text, name).into_owned();
    Ok(named.replace("port: 16443", &format!("port: {endpoint_port}")).replace("replicas: 3", "replicas: 1"))
}

/// Brings the cluster to 3+3 in several runs: some are killed right after their start, one ends by Ctrl-C, one is
/// killed half way, and the last completes.
async fn interrupted_and_killed(demo: &mut Demo) -> Result<()> {
    demo.killed_on_the_way(&demo.headless_arguments()?, 4).await?;
    let mut first = demo.on_a_terminal(COLUMNS)?;
    let seen = first.shows("▸ ControlPlaneInit").await?;
    for expected in ["management cluster: https://", "├─ KubeadmControlPlane/demo", "✓ Network", "░"]
    {
        ensure!(seen.contains(expected), "{expected:?} is not on the terminal:\n{seen}");
    }
    ensure!(seen.matches("\nCluster/demo ").count() == 1, "the tree is not drawn in place:\n{seen}");
    ensure!(first.written()?.contains("\u{1b}[32m"), "a terminal has no colours");
    ensure!(first.interrupt().await? == 0, "Ctrl-C must not be a failure:\n{}", first.screen()?.text());
    let seen = first.screen()?.text();
    ensure!(
        seen.contains("keep running") && seen.contains("continues"),
        "it does not report what keeps running:\n{seen}"
    );

    let mut second = demo.headless()?;
    let output = wait_for_output(&mut second, "Create ControlPlane: started 1/3").await?;
    ensure!(!output.contains('\u{1b}'), "colours without a terminal:\n{output}");
    second.kill()?;

    let mut third = demo.on_a_terminal(COLUMNS)?;
    let seen = third.shows("cluster demo is ready").await?;
    for expected in ["kubectl --kubeconfig", "capstan upgrade demo", "stop: Ctrl-C"] {
        ensure!(seen.contains(expected), "{expected:?} is not on the terminal:\n{seen}");
    }
    let (recorded, there) = (demo.recorded("demo")?, demo.machines().await?);
    ensure!(
        (recorded.len(), there.len()) == (6, 6),
        "expected 3+3 machines in the API and the cloud: {recorded:?}, {there:?}"
    );
    third.kill().await
}

/// A second run continues with the same cluster, and kubectl uses it.
async fn used(demo: &mut Demo, kubectl: &Tool) -> Result<()> {
    let nodes = kubectl.run(&demo.data.join("demo.kubeconfig"), &["get", "nodes", "--no-headers"]).await?;
    let ready = nodes.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count();
    ensure!((nodes.lines().count(), ready) == (6, 6), "six nodes should be ready:\n{nodes}");
    let clusters = kubectl.run(&demo.data.join("admin.kubeconfig"), &["get", "clusters"]).await?;
    ensure!(clusters.contains("demo"), "{clusters}");
    let tree = demo.succeed(&["describe", "demo"])?;
    ensure!(
        tree.lines().count() < 8 && tree.contains("KubeadmControlPlane/demo") && tree.contains("3/3"),
        "healthy parts are not collapsed:\n{tree}"
    );
    for (coloured, mut terminal) in [
        (true, demo.command_on_a_terminal(&["describe", "demo"])?),
        (false, demo.command_without_colours(&["describe", "demo"])?),
    ] {
        ensure!(terminal.end().await? == 0, "describe fails:\n{}", terminal.screen()?.text());
        let written = terminal.written()?;
        ensure!(written.contains("\u{1b}[") == coloured, "colours should be there: {coloured}\n{written}");
    }
    let why = demo.succeed(&["why", "demo"])?;
    ensure!(why.contains("is ready"), "{why}");
    let differences = demo.run(&["orphans"])?;
    ensure!(differences.code == 0, "records and cloud differ:\n{}{}", differences.out, differences.err);
    Ok(())
}

/// Commands that cannot start report what to change.
fn refused(demo: &Demo, workdir: &Workdir) -> Result<()> {
    let (own, other) = (demo.data.to_str().context("path")?.to_owned(), workdir.path().join("other"));
    let foreign = workdir.folder("foreign")?;
    std::fs::write(foreign.join("letter"), "mine")?;
    let (other, foreign) = (other.to_str().context("path")?, foreign.to_str().context("path")?);
    let free = free_port()?.to_string();
    let busy = format!("127.0.0.1:{}", demo.port);
    let taken = demo.endpoint_port.to_string();
    for (arguments, expected) in [
        (
            ["--data-dir", &own, "--listen", "127.0.0.1:0", "--endpoint-port", &taken],
            "in use by another process",
        ),
        (["--data-dir", other, "--listen", &busy, "--endpoint-port", &free], "--listen"),
        (["--data-dir", other, "--listen", "127.0.0.1:0", "--endpoint-port", &taken], "port"),
        (["--data-dir", foreign, "--listen", "127.0.0.1:0", "--endpoint-port", &free], "--data-dir"),
    ] {
        let output = demo.capstan(&[&["demo", "--headless", "--once"], &arguments[..]].concat())?;
        ensure!(
            output.code == 1 && output.err.contains(expected),
            "{arguments:?} ended with {} and without {expected:?}:\n{}",
            output.code,
            output.err
        );
    }
    let kept: Vec<_> = std::fs::read_dir(foreign)?.flatten().map(|entry| entry.file_name()).collect();
    ensure!(kept == ["letter"], "a file was written to a foreign directory: {kept:?}");
    Ok(())
}

/// `capstan up` that is interrupted, killed and run again creates one cluster.
async fn up_interrupted(demo: &mut Demo, manifest: &str) -> Result<()> {
    let before = demo.machines().await?;
    demo.killed_on_the_way(&demo.about(&["up", "-f", manifest])?, 4).await?;
    let mut first = demo.command_on_a_terminal(&["up", "-f", manifest])?;
    // The plan has no progress bar. If it ends there, nothing was applied.
    first.shows("Create █").await?;
    let code = first.interrupt().await?;
    let seen = first.screen()?.text();
    ensure!(code == 1 && seen.contains("capstan wait second"), "Ctrl-C ended up with {code}:\n{seen}");

    let late = demo.run(&["up", "-f", manifest, "--lines", "--timeout", "1s"])?;
    ensure!(late.code == 3 && late.err.contains("capstan why second"), "{}: {}", late.code, late.err);

    let mut second = demo.command_on_a_terminal(&["up", "-f", manifest])?;
    // On a slow machine the cluster may be ready by now, and the program about to exit.
    second.shows("Cluster/second").await?;
    second.kill().await?;
    let output = demo.succeed(&["up", "-f", manifest, "--lines"])?;
    ensure!(output.contains("cluster second is ready"), "{output}");
    let (recorded, there) = (demo.recorded("second")?, demo.machines().await?);
    ensure!(
        recorded.len() == 2 && there.len() == before.len() + 2 && there.is_superset(&before),
        "expected 1+1 new machines: {recorded:?}; before {before:?}, now {there:?}"
    );
    Ok(())
}

/// Deletes the cluster while processes are killed. Other clusters are not affected.
async fn deleted(demo: &mut Demo, mut plane: Process) -> Result<()> {
    demo.killed_on_the_way(&demo.about(&["delete", "demo", "--wait", "--yes"])?, 2).await?;
    let mut command = demo.command_on_a_terminal(&["delete", "demo", "--wait", "--yes"])?;
    // Each of the killed commands may have reached the server.
    command.shows_one_of(&["cluster demo is being deleted", "cluster demo is already being deleted"]).await?;
    command.interrupt().await?;
    let mut command = demo.command_on_a_terminal(&["delete", "demo", "--wait", "--yes"])?;
    command.shows_one_of(&["cluster demo is already being deleted", "no cluster named demo"]).await?;
    command.kill().await?;
    plane.kill()?;
    let mut plane = demo.headless()?;
    wait_for_output(&mut plane, "management cluster").await?;
    // The cluster may be gone already.
    let again = demo.run(&["delete", "demo", "--yes", "--wait", "--timeout", "3m"])?;
    ensure!(
        again.code == 0 || again.err.contains("no cluster named demo"),
        "delete ended with {}: {}",
        again.code,
        again.err
    );
    let (recorded, there) = (demo.recorded("second")?, demo.machines().await?);
    ensure!(
        (recorded.len(), there.len()) == (2, 2),
        "the other cluster is affected: {recorded:?}, {there:?}"
    );
    plane.signal(Signal::INT)?;
    plane.wait(Duration::from_secs(20)).await?;
    ensure!(plane.status().is_some_and(|status| status.success()), "it does not exit with success");
    Ok(())
}

/// A plane is lost without a backup while it has a cluster on the cloud. Another plane in the same account finds its
/// orphans and deletes them, and nothing of its own.
async fn lost(demo: &Demo, binary: &Path, workdir: &Workdir) -> Result<()> {
    let mut server = Server::capstan_with(&workdir.folder("server")?, binary, free_port()?, &[]).await?;
    let there = server.kubeconfig.to_str().context("path")?.to_owned();
    let run = |arguments: &[&str]| demo.capstan(&[arguments, &["--kubeconfig", &there]].concat());
    let files = [
        ("secret.json", demo.keys()?),
        ("cni.yaml", std::fs::read_to_string(example("cni.yaml"))?),
        ("other.yaml", sample("other", demo.endpoint_port)?),
    ];
    for (name, text) in files {
        let file = workdir.path().join(name);
        std::fs::write(&file, text)?;
        let output = run(&["up", "-f", file.to_str().context("path")?, "--lines", "--timeout", "3m"])?;
        ensure!(output.code == 0, "up ended with {}: {}", output.code, output.err);
    }
    let own = demo.machines().await?;
    ensure!(own.len() == 4, "two of each plane: {own:?}");
    for (arguments, code, expected) in [
        (&["orphans"][..], 2, "VirtualMachine/second-"),
        (&["orphans", "--delete", "--dry-run"], 2, "2 virtual machines and 1 network would be deleted"),
        (&["orphans", "--delete"], 1, "use --yes"),
        (&["orphans", "--delete", "--yes"], 0, "2 virtual machines and 1 network deleted"),
        (&["orphans", "--delete", "--yes"], 0, "nothing to delete"),
    ] {
        let output = run(arguments)?;
        ensure!(
            output.code == code && [&output.out, &output.err].iter().any(|text| text.contains(expected)),
            "{arguments:?} ended with {} and without {expected:?}:\n{}{}",
            output.code,
            output.out,
            output.err
        );
    }
    let output = run(&["why", "other"])?;
    ensure!(output.out.contains("is ready"), "its own cluster is affected:\n{}", output.out);
    let output = run(&["delete", "other", "--wait", "--timeout", "3m"])?;
    ensure!(output.code == 0, "delete ended with {}: {}", output.code, output.err);
    wait::until("nothing is left in the cloud", Duration::from_secs(60), || async {
        let left = demo.resources().await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(Some(()))
    })
    .await?;
    server.stop()
}
