//! Error lines of a manager's log in normal form, without everything that differs between runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::Regex;

/// Normal form of an error line → an example.
#[derive(Clone, Debug, Default)]
pub struct Shapes(BTreeMap<String, String>);

impl Shapes {
    /// Adds the error lines of a log in klog's text format. `server` is the address of the API server.
    pub fn read(&mut self, manager: &str, log: &Path, server: &str) -> Result<()> {
        let text = std::fs::read(log).with_context(|| log.display().to_string())?;
        self.read_text(manager, &String::from_utf8_lossy(&text).replace(server, "<server>"));
        Ok(())
    }

    fn read_text(&mut self, manager: &str, text: &str) {
        for line in entries(text) {
            if let Some(shape) = shape(manager, &line) {
                self.0.entry(shape).or_insert(line);
            }
        }
    }

    /// Every normal form with an example.
    pub fn all(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// klog prints a value with line breaks as `key=<`, indented lines, ` >`. Joins such an entry to one line.
fn entries(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        match out.last_mut() {
            Some(last) if line.starts_with('\t') || line.starts_with(" >") => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => out.push(line.to_owned()),
        }
    }
    out
}

/// Manager, source file, message and error, without names, numbers and addresses. `None` for lines that are not
/// errors.
fn shape(manager: &str, line: &str) -> Option<String> {
    static HEAD: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^E\d{4} [\d:.]+\s+\d+ ([\w.-]+):\d+\] (.*)$").ok());
    if line.starts_with("panic:") || line.starts_with("fatal error:") {
        return Some(format!("{manager}: {line}"));
    }
    let head = HEAD.as_ref()?.captures(line)?;
    let rest = &head[2];
    let message = quoted_prefix(rest).unwrap_or(rest);
    let error = error_part(rest).unwrap_or_default();
    Some(format!("{manager} {}: {} {}", &head[1], varying(message), varying(error)))
}

/// The error of an entry: in quotes, or between `<` and `>` if it has several lines.
fn error_part(entry: &str) -> Option<&str> {
    static ERROR: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"err=(<.*? >|"(?:[^"\\]|\\.)*")"#).ok());
    Some(ERROR.as_ref()?.captures(entry)?.get(1)?.as_str())
}

/// The error of an entry, without names, numbers and addresses.
pub fn error_text(entry: &str) -> Option<String> {
    let part = error_part(entry)?;
    let text = match part.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\""),
        None => part.trim_matches(['<', '>', ' ']).to_owned(),
    };
    Some(varying(&text))
}

fn quoted_prefix(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    for (position, character) in inner.char_indices() {
        match character {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return Some(&inner[..position]),
            _ => escaped = false,
        }
    }
    None
}

/// Replaces what differs between runs by placeholders.
fn varying(text: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rules = [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", "<time>"),
            (r"(\d{1,3}\.){3}\d{1,3}(:\d+)?", "<address>"),
            (r"\bfleet-\d+[a-z0-9-]*", "<name>"),
            (r"\bin-memory-[a-z0-9-]+", "<name>"),
            (r"\b\d+(\.\d+)?(ns|µs|us|ms|s|m|h)(\d+(\.\d+)?(ms|s|m))*\b", "<duration>"),
            (r"0x[0-9a-f]+", "<pointer>"),
            (r"\d+", "<n>"),
            (r"\s+", " "),
        ];
        rules.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
    });
    let mut out = text.to_owned();
    for (pattern, with) in RULES.iter() {
        out = pattern.replace_all(&out, *with).into_owned();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_one_error_have_one_shape() {
        let mut shapes = Shapes::default();
        shapes.read_text("capi-core", concat!(
            "E1115 05:16:23.123456   12345 controller.go:353] \"Reconciler error\" err=\"dial tcp 127.0.0.1:20001: connection refused\" controller=\"cluster\" name=\"fleet-1\"\n",
            "E1115 05:17:00.000001   999 controller.go:360] \"Reconciler error\" err=\"dial tcp 127.0.0.1:20007: connection refused\" controller=\"cluster\" name=\"fleet-2\"\n",
            "I1115 05:17:00.000001   999 controller.go:360] \"Reconciled\"\n",
        ));
        assert_eq!(
            shapes.0.keys().collect::<Vec<_>>(),
            ["capi-core controller.go: Reconciler error \"dial tcp <address>: connection refused\""]
        );
    }

    #[test]
    fn an_error_of_several_lines_is_one_entry() {
        let mut shapes = Shapes::default();
        shapes.read_text(
            "capd",
            "E1115 05:16:23.1 1 a.go:3] \"x\" err=<\n\tfirst 1\n\tsecond\n > name=\"y\"\n",
        );
        assert_eq!(shapes.0.keys().collect::<Vec<_>>(), ["capd a.go: x < first <n> second >"]);
    }

    #[test]
    fn a_panic_is_an_error() {
        let mut shapes = Shapes::default();
        shapes.read_text("capd", "panic: runtime error\n");
        assert_eq!(shapes.len(), 1);
    }
}
