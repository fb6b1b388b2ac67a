//! Measures the memory of an additional empty in-memory server in a process that has many: `cargo xtask bench
//! instances`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops at the first error"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use capstan_apiserver::{Config, Server};
use capstan_env::Env;
use capstan_pki::Pki;

/// Servers started before the measured ones.
const BEFORE: usize = 1_000;
/// Measured servers.
const MORE: usize = 1_000;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Starts servers, each with its own keys, and waits until their controllers are idle.
async fn start(planes: &mut Vec<Server>, count: usize) {
    for _ in 0..count {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        planes.push(Server::start(Config::in_memory(), pki).await.unwrap());
    }
    let revisions = |planes: &[Server]| -> u64 { planes.iter().map(|p| p.store().revision()).sum() };
    loop {
        let before = revisions(planes);
        tokio::time::sleep(Duration::from_millis(500)).await;
        if revisions(planes) == before {
            return;
        }
    }
}

#[tokio::main]
async fn main() {
    let mut planes = Vec::new();
    let empty = resident_kib();
    start(&mut planes, 1).await;
    let one = resident_kib();
    println!("process: {empty} KiB, with one server {one} KiB");
    start(&mut planes, BEFORE - 1).await;
    let (before, begun) = (resident_kib(), Instant::now());
    start(&mut planes, MORE).await;
    let (after, took) = (resident_kib(), begun.elapsed());
    let store = planes[0].store();
    println!("{BEFORE} servers: {before} KiB");
    println!("{} servers: {after} KiB, the last {MORE} started and settled in {took:.1?}", BEFORE + MORE);
    println!(
        "one more server: {:.1} KB (target ≤ 100 KB); it holds {} objects of {:.1} KB",
        (after - before) as f64 * 1.024 / MORE as f64,
        store.metrics().entries,
        store.metrics().live_bytes as f64 / 1000.0,
    );
}
