//! Measures the store: `cargo run --release -p capstan-store --example measure -- DIRECTORY`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops at the first error"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use capstan_store::{Expect, Options, RealDisk, Stamped, Store, Write};

type Plain = Store<()>;

const VALUE: usize = 3 << 10;

fn put(bucket: &str, key: String) -> Write {
    let value = Stamped {
        head: Bytes::from(vec![b'x'; VALUE - 30]),
        tail: Bytes::from_static(b"0123456789"),
        mark: 0,
    };
    Write::Put { bucket: bucket.into(), key: key.into(), value, expect: Expect::Any }
}

fn open(path: &Path) -> Plain {
    Store::open(RealDisk::open(path).unwrap(), Options::with_clock(SystemTime::now)).unwrap()
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// CPU time of this process. More reliable than wall-clock time on a shared machine.
fn processor() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Prints the duration of some work.
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (begun, cpu) = (Instant::now(), processor());
    let result = work();
    println!("{what}: {:?}, processor {:?}", begun.elapsed(), processor() - cpu);
    result
}

/// Runs writers that each wait for one write before the next, for a time.
async fn writes(store: &Plain, writers: usize, time: Duration) {
    let before = store.metrics();
    let (begun, cpu) = (Instant::now(), processor());
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while begun.elapsed() < time {
                    let sent = Instant::now();
                    let key = format!("w{writer}-{}", latencies.len() % 100);
                    store.write(put("load", key)).await.unwrap();
                    latencies.push(sent.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let elapsed = begun.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let after = store.metrics();
    let batches = (after.batches - before.batches).max(1);
    println!(
        "{writers:4} writers: {:8.0} writes/s, p50 {:?}, p99 {:?}, {:.1} writes per sync, {} us per sync, {:?} processor per write",
        latencies.len() as f64 / elapsed,
        latencies[latencies.len() / 2],
        latencies[latencies.len() * 99 / 100],
        latencies.len() as f64 / batches as f64,
        (after.log_micros - before.log_micros) / batches,
        (processor() - cpu) / latencies.len() as u32,
    );
}

async fn fan_out(store: &Plain, watchers: usize, events: usize) {
    let from = store.revision();
    let tasks: Vec<_> = (0..watchers)
        .map(|_| {
            let mut watch = store.watch("fan", "", from).unwrap();
            tokio::spawn(async move {
                let mut seen = 0;
                while seen < events {
                    seen += watch.next().await.unwrap().events.len();
                }
            })
        })
        .collect();
    let begun = Instant::now();
    for event in 0..events {
        store.write(put("fan", format!("k{}", event % 100))).await.unwrap();
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    let total = (watchers * events) as f64;
    println!(
        "fan-out {events} events to {watchers} watchers: {:.2e} deliveries/s",
        total / begun.elapsed().as_secs_f64()
    );
}

fn main() {
    let path = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from).join("capstan-measure");
    let _ = fs::remove_dir_all(&path);
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();

    let base = resident_kib();
    let stores: Vec<Plain> = (0..10_000).map(|_| Store::in_memory(Options::default())).collect();
    println!("an empty in-memory store: {:.2} KiB", (resident_kib() - base) as f64 / stores.len() as f64);
    runtime.block_on(async {
        for store in &stores[..1000] {
            for bucket in 0..8 {
                let write = Write::Put {
                    bucket: format!("bucket{bucket}").into(),
                    key: "k".into(),
                    value: Stamped::default(),
                    expect: Expect::Any,
                };
                store.write(write).await.unwrap();
            }
        }
    });
    println!("1,000 of them with 8 buckets of one entry: {} KiB in all", resident_kib() - base);
    drop(stores);

    let base = resident_kib();
    let store = open(&path);
    runtime.block_on(async {
        for chunk in 0..500 {
            let keys = (0..100).map(|key| put("objects", format!("ns{}/{}", chunk % 50, chunk * 100 + key)));
            let writes = keys.map(|write| store.write(write));
            futures::future::join_all(writes).await;
        }
    });
    println!("50,000 objects of 3 KiB: {} MiB resident", (resident_kib() - base) >> 10);
    let snapshot = Arc::new(store.snapshot("objects"));
    let begun = Instant::now();
    let bytes: usize = snapshot.range("", None).take(10_000).map(|entry| entry.value.len()).sum();
    println!("list 10,000 ({bytes} bytes): {:?}", begun.elapsed());
    let begun = Instant::now();
    for step in 0..1_000_000 {
        let key = format!("ns{}/{}", step % 50_000 / 100 % 50, step % 50_000);
        assert!(store.get("objects", &key).is_some());
    }
    println!("get: {:?} each", begun.elapsed() / 1_000_000);
    let old = timed("snapshot_at 10,000 revisions ago", || {
        store.snapshot_at("objects", store.revision() - 10_000).unwrap()
    });
    assert_eq!(old.count(""), 40_000);
    drop((snapshot, old));
    runtime.block_on(store.close());
    drop(store);
    let store = timed("open with 50,000 objects in the log", || open(&path));
    timed("checkpoint", || runtime.block_on(store.checkpoint()).unwrap());
    timed("backup", || {
        let mut backup = std::io::BufWriter::new(fs::File::create(path.join("backup")).unwrap());
        store.backup(&mut backup).unwrap();
    });
    drop(store);
    fs::remove_dir_all(&path).unwrap();

    let memory: Plain = Store::in_memory(Options::default());
    runtime.block_on(async {
        println!("in memory:");
        writes(&memory, 1, Duration::from_secs(2)).await;
        writes(&memory, 64, Duration::from_secs(2)).await;
        fan_out(&memory, 200, 5000).await;
    });
    drop(memory);

    println!("on {}:", path.display());
    let store = open(&path);
    runtime.block_on(async {
        for writers in [1, 16, 64, 256] {
            writes(&store, writers, Duration::from_secs(4)).await;
        }
        fan_out(&store, 200, 1000).await;
        store.close().await;
    });
    drop(store);
    fs::remove_dir_all(&path).unwrap();
}
