//! The console of a machine.

use std::sync::Arc;

use parking_lot::Mutex;

/// The oldest lines are dropped beyond this size: a machine that boots in a loop must not fill memory.
const LIMIT: usize = 64 * 1024;

/// The serial console of a machine. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Console(Arc<Mutex<String>>);

impl Console {
    /// Prints a line.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        let mut held = self.0.lock();
        held.push_str(text.as_ref());
        held.push('\n');
        if held.len() > LIMIT {
            let from = held.len() - LIMIT;
            let cut =
                held.as_bytes().iter().skip(from).position(|byte| *byte == b'\n').map(|at| from + at + 1);
            // A newline is one byte, so a character starts after it.
            held.drain(..cut.unwrap_or(0));
        }
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_console_drops_only_its_oldest_lines() {
        let console = Console::default();
        for n in 0..20_000 {
            console.line(format!("line {n} ü"));
        }
        let text = console.text();
        assert!(text.len() <= LIMIT);
        assert!(text.starts_with("line ") && text.ends_with("line 19999 ü\n"));
    }
}
