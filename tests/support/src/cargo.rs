//! Our own programs, built on demand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Cargo, called as if from a shell: what `cargo xtask` says of this package would run build scripts again that look at
/// it, and build all above them anew. Its folder is the repository's.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
    command.current_dir(root());
    command
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The profile that tests and suites share, so that nothing is compiled twice.
pub const PROFILE: [&str; 2] = ["--profile", "ci"];

/// Builds a program for the suites with the features that `cargo test --workspace` gives everything below it: after
/// those tests nothing is left to compile. An example among the targets is what makes Cargo count the features that
/// tests ask for.
pub fn suite_program(name: &str) -> Result<PathBuf> {
    let mut arguments = vec!["--workspace", "--example", SIMULATE];
    if name != SIMULATE {
        arguments.extend(["--bin", name]);
    }
    program(".", name, &[&PROFILE[..], &arguments].concat())
}

/// The example that plays scenarios in simulated time.
const SIMULATE: &str = "simulate";

/// The program of a package of the same name, from `cargo build` with these arguments more, in a folder of this
/// repository.
pub fn build(folder: &str, package: &str, arguments: &[&str]) -> Result<PathBuf> {
    program(folder, package, &[&["-p", package], arguments].concat())
}

/// The program of this name, from `cargo build` with these arguments in a folder of this repository.
pub fn program(folder: &str, name: &str, arguments: &[&str]) -> Result<PathBuf> {
    let folder = root().join(folder);
    let arguments = [&["build", "--message-format=json-render-diagnostics"], arguments].concat();
    let mut command = command();
    command.args(&arguments).current_dir(folder).stderr(Stdio::inherit());
    let output = command.output().context("run cargo build")?;
    if !output.status.success() {
        bail!("cargo {} failed ({})", arguments.join(" "), output.status);
    }
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.with_context(|| format!("cargo built no program called {name}"))
}
