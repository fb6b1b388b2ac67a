//! The `helm` program.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::{Order, Render};

/// Most bytes that are read of what it prints, and of its errors.
const MOST: u64 = 8 * 1024 * 1024;
const MOST_ERRORS: u64 = 64 * 1024;
/// Most characters of an error that are reported.
const REPORTED: usize = 600;
/// How long it may take to print its version.
const ANSWER: Duration = Duration::from_secs(10);

/// Runs `helm template`. Registries are reached with the credentials that `helm registry login` stored.
pub struct Helm {
    program: String,
}

impl Helm {
    /// The program of that name, once it has printed its version.
    pub async fn find(program: &str) -> Result<Self, String> {
        let what = |why: String| {
            format!("`{program} version` failed: {why}: install Helm 3 or later, which renders charts")
        };
        let mut version = Command::new(program);
        version.args(["version", "--short"]);
        match tokio::time::timeout(ANSWER, run(&mut version, "")).await {
            Ok(Ok(_)) => Ok(Self { program: program.to_owned() }),
            Ok(Err(why)) => Err(what(why)),
            Err(_) => Err(what("it does not end".to_owned())),
        }
    }
}

impl Render for Helm {
    fn render<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<String, String>> {
        let mut command = Command::new(&self.program);
        command.args(["template", order.release, &order.chart.reference, "--namespace", order.namespace]);
        // Hooks are for releases that Helm installs; that of Calico's operator would delete the installation.
        command.args([
            "--kube-version",
            &order.kube_version,
            "--include-crds",
            "--no-hooks",
            "--values",
            "-",
        ]);
        if let Some(version) = &order.chart.version {
            command.args(["--version", version]);
        }
        Box::pin(async move { run(&mut command, &order.values.to_string()).await })
    }
}

/// What a program prints if it is given `input`.
async fn run(command: &mut Command, input: &str) -> Result<String, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (output, errors) = exchange(&mut child, input).await.map_err(|error| error.to_string())?;
    if output.len() as u64 > MOST {
        return Err(format!("it prints more than {MOST} bytes"));
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    match status.success() {
        true => String::from_utf8(output).map_err(|_| "it prints no UTF-8".to_owned()),
        false => Err(reported(&errors).unwrap_or_else(|| status.to_string())),
    }
}

async fn exchange(child: &mut Child, input: &str) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async move {
        let Some(mut stdin) = stdin else { return };
        // A program that does not read its input reports why on its own.
        let _ = stdin.write_all(input.as_bytes()).await;
    };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let read = async {
        if let Some(stdout) = stdout {
            stdout.take(MOST + 1).read_to_end(&mut output).await?;
        }
        io::Result::Ok(())
    };
    let complain = async {
        if let Some(mut stderr) = stderr {
            (&mut stderr).take(MOST_ERRORS).read_to_end(&mut errors).await?;
            // The rest is read, too: the program would wait for a reader.
            tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
        }
        io::Result::Ok(())
    };
    let ((), read, complain) = futures::future::join3(write, read, complain).await;
    read.and(complain)?;
    Ok((output, errors))
}

/// The error of a program, on one line and not too long.
fn reported(errors: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(errors);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let from = line.rfind("Error: ").map_or(0, |at| at + "Error: ".len());
    let text: String = line[from..].chars().take(REPORTED).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named_with_what_to_do() {
        let error = Helm::find("/nonexistent/helm").await.err().expect("no program");
        assert!(error.starts_with("`/nonexistent/helm version` failed: "), "{error}");
        assert!(error.ends_with("install Helm 3 or later, which renders charts"), "{error}");
    }

    #[tokio::test]
    async fn what_a_program_prints_is_its_answer_and_its_error_is_one_line() {
        let mut echo = Command::new("cat");
        assert_eq!(run(&mut echo, "a: 1\n").await, Ok("a: 1\n".to_owned()));
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo 'WARNING: x\nError: no chart\n  here' >&2; exit 1"]);
        assert_eq!(run(&mut failing, "").await, Err("no chart here".to_owned()));
        let mut endless = Command::new("cat");
        endless.arg("/dev/zero");
        let error = run(&mut endless, "").await.expect_err("too much");
        assert!(error.starts_with("it prints more than"), "{error}");
    }
}
