//! `cargo xtask fuzz`: property tests with fresh seeds, for a given time.
//!
//! `cargo test` runs the same tests with a few hundred cases each and the default seeds. Here they run in rounds with
//! many more, with limits on time and memory, so that a hang or a leak fails too.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::Value;

use crate::cargo;
use crate::text::human_duration;

/// Crates with tests called `fuzz`.
const CRATES: [&str; 12] = [
    "capstan-apiserver",
    "capstan-builtin",
    "capstan-cel",
    "capstan-cloudstack-client",
    "capstan-controller",
    "capstan-encryption",
    "capstan-oidc",
    "capstan-openstack-client",
    "capstan-schema",
    "capstan-store",
    "capstan-streams",
    "capstan-user-data",
];
/// Address space limit of a test program, including its code and what debug builds add.
const MEMORY_KIB: u64 = 2 << 20;
/// Timeout of one program in one round.
const ROUND: Duration = Duration::from_secs(1200);

#[derive(Debug, Args)]
pub struct Options {
    /// Minutes to run; the last round is completed
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Cases of each test in a round
    #[arg(long, default_value_t = 5_000)]
    cases: u32,
    /// Only the round with this seed, as printed by a failure
    #[arg(long)]
    seed: Option<u64>,
    /// Only tests whose name contains this
    #[arg(long, default_value = "fuzz")]
    test: String,
}

/// Runs rounds until the time is over or a test fails.
pub fn run(options: &Options) -> Result<()> {
    let programs = build()?;
    let begin = Instant::now();
    for round in 1.. {
        let seed = options.seed.unwrap_or_else(rand::random);
        println!("round {round}, seed {seed}, {} cases of each test", options.cases);
        for program in &programs {
            run_one(program, options, seed)?;
        }
        if options.seed.is_some() || begin.elapsed() >= Duration::from_secs(options.minutes * 60) {
            println!("{round} rounds in {}: nothing failed", human_duration(begin.elapsed()));
            break;
        }
    }
    Ok(())
}

/// Builds the tests and returns the programs of [`CRATES`]. All of the workspace, so that features and results are those
/// of `cargo test --profile ci --workspace`: the crates by themselves have other features, and compile most of it again.
fn build() -> Result<Vec<PathBuf>> {
    let output = cargo::command()
        .args(["test", "--no-run", "--message-format=json-render-diagnostics", "--lib", "--tests"])
        .args(cargo::PROFILE)
        .arg("--workspace")
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo test --no-run")?;
    if !output.status.success() {
        bail!("the tests do not build ({})", output.status);
    }
    let messages = String::from_utf8(output.stdout)?;
    let programs: Vec<_> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["profile"]["test"] == true)
        .filter(|message| {
            message["package_id"].as_str().and_then(package).is_some_and(|name| CRATES.contains(&name))
        })
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect();
    ensure!(
        programs.len() >= CRATES.len(),
        "cargo built {} programs of {} crates",
        programs.len(),
        CRATES.len()
    );
    Ok(programs)
}

/// The package in an id such as `path+file:///capstan/crates/kubernetes/store#capstan-store@0.1.0`.
fn package(id: &str) -> Option<&str> {
    id.rsplit_once('#')?.1.split_once('@').map(|(name, _)| name)
}

fn run_one(program: &PathBuf, options: &Options, seed: u64) -> Result<()> {
    let begin = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$@\""), "sh"])
        .arg(program)
        .arg(&options.test)
        // Every arena of malloc reserves address space that it never uses.
        .env("MALLOC_ARENA_MAX", "1")
        .env("PROPTEST_CASES", options.cases.to_string())
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_MAX_SHRINK_TIME", "120000")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
        .spawn()
        .with_context(|| format!("run {}", program.display()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > ROUND {
            child.kill()?;
            child.wait()?;
            bail!("{} hangs with seed {seed}: cargo xtask fuzz --seed {seed}", program.display());
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if !status.success() {
        let (cases, test) = (options.cases, &options.test);
        bail!("{status}; to repeat: cargo xtask fuzz --seed {seed} --cases {cases} --test {test}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_package_is_found_in_its_id() {
        assert_eq!(package("path+file:///x/store#capstan-store@0.1.0"), Some("capstan-store"));
        assert_eq!(package("path+file:///x/capstan#0.1.0"), None);
    }

    /// Adds the packages below a folder that have a module or a test called `fuzz`.
    fn fuzzed(folder: &Path, package: &str, found: &mut BTreeSet<String>) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let package = name.unwrap_or(package);
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                fuzzed(&entry, package, found);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&entry).unwrap();
                let is_fuzz = |line: &str| ["mod fuzz", "fn fuzz_"].iter().any(|word| line.starts_with(word));
                if text.lines().any(|line| is_fuzz(line.trim_start())) {
                    found.insert(package.to_owned());
                }
            }
        }
    }

    #[test]
    fn every_crate_with_tests_called_fuzz_is_run() {
        let mut found = BTreeSet::new();
        fuzzed(&cargo::root().join("crates"), "", &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), CRATES);
    }
}
