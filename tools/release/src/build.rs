//! The program, built for a target, and asked for what only it knows.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use capstan_test_support::cargo;
use serde_json::Value;

use crate::target::Target;
use crate::tree::Tree;

/// What Cargo knows of the workspace and its dependencies for a target.
pub fn metadata(target: Target) -> Result<Value> {
    let mut command = cargo::command();
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target.triple]);
    Ok(serde_json::from_slice(&output(&mut command)?)?)
}

/// Fails with the commands that install what is missing to build for these targets.
pub fn check_tools(targets: &[Target]) -> Result<()> {
    let missing = missing(targets);
    ensure!(
        missing.is_empty(),
        "this machine lacks compilers; install them with\n  {}",
        missing.join("\n  ")
    );
    Ok(())
}

fn missing(targets: &[Target]) -> Vec<String> {
    let mut commands = Vec::new();
    for target in targets {
        if output(Command::new(target.c_compiler).arg("--version")).is_err() {
            commands.push(format!("apt-get install {}", target.c_package));
        }
        if !has_standard_library(target) {
            commands.push(format!("rustup target add {}", target.triple));
        }
    }
    commands
}

/// Whether the compiler of this workspace has Rust's own libraries for a target.
fn has_standard_library(target: &Target) -> bool {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(compiler);
    rustc.args(["--print", "target-libdir", "--target", target.triple]).current_dir(cargo::root());
    let Ok(folder) = output(&mut rustc) else { return false };
    let folder = String::from_utf8_lossy(&folder);
    let Ok(files) = std::fs::read_dir(folder.trim()) else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

/// Builds the static program with a profile of Cargo.
pub fn program(target: Target, profile: &str, metadata: &Value, time: u64) -> Result<PathBuf> {
    let (root, home) = (cargo::root().canonicalize()?, cargo_home()?);
    // Nothing of this machine's folders in the program: two machines make the same one.
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let rust_flags = [remap(&root, "/capstan"), remap(&home, "/cargo")].join("\x1f");
    let c_map = |from: &Path, to: &str| format!("-ffile-prefix-map={}={to}", from.display());
    let c_flags = [target.c_flags.to_owned(), c_map(&root, "/capstan"), c_map(&home, "/cargo")].join(" ");
    let name = target.triple.replace('-', "_");
    let mut command = cargo::command();
    command
        .args(["build", "--locked", "--profile", profile, "--package", "capstan", "--target", target.triple])
        .env("SOURCE_DATE_EPOCH", time.to_string())
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags)
        .env(format!("CC_{name}"), target.c_compiler)
        .env(format!("CFLAGS_{name}"), c_flags)
        // Rust brings musl and what else a static program is linked from.
        .env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), "rust-lld");
    println!("release: building for {} …", target.triple);
    let status = command.status().context("run cargo build")?;
    ensure!(status.success(), "cargo build for {} ended with {status}", target.triple);
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    // Cargo's own name for the folder of its profile `dev`.
    let profile = if profile == "dev" { "debug" } else { profile };
    Ok(Path::new(folder).join(target.triple).join(profile).join("capstan"))
}

fn cargo_home() -> Result<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let default = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    named.or_else(default).context("neither CARGO_HOME nor HOME is set")
}

/// Man pages, completion scripts and definitions, as the program writes them.
pub fn made_by(program: &Path, folder: &Path) -> Result<Tree> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let program = program.canonicalize().with_context(|| program.display().to_string())?;
    output(Command::new(program).arg("release-files").arg("--to").arg(folder))?;
    let tree = Tree::read(folder)?;
    std::fs::remove_dir_all(folder)?;
    Ok(tree)
}

/// The commit, and when it was made.
pub fn commit() -> Result<(String, u64)> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%H %ct"]).current_dir(cargo::root());
    let text = String::from_utf8(output(&mut git)?)?;
    let (revision, time) = text.trim().split_once(' ').context("git log says no commit")?;
    Ok((revision.to_owned(), time.parse()?))
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TARGETS;

    #[test]
    fn what_is_missing_is_named_by_the_command_that_installs_it() {
        let absent = Target {
            triple: "nowhere-unknown-linux-musl",
            c_compiler: "nowhere-linux-gnu-gcc",
            c_package: "gcc-nowhere-linux-gnu",
            ..TARGETS[0]
        };
        let error = check_tools(&[absent]).unwrap_err().to_string();
        assert!(error.contains("\n  apt-get install gcc-nowhere-linux-gnu\n"), "{error}");
        assert!(error.contains("\n  rustup target add nowhere-unknown-linux-musl"), "{error}");
    }
}
