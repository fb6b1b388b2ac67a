//! `cargo xtask peers`: builds the real programs that suites compare with, from pinned Go modules.
//!
//! No binary is downloaded. Go's checksum database verifies the sources.

pub mod cache;
pub mod catalog;
pub mod debian;
mod go;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use cache::Cache;
use catalog::{Family, Peer};
pub use go::module_dir;

use crate::text::{human_bytes, human_duration};

/// Builds the named peers, or all if no name is given. Skips those that are built.
pub fn build(only: &[String]) -> Result<()> {
    let chosen = catalog::select(only)?;
    let cache = Cache::locate()?;
    println!("peers: {}", cache.root()?.display());
    let _lock = lock(cache.root()?)?;
    go::check_version(&cache)?;
    let started = Instant::now();
    let mut missing: BTreeMap<Family, Vec<Peer>> = BTreeMap::new();
    for peer in &chosen {
        if !is_current(&cache, peer)? {
            missing.entry(peer.family).or_default().push(*peer);
        }
    }
    let built: usize = missing.values().map(Vec::len).sum();
    for (family, peers) in missing {
        let names: Vec<_> = peers.iter().map(|peer| peer.name).collect();
        println!("peers: building {} …", names.join(", "));
        let since = Instant::now();
        go::prepare(&cache, family)?;
        go::build(&cache, family, &peers)?;
        let mut size = 0;
        for peer in &peers {
            std::fs::write(stamp_path(&cache, peer)?, stamp(peer))?;
            size += std::fs::metadata(cache.program(peer))?.len();
        }
        println!("peers: built in {}, {}", human_duration(since.elapsed()), human_bytes(size));
    }
    println!("peers: {} ready, {built} built in {}", chosen.len(), human_duration(started.elapsed()));
    Ok(())
}

/// Builds a small Go program of ours that uses pinned modules, unless it is built.
pub fn small_program(name: &str, go_mod: &str, source: &str) -> Result<std::path::PathBuf> {
    let cache = Cache::locate()?;
    // Not the lock of the peers, which can be held for an hour.
    let _lock = lock(&cache.folder(&format!("src/{name}"))?)?;
    go::check_version(&cache)?;
    go::small_program(&cache, name, go_mod, source)
}

/// Sends questions to a small program, one JSON value per line, and reads one answer for each.
pub fn ask<A: DeserializeOwned>(program: &Path, questions: &[impl Serialize]) -> Result<Vec<A>> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start the peer")?;
    let mut input = child.stdin.take().context("the peer has no input")?;
    let mut text = Vec::new();
    for question in questions {
        serde_json::to_writer(&mut text, question)?;
        text.push(b'\n');
    }
    let writing = std::thread::spawn(move || input.write_all(&text));
    let output = child.wait_with_output()?;
    writing.join().map_err(|_| anyhow::anyhow!("writing panicked"))??;
    ensure!(output.status.success(), "the peer ended with {}", output.status);
    let answers: Vec<A> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .context("the peer's answers")?;
    ensure!(answers.len() == questions.len(), "{} answers to {} questions", answers.len(), questions.len());
    Ok(answers)
}

/// Locks a folder against other runs: two builds into one folder would write the same files.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let file = File::create(&path).with_context(|| format!("open {}", path.display()))?;
    if file.try_lock().is_err() {
        println!("peers: waiting for another run that builds them");
        file.lock().with_context(|| format!("lock {}", path.display()))?;
    }
    Ok(file)
}

fn stamp_path(cache: &Cache, peer: &Peer) -> Result<std::path::PathBuf> {
    Ok(cache.folder("stamps")?.join(peer.name))
}

/// Identifies what a program is built from. A program with another stamp is rebuilt.
fn stamp(peer: &Peer) -> String {
    let (module, version) = peer.family.main_module();
    let tags = peer.family.tags();
    let flags = peer.family.linker_flags();
    let flags = if tags.is_empty() { flags } else { format!("{flags} -tags {tags}") };
    let own = peer.family.own_program().map_or("", |(_, text)| text);
    format!("{module}@{version} {} {flags}\n{own}", peer.package)
}

/// The stamps of programs, one per line.
pub fn stamps(peers: &[Peer]) -> impl Iterator<Item = String> {
    peers.iter().map(stamp)
}

fn is_current(cache: &Cache, peer: &Peer) -> Result<bool> {
    let stamped = std::fs::read_to_string(stamp_path(cache, peer)?).unwrap_or_default();
    Ok(stamped == stamp(peer) && Path::is_file(&cache.program(peer)))
}

fn wrapper(cache: &Cache, family: Family) -> Result<std::path::PathBuf> {
    cache.folder(&format!("src/{}", family.name()))
}
