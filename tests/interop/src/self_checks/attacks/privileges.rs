//! What a server may do to its host: nothing, with the privileges that the unit file gives it.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::process::Command;

use super::{Attempt, Target};
use crate::bed::Server;
use crate::bed::ports::free_port;

/// `nobody`.
const USER: u32 = 65534;
/// Highest exposure that `systemd-analyze security` may find, times ten.
const EXPOSURE: &str = "15";
pub const UNIT: &str = "packaging/systemd/capstan.service";

pub const ALL: &[Attempt] = &[
    Attempt {
        name: "server without privileges",
        expected: "it serves as another user, without capabilities, with only its own directory writable",
        run: |target| Box::pin(unprivileged(target)),
    },
    Attempt {
        name: "unit file",
        expected: "systemd finds little that the server could do to its host",
        run: |_| Box::pin(unit()),
    },
];

/// A script that runs a program as the unit does, as far as that is possible without systemd: root is read-only but for
/// one directory, and the user cannot get any privilege.
fn confined(script: &Path, program: &Path, writable: &Path) -> Result<()> {
    let text = format!(
        "#!/bin/sh\n\
         exec unshare --mount --propagation private sh -ec '\n\
         mount --bind {dir} {dir}\n\
         mount -o remount,bind,ro /\n\
         for at in $(cut -d\" \" -f5 /proc/self/mountinfo | sort -r); do\n\
         case \"$at\" in {dir}|/proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro \"$at\" 2>/dev/null || : ;; esac\n\
         done\n\
         exec setpriv --reuid={USER} --regid={USER} --clear-groups --bounding-set=-all --inh-caps=-all \
         --ambient-caps=-all --no-new-privs \"$0\" \"$@\"' {program} \"$@\"\n",
        dir = writable.display(),
        program = program.display(),
    );
    std::fs::write(script, text)?;
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

async fn unprivileged(target: &Target) -> Result<()> {
    let folder = target.folder.join("unprivileged");
    std::fs::create_dir_all(&folder)?;
    // Everybody may enter what leads to it.
    for ancestor in folder.ancestors().filter(|path| path.starts_with("/tmp/")) {
        std::fs::set_permissions(ancestor, std::fs::Permissions::from_mode(0o755))?;
    }
    chown(&folder, Some(USER), Some(USER)).context("another user's directory needs root")?;
    let (script, shell) = (target.folder.join("as-the-unit"), target.folder.join("as-the-unit-sh"));
    confined(&script, &target.binary, &folder)?;
    confined(&shell, Path::new("/bin/sh"), &folder)?;

    // The walls are there: the same script cannot write elsewhere, and has no capability.
    let elsewhere = target.folder.join("elsewhere");
    let probe = format!(
        "! touch {} 2>/dev/null && ! touch /etc/x /tmp/x /var/x 2>/dev/null && touch {} && \
         grep -q '^CapEff:.*0000000000000000$' /proc/self/status && grep -q '^CapBnd:.*0000000000000000$' \
         /proc/self/status && grep -q '^NoNewPrivs:.*1$' /proc/self/status",
        elsewhere.display(),
        folder.join("own").display()
    );
    let probed = Command::new(&shell).args(["-c", &probe]).output().await?;
    let said = String::from_utf8_lossy(&probed.stderr).into_owned();
    ensure!(probed.status.success(), "the process is not confined: {said}");

    let server = Server::capstan(&folder, &script, free_port()?).await?;
    let api = server.api()?;
    let map = json!({"metadata": {"name": "a"}, "data": {"a": "b"}});
    api.post("/api/v1/namespaces/default/configmaps", &map).await?.success()?;
    let secret = json!({"metadata": {"name": "a"}, "stringData": {"a": "b"}});
    api.post("/api/v1/namespaces/default/secrets", &secret).await?.success()?;
    Ok(())
}

async fn unit() -> Result<()> {
    let unit = crate::cargo::root().join(UNIT);
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=true", "--no-pager", &format!("--threshold={EXPOSURE}")]).arg(unit);
    let output = command.output().await.context("systemd-analyze is missing: install the package systemd")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let level = said.lines().last().unwrap_or_default().to_owned();
    ensure!(output.status.success(), "{level}\n{said}");
    Ok(())
}
