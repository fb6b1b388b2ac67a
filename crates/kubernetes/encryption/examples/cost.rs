//! Measures what encryption costs a store: `cargo run -p capstan-encryption --example cost -- DIRECTORY`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops at the first error"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use capstan_encryption::{Encryption, KeyFile};
use capstan_store::{Cipher, Expect, Options, RealDisk, Stamped, Store, Write};

/// Size of a Secret with a kubeconfig.
const VALUE: usize = 3 << 10;
const WRITES: usize = 1000;
const ROUNDS: usize = 5;

fn put(key: usize) -> Write {
    let value = Stamped { head: vec![b'x'; VALUE].into(), ..Stamped::default() };
    Write::Put { bucket: "/secrets".into(), key: format!("default/{key}").into(), value, expect: Expect::Any }
}

/// CPU time of this process. More reliable than wall-clock time on a shared machine.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Median time and mean CPU time of a write, one after the other.
fn writes(path: &Path, cipher: Option<Arc<dyn Cipher>>) -> (Duration, Duration) {
    let options = Options { cipher, ..Options::with_clock(SystemTime::now) };
    let store: Store<()> = Store::open(RealDisk::open(path).unwrap(), options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let cpu = processor();
    let mut times: Vec<Duration> = (0..WRITES)
        .map(|key| {
            let begun = Instant::now();
            runtime.block_on(store.write(put(key % 100))).unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[WRITES / 2], (processor() - cpu) / WRITES as u32)
}

fn main() {
    let path = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from).join("capstan-cost");
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    let key = path.join("key");
    KeyFile::create(&key).unwrap();
    let encryption = Arc::new(Encryption::new(&KeyFile::configuration(&key).unwrap()).unwrap());

    let (value, mut out) = (vec![b'x'; VALUE], Vec::with_capacity(2 * VALUE));
    let begun = Instant::now();
    for _ in 0..10_000 {
        out.clear();
        encryption.seal("/secrets", b"default/name", &value, &mut out);
    }
    println!("sealing {VALUE} bytes: {:?}, {} bytes more", begun.elapsed() / 10_000, out.len() - VALUE);
    let begun = Instant::now();
    for _ in 0..10_000 {
        encryption.open(b"default/name", &out).unwrap();
    }
    println!("opening it: {:?}", begun.elapsed() / 10_000);
    // In turns, because the disk of a shared machine changes its mind.
    for round in 0..ROUNDS {
        let (plain, plain_cpu) = writes(&path.join(format!("plain-{round}")), None);
        let (sealed, sealed_cpu) = writes(&path.join(format!("sealed-{round}")), Some(encryption.clone()));
        let ratio = sealed.as_secs_f64() / plain.as_secs_f64();
        println!(
            "a write: plain {plain:?} (processor {plain_cpu:?}), sealed {sealed:?} (processor {sealed_cpu:?}): {ratio:.3}"
        );
    }
    let _ = std::fs::remove_dir_all(&path);
}
