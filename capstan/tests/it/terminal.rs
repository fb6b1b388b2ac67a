//! The program on a terminal, where it asks.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What Ctrl-D sends.
pub const END_OF_INPUT: &str = "\x04";

/// A program on a pseudo-terminal, which `script` of util-linux provides; killed when dropped.
pub struct Terminal {
    script: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    shown: String,
    /// How much was shown when the last key was typed.
    answered: usize,
}

impl Terminal {
    /// Runs `capstan` with arguments and environment variables.
    pub fn start(environment: &[(&str, &Path)], without: &[&str], arguments: &[&str]) -> Self {
        let words = [&[env!("CARGO_BIN_EXE_capstan")], arguments].concat();
        let line: Vec<String> =
            words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let mut command = Command::new("script");
        command
            .args([
                "--quiet",
                "--return",
                "--flush",
                "--command",
                &format!("exec {}", line.join(" ")),
                "/dev/null",
            ])
            .env("SHELL", "/bin/sh")
            .env("NO_COLOR", "1")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        for name in without {
            command.env_remove(name);
        }
        let mut script = command.spawn().unwrap();
        let (keys, screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        Self { script, keys, screen, shown: String::new(), answered: 0 }
    }

    /// Waits until the screen ends with a question, and types.
    pub fn answer(&mut self, question: &str, keys: &str) {
        while !self.shown[self.answered..].ends_with(question) {
            let mut byte = [0];
            let read = self.screen.read(&mut byte).unwrap();
            assert!(read == 1, "it ended without asking {question:?}:\n{}", self.shown);
            self.shown.push(byte[0].into());
        }
        self.answered = self.shown.len();
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for the end. The exit code, and everything on the screen.
    pub fn end(mut self) -> (i32, String) {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).unwrap();
        self.shown.extend(rest.into_iter().map(char::from));
        let code = self.script.wait().unwrap().code().unwrap();
        (code, self.shown.replace("\r\n", "\n"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
