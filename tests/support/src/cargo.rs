//! Builds our own programs on demand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Cargo in the root of the repository, with the environment of a shell. The variables that `cargo xtask` sets for
/// this package are removed: build scripts that read them would run again and rebuild everything above them.
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

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The profile that tests and suites share, so that nothing is compiled twice.
pub const PROFILE: [&str; 2] = ["--profile", "ci"];

/// Builds a program for the suites with the features that `cargo test --workspace` selects, so that nothing is
/// compiled twice. Cargo only unifies features of dev-dependencies when an example is among the targets.
pub fn suite_program(name: &str) -> Result<PathBuf> {
    with_features_of_tests(name, &PROFILE)
}

/// Builds a program that runs for long enough to be worth the minutes of an optimised build.
pub fn optimised_program(name: &str) -> Result<PathBuf> {
    with_features_of_tests(name, &["--release"])
}

fn with_features_of_tests(name: &str, profile: &[&str]) -> Result<PathBuf> {
    let mut arguments = vec!["--workspace"];
    arguments.extend(SIMULATIONS.into_iter().flat_map(|example| ["--example", example]));
    if !SIMULATIONS.contains(&name) {
        arguments.extend(["--bin", name]);
    }
    program(".", name, &[profile, &arguments].concat())
}

/// The examples that run scenarios in simulated time.
const SIMULATIONS: [&str; 4] = ["simulate", "cloudstack-faults", "openstack-faults", "lifecycle-faults"];

/// Runs `cargo build` with additional arguments in a folder of the repository. Returns the program of the package of
/// that name.
pub fn build(folder: &str, package: &str, arguments: &[&str]) -> Result<PathBuf> {
    program(folder, package, &[&["-p", package], arguments].concat())
}

/// Runs `cargo build` in a folder of the repository. Returns the program of that name.
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
