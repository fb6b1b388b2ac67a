//! The sections of a cloud-config other than files and commands.

use std::fmt::Write;

use capstan_capi_types::bootstrap::{DiskSetup, Filesystem, NTP, Partition, User};

use crate::yaml::scalar;

pub(super) fn ntp(out: &mut String, ntp: &NTP) {
    if *ntp == NTP::default() {
        return;
    }
    out.push_str("ntp:\n");
    if let Some(enabled) = ntp.enabled {
        let _ = writeln!(out, "  enabled: {enabled}");
    }
    list(out, "  servers", "    ", &ntp.servers);
}

fn list(out: &mut String, key: &str, indent: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "{key}:");
    for item in items {
        let _ = writeln!(out, "{indent}- {}", scalar(item));
    }
}

pub(super) fn users(out: &mut String, users: &[User]) {
    if users.is_empty() {
        return;
    }
    out.push_str("users:\n");
    for user in users {
        let _ = writeln!(out, "  - name: {}", scalar(&user.name));
        text(out, "    passwd", &user.passwd);
        text(out, "    gecos", &user.gecos);
        text(out, "    groups", &user.groups);
        text(out, "    homedir", &user.home_dir);
        flag(out, "    inactive", user.inactive);
        flag(out, "    lock_passwd", user.lock_password);
        text(out, "    shell", &user.shell);
        text(out, "    primary_group", &user.primary_group);
        text(out, "    sudo", &user.sudo);
        list(out, "    ssh_authorized_keys", "      ", &user.ssh_authorized_keys);
    }
}

fn text(out: &mut String, key: &str, value: &str) {
    if !value.is_empty() {
        let _ = writeln!(out, "{key}: {}", scalar(value));
    }
}

fn flag(out: &mut String, key: &str, value: Option<bool>) {
    if let Some(value) = value {
        let _ = writeln!(out, "{key}: {value}");
    }
}

pub(super) fn disk_setup(out: &mut String, setup: &DiskSetup) {
    if !setup.partitions.is_empty() {
        out.push_str("disk_setup:\n");
        setup.partitions.iter().for_each(|partition| write_partition(out, partition));
    }
    if !setup.filesystems.is_empty() {
        out.push_str("fs_setup:\n");
        setup.filesystems.iter().for_each(|filesystem| write_filesystem(out, filesystem));
    }
}

fn write_partition(out: &mut String, partition: &Partition) {
    let _ = writeln!(out, "  {}:", scalar(&partition.device));
    if let Some(table) = partition.table_type {
        let _ = writeln!(out, "    table_type: {table}");
    }
    if partition.disk_layout.is_empty() {
        let _ = writeln!(out, "    layout: {}", partition.layout.unwrap_or(false));
    } else {
        out.push_str("    layout:\n");
        for part in &partition.disk_layout {
            let _ = match part.partition_type.as_str() {
                "" => writeln!(out, "      - {}", part.percentage),
                kind => writeln!(out, "      - [{}, {}]", part.percentage, partition_code(kind)),
            };
        }
    }
    flag(out, "    overwrite", partition.overwrite);
}

/// Maps a named partition type to its code; other values are codes already. Quoted: `07` and `0c` would be read as numbers.
fn partition_code(kind: &str) -> String {
    match kind {
        "Linux" => "83".to_owned(),
        "LinuxSwap" => "82".to_owned(),
        "LinuxRAID" => "fd".to_owned(),
        "LVM" => "'8e'".to_owned(),
        "Fat32" => "'0c'".to_owned(),
        "NTFS" => "'07'".to_owned(),
        "LinuxExtended" => "85".to_owned(),
        code => scalar(code),
    }
}

fn write_filesystem(out: &mut String, filesystem: &Filesystem) {
    let _ = writeln!(out, "  - label: {}", scalar(&filesystem.label));
    let _ = writeln!(out, "    filesystem: {}", scalar(&filesystem.filesystem));
    let _ = writeln!(out, "    device: {}", scalar(&filesystem.device));
    text(out, "    partition", &filesystem.partition);
    flag(out, "    overwrite", filesystem.overwrite);
    text(out, "    replace_fs", &filesystem.replace_fs);
    list(out, "    extra_opts", "      ", &filesystem.extra_opts);
}

/// Mounts, as fstab lines.
pub(super) fn mounts(out: &mut String, mounts: &[Vec<String>]) {
    if mounts.is_empty() {
        return;
    }
    out.push_str("mounts:\n");
    for mount in mounts {
        for (index, part) in mount.iter().enumerate() {
            let lead = if index == 0 { "  - - " } else { "    - " };
            let _ = writeln!(out, "{lead}{}", scalar(part));
        }
    }
}
