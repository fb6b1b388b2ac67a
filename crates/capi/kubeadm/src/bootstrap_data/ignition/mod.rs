//! Bootstrap data for Ignition, in the format that Flatcar reads (2.3).
//!
//! `kubeadm.service` runs `/etc/kubeadm.sh` once: kubeadm's configuration file is the unit's condition and is moved
//! away afterwards. Mounts become units. The user's Container Linux Config is appended last; see [`container_linux`].

mod container_linux;
mod file;
#[cfg(test)]
mod tests;
mod unit;

use capstan_capi_types::bootstrap::{DiskSetup, Filesystem, Partition, User};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::bootstrap_data::data::{BootstrapData, KubeadmCommand, SENTINEL};
use file::{inline, user_file};

const CONFIG: &str = "/etc/kubeadm.yml";
const SCRIPT: &str = "/etc/kubeadm.sh";

pub(crate) fn render(data: &BootstrapData<'_>) -> Result<Vec<u8>, Error> {
    let spec = data.spec;
    let mut units = vec![unit::kubeadm()];
    if spec.ntp.enabled == Some(true) {
        units.push(json!({"name": "ntpd.service", "enabled": true}));
    }
    for mount in &spec.mounts {
        units.push(unit::mount(mount, &spec.disk_setup)?);
    }

    let mut files = Vec::new();
    for user in data.users.iter().filter(|user| !user.sudo.is_empty()) {
        let path = format!("/etc/sudoers.d/{}", user.name);
        files.push(inline(&path, 0o600, &format!("{} {}\n", user.name, user.sudo)));
    }
    files.extend(password_logins(&data.users));
    for file in data.all_files() {
        files.push(user_file(file)?);
    }
    files.push(inline(SCRIPT, 0o700, &script(data)));
    files.push(inline(CONFIG, 0o600, &kubeadm_config(&data.run)));
    if spec.ntp.enabled == Some(true) && !spec.ntp.servers.is_empty() {
        files.push(inline("/etc/ntp.conf", 0o644, &ntp(&spec.ntp.servers)));
    }

    let mut storage = disks(&spec.disk_setup)?;
    storage.insert("files".to_owned(), files.into());
    let users: Vec<Value> = data.users.iter().map(user).collect();
    let mut config = json!({
        "ignition": {"config": {}, "security": {"tls": {}}, "timeouts": {}, "version": "2.3.0"},
        "networkd": {},
        "passwd": if users.is_empty() { json!({}) } else { json!({"users": users}) },
        "storage": storage,
        "systemd": {"units": units},
    });
    let additional = &spec.ignition.container_linux_config;
    if !additional.additional_config.is_empty() {
        container_linux::append(
            &mut config,
            &additional.additional_config,
            additional.strict.unwrap_or(false),
        )?;
    }
    serde_json::to_vec(&config).map_err(|_| Error::Encoding("the Ignition configuration"))
}

fn kubeadm_config(run: &KubeadmCommand) -> String {
    match run {
        KubeadmCommand::Init { cluster_configuration, init_configuration } => {
            format!("---\n{cluster_configuration}---\n{init_configuration}")
        }
        KubeadmCommand::JoinControlPlane { join_configuration }
        | KubeadmCommand::JoinWorker { join_configuration } => {
            format!("---\n{join_configuration}")
        }
    }
}

fn script(data: &BootstrapData<'_>) -> String {
    let verb = if matches!(data.run, KubeadmCommand::Init { .. }) { "init" } else { "join" };
    let mut lines = vec!["#!/bin/bash".to_owned(), "set -e".to_owned(), String::new()];
    lines.extend(data.spec.pre_kubeadm_commands.iter().cloned());
    lines.push(String::new());
    lines.push(format!("kubeadm {verb} --config {CONFIG}{}", data.verbosity()));
    lines.push(format!("mkdir -p /run/cluster-api && {SENTINEL}"));
    lines.push(format!("mv {CONFIG} /tmp/"));
    lines.push(String::new());
    lines.extend(data.spec.post_kubeadm_commands.iter().cloned());
    format!("{}\n", lines.join("\n").trim_end())
}

/// Flatcar's sshd accepts passwords only for users it is configured for.
fn password_logins(users: &[User]) -> Option<Value> {
    let names: Vec<&str> = users
        .iter()
        .filter(|user| user.lock_password == Some(false))
        .map(|user| user.name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let config = format!(
        "Subsystem sftp internal-sftp\nClientAliveInterval 180\nUseDNS no\nUsePAM yes\nPrintLastLog no\n\
         PrintMotd no\n\nMatch User {}\n  PasswordAuthentication yes\n",
        names.join(",")
    );
    Some(inline("/etc/ssh/sshd_config", 0o600, &config))
}

/// NTP servers; other hosts may only query the time.
fn ntp(servers: &[String]) -> String {
    let mut out: String = servers.iter().map(|server| format!("server {server}\n")).collect();
    out.push_str("\nrestrict default nomodify nopeer noquery notrap limited kod\n");
    out.push_str("restrict 127.0.0.1\nrestrict [::1]\n");
    out
}

fn user(user: &User) -> Value {
    let mut out = Map::new();
    for (key, value) in [
        ("name", &user.name),
        ("gecos", &user.gecos),
        ("homeDir", &user.home_dir),
        ("shell", &user.shell),
        ("passwordHash", &user.passwd),
        ("primaryGroup", &user.primary_group),
    ] {
        if !value.is_empty() {
            out.insert(key.to_owned(), value.clone().into());
        }
    }
    let groups: Vec<&str> = user.groups.split(',').map(str::trim).filter(|group| !group.is_empty()).collect();
    if !groups.is_empty() {
        out.insert("groups".to_owned(), groups.into());
    }
    if !user.ssh_authorized_keys.is_empty() {
        out.insert("sshAuthorizedKeys".to_owned(), user.ssh_authorized_keys.clone().into());
    }
    out.into()
}

fn disks(setup: &DiskSetup) -> Result<Map<String, Value>, Error> {
    let mut storage = Map::new();
    if !setup.partitions.is_empty() {
        let disks: Vec<Value> = setup.partitions.iter().map(disk).collect::<Result<_, _>>()?;
        storage.insert("disks".to_owned(), disks.into());
    }
    if !setup.filesystems.is_empty() {
        let filesystems: Vec<Value> = setup.filesystems.iter().map(filesystem).collect();
        storage.insert("filesystems".to_owned(), filesystems.into());
    }
    Ok(storage)
}

fn disk(partition: &Partition) -> Result<Value, Error> {
    if !partition.disk_layout.is_empty() {
        return Err(Error::ContainerLinuxConfig(format!(
            "disk {}: Ignition knows sizes, not percentages: describe the partitions here instead of in diskLayout",
            partition.device
        )));
    }
    let mut disk = json!({"device": partition.device});
    if partition.overwrite == Some(true) {
        disk["wipeTable"] = true.into();
    }
    if partition.layout == Some(true) {
        // One partition that covers the whole disk.
        disk["partitions"] = json!([{}]);
    }
    Ok(disk)
}

fn filesystem(filesystem: &Filesystem) -> Value {
    let mut mount = json!({
        "device": filesystem.device, "format": filesystem.filesystem, "label": filesystem.label,
    });
    if filesystem.overwrite == Some(true) {
        mount["wipeFilesystem"] = true.into();
    }
    if !filesystem.extra_opts.is_empty() {
        mount["options"] = filesystem.extra_opts.clone().into();
    }
    json!({"name": filesystem.label, "mount": mount})
}
