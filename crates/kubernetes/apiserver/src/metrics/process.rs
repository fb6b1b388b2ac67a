//! Metrics of the process from /proc. Only on Linux.

use std::fs;

/// Sizes and times of the process. Linux counts process times in hundredths of a second.
pub(super) struct Process {
    pub cpu_hundredths: u64,
    /// Since 1970.
    pub start_hundredths: u64,
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    pub open_files: usize,
    pub threads: u64,
}

pub(super) fn read() -> Option<Process> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let open_files = fs::read_dir("/proc/self/fd").ok()?.count();
    parse(&stat, &status, &system, open_files)
}

fn parse(stat: &str, status: &str, system: &str, open_files: usize) -> Option<Process> {
    // The program's name may contain anything but ends at the last parenthesis; the state is field 3.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let line = |text: &str, name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Process {
        cpu_hundredths: field(14)? + field(15)?,
        threads: field(20)?,
        start_hundredths: line(system, "btime ")? * 100 + field(22)?,
        virtual_bytes: field(23)?,
        resident_bytes: line(status, "VmRSS:")? * 1024,
        open_files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let rest = "S 1 1 1 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 7 0 300 4096 25 18446744073709551615";
        let process =
            parse(&format!("42 (a) b) {rest}"), "VmRSS:\t  12 kB\n", "cpu 1\nbtime 1000\n", 9).unwrap();
        assert_eq!((process.cpu_hundredths, process.threads, process.virtual_bytes), (200, 7, 4096));
        assert_eq!((process.start_hundredths, process.resident_bytes), (100_300, 12 * 1024));
    }
}
