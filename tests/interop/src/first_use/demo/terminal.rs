//! A program on a pseudo-terminal, which `script` of util-linux provides.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::screen::Screen;
use crate::bed::process::{Ending, Process, Program};
use crate::bed::wait;

pub struct Terminal {
    script: Process,
    /// File with the program's process id.
    id: PathBuf,
    columns: usize,
}

impl Terminal {
    /// Starts a program on a new terminal of this many columns. `folder` is for logs.
    pub fn start(
        folder: &Path,
        name: &str,
        columns: usize,
        program: &Path,
        arguments: &[&str],
    ) -> Result<Self> {
        let id = folder.join(format!("{name}.pid"));
        let words: Vec<String> = std::iter::once(program.to_str().context("path")?)
            .chain(arguments.iter().copied())
            .map(quoted)
            .collect();
        let line = format!(
            "stty cols {columns} rows 60; echo $$ > {}; exec {}",
            quoted(id.to_str().context("path")?),
            words.join(" ")
        );
        let script = Program::new(name, "script")
            .args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .typed_to()
            .start(folder)
            .context("run `script` (Debian package bsdutils)")?;
        Ok(Self { script, id, columns })
    }

    /// Everything written to the terminal.
    pub fn written(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(self.script.log())?).into_owned())
    }

    /// The current screen.
    pub fn screen(&self) -> Result<Screen> {
        let screen = Screen::of(&self.written()?)?;
        let wide = screen.lines.iter().find(|line| line.len() > self.columns);
        let shown =
            |line: &Vec<super::screen::Cell>| line.iter().map(|cell| cell.character).collect::<String>();
        // Sentences may be wider than the terminal; a tree that is redrawn in place must not be.
        if let Some(line) = wide.map(shown).filter(|line| line.contains("─ ")) {
            bail!("a line of the tree is wider than {} columns: {line}", self.columns);
        }
        Ok(screen)
    }

    /// Waits until the screen contains `words`.
    pub async fn shows(&self, words: &str) -> Result<String> {
        self.shows_one_of(&[words]).await
    }

    /// Waits until the screen contains one of these texts.
    pub async fn shows_one_of(&self, texts: &[&str]) -> Result<String> {
        let awaited = texts.join(", or ");
        let seen = wait::until(&awaited, Duration::from_secs(120), || async {
            let text = self.screen()?.text();
            Ok(texts.iter().any(|words| text.contains(words)).then_some(text))
        });
        seen.await.with_context(|| {
            format!("the terminal shows\n{}", self.screen().map(|it| it.text()).unwrap_or_default())
        })
    }

    /// Sends Ctrl-C and waits for the exit code.
    pub async fn interrupt(&mut self) -> Result<i32> {
        self.script.write(&[3])?;
        self.end().await
    }

    /// Kills the program, unless it has exited, and waits until `script` has noticed.
    pub async fn kill(&mut self) -> Result<()> {
        let id: i32 = std::fs::read_to_string(&self.id)?.trim().parse()?;
        match kill_process(Pid::from_raw(id).context("a process id")?, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
        self.end().await.map(drop)
    }

    /// Waits for the exit code.
    pub async fn end(&mut self) -> Result<i32> {
        let ending = self.script.wait(Duration::from_secs(120)).await?;
        ensure!(matches!(ending, Ending::Exited), "timed out; the terminal shows\n{}", self.screen()?.text());
        Ok(self.script.status().and_then(|status| status.code()).unwrap_or(-1))
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
