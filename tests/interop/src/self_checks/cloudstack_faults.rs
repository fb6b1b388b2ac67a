//! `cargo xtask cloudstack-faults`: runs clusters on a simulated CloudStack with a crash and a lost response at every
//! call. These are tests of the provider that take too long for `cargo test`, split into parts.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::Part;
use crate::cargo;

const PACKAGE: &str = "capstan-cloudstack-provider";

/// Tests that can be split.
const IN_PARTS: [&str; 2] = [
    "stories::nothing_is_made_twice_or_left_behind_whatever_call_is_disturbed",
    "stories::nothing_is_made_twice_or_left_behind_whatever_call_of_a_life_is_disturbed",
];
/// Tests that cannot be split. They run with the first part.
const WHOLE: [&str; 2] = [
    "stories::a_cluster_in_two_failure_domains_is_scaled_upgraded_healed_and_goes_without_a_trace",
    "stories::nothing_is_made_twice_or_left_behind_whatever_effect_is_disturbed",
];

#[derive(Debug, Args)]
pub struct Options {
    /// Only this part, for example `3/256` for the third of 256 [default: all]
    #[arg(long, default_value = "1/1", value_parser = Part::parse)]
    part: Part,
}

pub fn run(options: &Options) -> Result<()> {
    let Part { one, of } = options.part;
    let mut tests = IN_PARTS.to_vec();
    if one == 1 {
        tests.extend(WHOLE);
    }
    let program = program()?;
    println!("{} tests of {PACKAGE}, part {one} of {of}", tests.len());
    let output = Command::new(&program)
        .args(["--ignored", "--exact"])
        .args(&tests)
        .env("PART", format!("{}/{of}", one - 1))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if !output.status.success() {
        bail!("failed; to repeat: cargo xtask cloudstack-faults --part {one}/{of}");
    }
    // Catches renamed tests, which the filter would skip.
    let wanted = format!("{} passed", tests.len());
    ensure!(text.contains(&wanted), "not all of {tests:?} are tests of {PACKAGE}");
    Ok(())
}

/// The test program of the provider, built with the features that `cargo test --workspace` selects.
fn program() -> Result<PathBuf> {
    let arguments =
        ["test", "--no-run", "--workspace", "--test", "it", "--message-format=json-render-diagnostics"];
    let output = cargo::command().args(arguments).args(cargo::PROFILE).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "cargo test --no-run failed ({})", output.status);
    let messages = String::from_utf8(output.stdout)?;
    let found = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["package_id"].as_str().is_some_and(|id| id.contains(PACKAGE)))
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.with_context(|| format!("cargo built no tests of {PACKAGE}"))
}
