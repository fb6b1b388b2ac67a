//! Runs the suite on a kernel with cgroup v2 only, whatever this host has.
//!
//! User Mode Linux runs the kernel as a process of this host. It needs no virtualisation and its programs run at full
//! speed. `user_mode.sh` is the recipe, `user_mode.config` the required kernel configuration.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::bed::process::at_signal;
use crate::node_image::{self, Release};

const RECIPE: &str = include_str!("user_mode.sh");
/// Required options of the kernel configuration, followed by options that are better off.
const CONFIG: &str = include_str!("user_mode.config");

/// Runs the suite on a kernel and prints its console.
pub fn run_on(kernel: &Path, capstan: &Path, images: &Path, arguments: &[String]) -> Result<()> {
    let output = Command::new(kernel).arg("--showconfig").output();
    let output = output.with_context(|| format!("run {}", kernel.display()))?;
    let missing = missing(&String::from_utf8_lossy(&output.stdout));
    ensure!(
        missing.is_empty(),
        "{} cannot be used as a User Mode Linux kernel: it lacks {}; docs/dev/real-cluster.md describes how to build one",
        kernel.display(),
        missing.join(", ")
    );
    node_image::ensure(images)?;
    // On the file system of the images: they are linked into the disk, not copied.
    let work = tempfile::Builder::new().prefix(".user-mode-").tempdir_in(images)?;
    let folder = work.path().to_owned();
    at_signal(move || drop(std::fs::remove_dir_all(folder)));
    let mut command = vec![std::env::current_exe()?.display().to_string(), "real-cluster".to_owned()];
    command.extend([format!("--capstan={}", capstan.display()), format!("--images={}", images.display())]);
    command.extend_from_slice(arguments);
    // The kernel ends with this process, and its processes with it.
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "sh", "-c", RECIPE])
        .env("WORK", work.path())
        .env("KERNEL", std::path::absolute(kernel)?)
        .env("IMAGES", images)
        .env("DEBIAN", images.join("debian-bookworm"))
        .env("IMAGE", images.join(format!("kubernetes-{}", Release::Current.version())))
        .env("COMMAND", command.join(" "))
        .status()
        .context("run setpriv (of util-linux)")?;
    if !status.success() {
        bail!("the run on that kernel failed ({status})");
    }
    Ok(())
}

/// Required options that a kernel configuration lacks.
fn missing(config: &str) -> Vec<&'static str> {
    let has = |line: &str| config.lines().any(|it| it == line);
    let needed = CONFIG.lines().take_while(|line| !line.starts_with("# From here on"));
    needed.filter(|line| line.starts_with("CONFIG_") && !has(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_kernel_options_are_named() {
        assert_eq!(missing(CONFIG), Vec::<&str>::new());
        let without = CONFIG
            .replace("CONFIG_DEBUG_INFO_NONE=y", "")
            .replace("CONFIG_CPUSETS=y", "# CONFIG_CPUSETS is not set");
        assert_eq!(missing(&without), ["CONFIG_CPUSETS=y"]);
    }
}
