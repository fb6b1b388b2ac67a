//! The same life on a kernel of its own, with another arrangement of control groups than this host's: v2 and nothing else.
//!
//! User Mode Linux: the kernel is a process of this host, which needs no virtualisation and whose programs compute at
//! full speed. `user_mode.sh` is the recipe, `user_mode.config` what such a kernel must have.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::bed::process::at_signal;
use crate::node_image::{self, Release};

const RECIPE: &str = include_str!("user_mode.sh");
/// What a kernel must have, as its configuration says it, and then what it had better not have.
const CONFIG: &str = include_str!("user_mode.config");

/// Plays a life of a cluster on a kernel; its console is printed.
pub fn play(kernel: &Path, capstan: &Path, images: &Path, life: &[String]) -> Result<()> {
    let output = Command::new(kernel).arg("--showconfig").output();
    let output = output.with_context(|| format!("run {}", kernel.display()))?;
    let missing = missing(&String::from_utf8_lossy(&output.stdout));
    ensure!(
        missing.is_empty(),
        "{} is no kernel of User Mode Linux that serves here: it lacks {}; docs/dev/real-cluster.md tells how one is made",
        kernel.display(),
        missing.join(", ")
    );
    node_image::ensure(images)?;
    // Beside the images: what goes onto the disk is linked, not copied.
    let work = tempfile::Builder::new().prefix(".user-mode-").tempdir_in(images)?;
    let folder = work.path().to_owned();
    at_signal(move || drop(std::fs::remove_dir_all(folder)));
    let mut command = vec![std::env::current_exe()?.display().to_string(), "real-cluster".to_owned()];
    command.extend([format!("--capstan={}", capstan.display()), format!("--images={}", images.display())]);
    command.extend_from_slice(life);
    // It ends with this process, and what it starts ends with it.
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
        bail!("the life on that kernel did not come true ({status})");
    }
    Ok(())
}

/// What a kernel's configuration lacks of what it must have.
fn missing(config: &str) -> Vec<&'static str> {
    let has = |line: &str| config.lines().any(|it| it == line);
    let needed = CONFIG.lines().take_while(|line| !line.starts_with("# From here on"));
    needed.filter(|line| line.starts_with("CONFIG_") && !has(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_named() {
        assert_eq!(missing(CONFIG), Vec::<&str>::new());
        let without = CONFIG
            .replace("CONFIG_DEBUG_INFO_NONE=y", "")
            .replace("CONFIG_CPUSETS=y", "# CONFIG_CPUSETS is not set");
        assert_eq!(missing(&without), ["CONFIG_CPUSETS=y"]);
    }
}
