//! Durations, sizes and tables, formatted for people.

use std::time::{Duration, Instant};

/// `0.3 s`, `12.0 s`, `3 m 05 s`.
pub fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{} m {:02} s", duration.as_secs() / 60, duration.as_secs() % 60)
    }
}

/// `12.3 MiB`.
pub fn human_bytes(bytes: u64) -> String {
    let mib = bytes as f64 / (1024.0 * 1024.0);
    if mib < 1.0 { format!("{:.0} KiB", bytes as f64 / 1024.0) } else { format!("{mib:.1} MiB") }
}

/// Pads columns to their widest cell. The first row is the header.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count())))
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Prints the phases of a run as they end.
#[derive(Debug)]
pub struct Lap(Instant);

impl Lap {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Ends a phase and begins the next.
    pub fn end(&mut self, name: &'static str) -> (&'static str, Duration) {
        let took = self.0.elapsed();
        self.0 = Instant::now();
        println!("  {name}: {}", human_duration(took));
        (name, took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(human_duration(Duration::from_millis(300)), "300 ms");
        assert_eq!(human_duration(Duration::from_millis(12_000)), "12.0 s");
        assert_eq!(human_duration(Duration::from_secs(185)), "3 m 05 s");
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".into(), "long".into()], vec!["wide".into(), "b".into()]];
        assert_eq!(table(&rows), "a     long\nwide  b\n");
    }
}
