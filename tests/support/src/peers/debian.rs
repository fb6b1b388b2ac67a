//! Packages of Debian, unpacked and never installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Downloads a package with apt and unpacks it into `folder`.
pub fn unpacked(package: &str, folder: &Path) -> Result<PathBuf> {
    let files = folder.join("files");
    if files.is_dir() {
        return Ok(files);
    }
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let download = || run(Command::new("apt-get").args(["download", package]).current_dir(folder));
    if download().is_err() {
        // The package index of a fresh machine is empty or outdated.
        run(Command::new("apt-get").args(["update", "--quiet"]))?;
        download()?;
    }
    let found = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let archive = found.filter(|path| path.extension().is_some_and(|end| end == "deb")).max();
    let archive = archive.with_context(|| format!("apt-get download {package} left no package"))?;
    let unfinished = folder.join("unfinished");
    run(Command::new("dpkg").arg("-x").arg(&archive).arg(&unfinished))?;
    std::fs::rename(&unfinished, &files)?;
    Ok(files)
}

/// Runs a program and prints its output if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = format!(
        "{} {}",
        command.get_program().display(),
        command.get_args().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    let output = command.output().with_context(|| format!("run {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
