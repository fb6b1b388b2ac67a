//! systemd units.

use capstan_capi_types::bootstrap::DiskSetup;
use serde_json::{Value, json};

use super::{CONFIG, SCRIPT};
use crate::Error;

pub(super) fn kubeadm() -> Value {
    let contents = format!(
        "[Unit]\nDescription=kubeadm\nConditionPathExists={CONFIG}\nAfter=network.target\n\
         [Service]\nType=oneshot\nExecStart={SCRIPT}\n\
         [Install]\nWantedBy=multi-user.target\n"
    );
    json!({"name": "kubeadm.service", "enabled": true, "contents": contents})
}

/// A mount: filesystem label, mount point, options.
pub(super) fn mount(mount: &[String], setup: &DiskSetup) -> Result<Value, Error> {
    let [label, point, options @ ..] = mount else {
        return Err(Error::Mount("a mount needs the label of a file system and a mount point".to_owned()));
    };
    let filesystem = setup.filesystems.iter().find(|filesystem| filesystem.label == *label);
    let device = &filesystem
        .ok_or_else(|| Error::Mount(format!("no file system of diskSetup has the label {label:?}")))?
        .device;
    let mut contents =
        format!("[Unit]\nDescription=Mount {label}\n\n[Mount]\nWhat={device}\nWhere={point}\n");
    if !options.is_empty() {
        contents.push_str(&format!("Options={}\n", options.join(",")));
    }
    contents.push_str("\n[Install]\nWantedBy=multi-user.target\n");
    Ok(json!({"name": format!("{}.mount", unit_name(point)), "enabled": true, "contents": contents}))
}

/// Escapes a path to a unit name; systemd rejects a mount unit whose name does not match its path.
fn unit_name(path: &str) -> String {
    let trimmed = path.trim_matches('/');
    if trimmed.is_empty() {
        return "-".to_owned();
    }
    let mut out = String::new();
    for (index, c) in trimmed.chars().enumerate() {
        match c {
            '/' => out.push('-'),
            '.' if index == 0 => out.push_str("\\x2e"),
            c if c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '.') => out.push(c),
            c => c.to_string().bytes().for_each(|byte| out.push_str(&format!("\\x{byte:02x}"))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::unit_name;

    #[test]
    fn names_of_mounts_are_escaped_as_systemd_does() {
        for (path, name) in [
            ("/var/lib/etcd", "var-lib-etcd"),
            ("/var/lib/my-data/", "var-lib-my\\x2ddata"),
            ("/.hidden", "\\x2ehidden"),
            ("/", "-"),
        ] {
            assert_eq!(unit_name(path), name);
        }
    }
}
