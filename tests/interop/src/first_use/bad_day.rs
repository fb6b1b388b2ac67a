//! `cargo xtask bad-day`: records a terminal session in which things go wrong, for the README: quota, a wrong template, a
//! destroyed machine, the cloud's API down.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use super::demo::{Demo, wait_for_output};
use super::mend::{Shell, commands};
use crate::bed::{Workdir, capstan};
use crate::peers::Cache;

/// Longest time until `why` says what is expected.
const PATIENCE: Duration = Duration::from_secs(180);
const CLUSTER: &str = "demo";

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// File to write
    #[arg(long, default_value = "docs/bad-day.md")]
    to: PathBuf,
}

/// Something that goes wrong.
struct Chapter {
    title: &'static str,
    /// What happens in the cloud, in words and as a script.
    happens: (&'static str, &'static str),
    /// What the user types before asking.
    typed: &'static [&'static str],
    /// What `why` says.
    why: &'static str,
    /// Placeholder and value in the printed commands.
    fill: (&'static str, &'static str),
    /// What the cloud's operator does about it, in words and as a script.
    operator: (&'static str, &'static str),
}

const CHAPTERS: [Chapter; 4] = [
    Chapter {
        title: "The quota is exceeded",
        happens: (
            "the account may have seven machines",
            "ctl call updateResourceLimit account=capstan domainid=$DOMAIN resourcetype=0 max=7",
        ),
        typed: &["capstan scale demo --workers workers=5"],
        why: "E-CS-QUOTA",
        fill: ("", ""),
        operator: (
            "the cloud's operator raises the limit",
            "ctl call updateResourceLimit account=capstan domainid=$DOMAIN resourcetype=0 max=20",
        ),
    },
    Chapter {
        title: "A template with a typo",
        happens: ("", ""),
        typed: &[
            "capstan set demo --workers workers template.name=ubuntu-2404-kube-v1.35.O || true",
            "capstan set demo --workers workers template.name=ubuntu-2404-kube-v1.35.O --no-plan",
        ],
        why: "E-CS-NOTFOUND",
        fill: ("TEMPLATE", "ubuntu-2404-kube-v1.35.0"),
        operator: ("", ""),
    },
    Chapter {
        title: "A virtual machine is destroyed",
        happens: (
            "the virtual machine of a worker is destroyed outside Capstan",
            "ctl call destroyVirtualMachine id=$(vm workers) expunge=true",
        ),
        typed: &[],
        why: "was deleted in the cloud",
        fill: ("", ""),
        operator: ("", ""),
    },
    Chapter {
        title: "The cloud's API is down",
        happens: ("CloudStack's API does not answer any more", "ctl inject lostRequest command='*'"),
        typed: &["capstan scale demo --workers workers=6 --no-plan", "capstan get clusters"],
        why: "E-CS-UNREACHABLE",
        fill: ("", ""),
        operator: ("the API is back", "ctl heal"),
    },
];

const HEAD: &str = "# A bad day

<!-- Recorded by `cargo xtask bad-day`. -->

A terminal session on `capstan demo`: four things go wrong, and `capstan why` says what to do. Lines that begin with `#`
happen elsewhere.
";

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let kubectl = Cache::locate()?.built("kubectl")?;
    let mut workdir = Workdir::new("bad-day")?;
    let mut demo = Demo::new(&workdir.folder("demo")?, &binary)?;
    let mut plane = demo.headless()?;
    wait_for_output(&mut plane, "cluster demo is ready").await?;
    let shell = Shell::open(&demo, &workdir, &binary, &kubectl).await?;
    let mut page = HEAD.to_owned();
    for chapter in &CHAPTERS {
        let mut session = Session { shell: &shell, text: String::new() };
        session.play(chapter).await?;
        let _ = write!(page, "\n## {}\n\n```console\n{}```\n", chapter.title, session.text);
    }
    let to = crate::cargo::root().join(&options.to);
    std::fs::write(&to, page)?;
    println!("{}", to.display());
    workdir.passed();
    Ok(())
}

struct Session<'a> {
    shell: &'a Shell,
    text: String,
}

impl Session<'_> {
    async fn play(&mut self, chapter: &Chapter) -> Result<()> {
        self.elsewhere(chapter.happens).await?;
        for command in chapter.typed {
            self.type_in(command).await?;
        }
        let answer = self.explained(chapter.why).await?;
        self.show("capstan why demo", &answer);
        match chapter.operator {
            ("", _) => {
                for command in commands(&answer) {
                    let (word, value) = chapter.fill;
                    self.type_in(&if word.is_empty() { command } else { command.replace(word, value) })
                        .await?;
                }
            }
            operator => self.elsewhere(operator).await?,
        }
        self.shell.run(CLUSTER, "capstan wait demo --timeout 5m", "").await?;
        self.type_in("capstan why demo").await
    }

    /// Happens without the user.
    async fn elsewhere(&mut self, (words, script): (&str, &str)) -> Result<()> {
        if !words.is_empty() {
            let _ = writeln!(self.text, "# {words}");
        }
        self.shell.run(CLUSTER, script, "").await.map(drop)
    }

    async fn type_in(&mut self, command: &str) -> Result<()> {
        let output = self.shell.run(CLUSTER, &format!("{{ {command}; }} 2>&1"), "").await?;
        self.show(command.trim_end_matches(" || true"), &output);
        Ok(())
    }

    fn show(&mut self, command: &str, output: &str) {
        let _ = writeln!(self.text, "$ {command}\n{}\n", output.trim_end());
    }

    /// Asks until the answer has the words.
    async fn explained(&self, words: &str) -> Result<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.shell.run(CLUSTER, "capstan why demo", "").await?;
            if answer.contains(words) {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                bail!("{words:?} is not in:\n{answer}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
