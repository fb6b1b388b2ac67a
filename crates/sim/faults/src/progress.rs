//! Progress of the runs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::record::Run;

/// Prints the progress now and then.
pub struct Progress {
    pub begun: Instant,
    printed: Mutex<Instant>,
    planned: usize,
    pub runs: AtomicUsize,
    broken: AtomicUsize,
    cpu: AtomicU64,
}

impl Progress {
    pub fn of(planned: usize) -> Self {
        Self {
            begun: Instant::now(),
            printed: Mutex::new(Instant::now()),
            planned,
            runs: AtomicUsize::new(0),
            broken: AtomicUsize::new(0),
            cpu: AtomicU64::new(0),
        }
    }

    pub fn ended(&self, run: &Run, effects: usize) {
        let runs = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let broken = self.broken.fetch_add(usize::from(run.broken.is_some()), Ordering::Relaxed);
        let broken = broken + usize::from(run.broken.is_some());
        let cpu = self.cpu.fetch_add(run.cpu, Ordering::Relaxed) + run.cpu;
        let mut printed = self.printed.lock();
        if printed.elapsed().as_secs() >= 15 {
            *printed = Instant::now();
            let rate = runs as f64 / self.begun.elapsed().as_secs_f64();
            let left = self.planned.saturating_sub(runs) as f64 / rate;
            eprintln!(
                "{}, {} {} of {effects}: {runs} of {} runs, {broken} failed, {:.1} s of CPU time each, about {} left",
                run.scenario,
                run.kind.name(),
                run.effect,
                self.planned,
                cpu as f64 / 1000.0 / runs as f64,
                duration(left as u64)
            );
        }
    }
}

/// Time since an instant, formatted.
pub fn since(begun: Instant) -> String {
    duration(begun.elapsed().as_secs())
}

/// A number of seconds, formatted.
fn duration(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
