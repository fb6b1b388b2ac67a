//! A small shell for user data. The machine's `/bin/sh` is bash, as on many images.
//!
//! ```text
//!   text ── lexer ──▶ tokens ── parser ──▶ commands (syntax) ── exec ──▶ commands/, kubeadm, script files
//!                                                                 │ expand: parameters, substitution, globs
//! ```
//!
//! Commands of a pipeline run one after the other, and background commands run synchronously. A program that is not
//! simulated does not exist: `command not found`, 127.

mod arithmetic;
mod commands;
mod exec;
mod expand;
mod lexer;
mod parser;
mod pattern;
mod syntax;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Guest;
use syntax::Command;

/// Maximum bytes of a pipe or a captured output.
const BUFFER: usize = 1024 * 1024;

/// Target of an output stream.
#[derive(Debug, Clone)]
pub(super) enum Sink {
    Console,
    Nowhere,
    Buffer(Arc<Mutex<Vec<u8>>>),
    File(String),
}

/// An input stream, shared by its readers.
#[derive(Debug, Clone, Default)]
pub(super) struct Input(Arc<Mutex<(Vec<u8>, usize)>>);

impl Input {
    fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new((bytes, 0))))
    }

    /// The rest of the input.
    fn take(&self) -> Vec<u8> {
        let mut held = self.0.lock();
        let from = held.1.min(held.0.len());
        held.1 = from;
        held.0.split_off(from)
    }

    /// The next line, without the newline.
    fn line(&self) -> Option<String> {
        let mut held = self.0.lock();
        let rest = held.0.get(held.1..).filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = String::from_utf8_lossy(&rest[..end.unwrap_or(rest.len())]).into_owned();
        held.1 += end.map_or(rest.len(), |end| end + 1);
        Some(line)
    }
}

/// The streams of a command.
#[derive(Debug, Clone)]
pub(super) struct Io {
    input: Input,
    pub(super) out: Sink,
    pub(super) err: Sink,
}

impl Io {
    /// Empty input; output to the console.
    pub(super) fn console() -> Self {
        Self { input: Input::default(), out: Sink::Console, err: Sink::Console }
    }
}

impl Guest<'_> {
    /// Writes to a stream. Bytes that exceed a pipe's buffer are lost.
    pub(super) fn write(&mut self, sink: &Sink, bytes: &[u8]) -> bool {
        match sink {
            Sink::Console => self.screen.write(bytes),
            Sink::Nowhere => {}
            Sink::Buffer(buffer) => {
                let mut buffer = buffer.lock();
                let room = BUFFER.saturating_sub(buffer.len()).min(bytes.len());
                buffer.extend_from_slice(&bytes[..room]);
            }
            Sink::File(path) => return self.files.append(path, bytes).is_ok(),
        }
        true
    }

    /// Writes a line to a stream.
    pub(super) fn print(&mut self, sink: &Sink, line: &str) {
        self.write(sink, format!("{line}\n").as_bytes());
    }
}

/// State of a shell; a subshell has a copy.
#[derive(Debug, Clone)]
struct State {
    /// Name of the script, for error messages.
    script: Arc<str>,
    variables: BTreeMap<String, String>,
    exported: BTreeSet<String>,
    functions: BTreeMap<String, Arc<Command>>,
    arguments: Vec<String>,
    directory: String,
    status: i32,
    line: usize,
    errexit: bool,
    nounset: bool,
    pipefail: bool,
    trace: bool,
}

/// Control flow after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Exit,
    Return,
    Break(u32),
    Continue(u32),
}

pub(super) struct Shell<'g, 'a> {
    pub(super) guest: &'g mut Guest<'a>,
    state: State,
    /// Depth of conditions around this command, in which a failure does not exit.
    guarded: usize,
    depth: usize,
}

impl<'g, 'a> Shell<'g, 'a> {
    /// A shell for the script of this name.
    pub(super) fn new(guest: &'g mut Guest<'a>, script: &str) -> Self {
        let variables = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/root"),
            ("USER", "root"),
            ("PWD", "/"),
            ("IFS", " \t\n"),
        ];
        let exported = ["PATH", "HOME", "USER", "PWD"].into_iter().map(str::to_owned).collect();
        let variables =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let state = State {
            script: script.into(),
            variables,
            exported,
            functions: BTreeMap::new(),
            arguments: Vec::new(),
            directory: "/".to_owned(),
            status: 0,
            line: 0,
            errexit: false,
            nounset: false,
            pipefail: false,
            trace: false,
        };
        Self { guest, state, guarded: 0, depth: 0 }
    }

    /// Sets an exported variable.
    pub(super) fn export(&mut self, name: &str, value: &str) {
        self.state.variables.insert(name.to_owned(), value.to_owned());
        self.state.exported.insert(name.to_owned());
    }

    /// Runs a script and returns its exit status.
    pub(super) async fn run(&mut self, script: &str, io: &Io) -> i32 {
        self.run_text(script, io).await;
        self.state.status
    }

    /// An absolute path.
    fn path(&self, path: &str) -> String {
        if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{}/{path}", self.state.directory.trim_end_matches('/'))
        }
    }

    /// An error of the shell, with script and line.
    fn located(&self, what: &str) -> String {
        format!("{}: line {}: {what}", self.state.script, self.state.line)
    }

    /// Prints an error of the shell, with script and line.
    fn print_error(&mut self, io: &Io, what: &str) {
        let line = self.located(what);
        self.guest.print(&io.err, &line);
    }
}
