//! The smaller modules.

use capstan_user_data::{is_true, python_type};
use serde_json::Value;

use super::{Config, Failed};
use crate::machine::Guest;
use crate::machine::files::{FileError, parent};

/// An error of the file system as Python prints it.
pub(super) fn errno(error: FileError, path: &str) -> Failed {
    format!("[Errno {}] {error}: '{path}'", error.number())
}

/// Writes a file and the directories above it.
pub(super) fn put(guest: &mut Guest<'_>, path: &str, content: &[u8], mode: u32) -> Result<(), Failed> {
    guest.files.write_deep(path, content, mode).map_err(|error| errno(error, path))
}

/// Writes to the end of a file.
pub(super) fn append(guest: &mut Guest<'_>, path: &str, content: &[u8]) -> Result<(), Failed> {
    let made = guest.files.make_directories(parent(path));
    made.and_then(|()| guest.files.append(path, content)).map_err(|error| errno(error, path))
}

fn list<'a>(config: &'a Config, field: &str) -> Result<&'a [Value], Failed> {
    match config.get(field) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(format!("Invalid type for {field}: expected list, got {}", python_type(other))),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Partitions and file systems: only validated, as there is no disk.
pub(super) fn disk_setup(_: &mut Guest<'_>, config: &Config) -> Result<(), Failed> {
    match config.get("disk_setup") {
        None | Some(Value::Null) => {}
        Some(Value::Object(disks)) => {
            for (device, disk) in disks {
                if let Some(table) = text(disk, "table_type").filter(|table| !matches!(*table, "mbr" | "gpt"))
                {
                    return Err(format!("Unable to determine table type: {table} ({device})"));
                }
            }
        }
        Some(other) => return Err(format!("Invalid type for disk_setup: {}", python_type(other))),
    }
    for system in list(config, "fs_setup")? {
        if text(system, "device").is_none() || text(system, "filesystem").is_none() {
            return Err("fs_setup: device and filesystem are needed".to_owned());
        }
    }
    Ok(())
}

/// Mounts become directories and lines of fstab.
pub(super) fn mounts(guest: &mut Guest<'_>, config: &Config) -> Result<(), Failed> {
    let mut lines = String::new();
    for mount in list(config, "mounts")? {
        let Some(parts) = mount.as_array() else {
            return Err(format!("Mount option not a list, got a {} instead", python_type(mount)));
        };
        let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
        let [device, point, options @ ..] = parts.as_slice() else { continue };
        if *point != "none" && *point != "swap" {
            guest.files.make_directories(point).map_err(|error| errno(error, point))?;
        }
        let device = if device.starts_with('/') || device.contains('=') {
            (*device).to_owned()
        } else {
            format!("LABEL={device}")
        };
        let options =
            if options.is_empty() { "auto defaults,nofail 0 2".to_owned() } else { options.join(" ") };
        lines.push_str(&format!("{device} {point} {options} # comment=cloudconfig\n"));
    }
    if lines.is_empty() { Ok(()) } else { append(guest, "/etc/fstab", lines.as_bytes()) }
}

pub(super) fn set_hostname(guest: &mut Guest<'_>, config: &Config) -> Result<(), Failed> {
    let name = ["fqdn", "hostname"].iter().find_map(|field| config.get(*field).and_then(Value::as_str));
    let keep = is_true(config.get("preserve_hostname"));
    let Some(name) = name.filter(|_| !keep) else { return Ok(()) };
    let short = config.get("hostname").and_then(Value::as_str).unwrap_or(name);
    let short = short.split('.').next().unwrap_or(short);
    guest.hostname = short.to_owned();
    put(guest, "/etc/hostname", format!("{short}\n").as_bytes(), 0o644)
}

pub(super) fn ca_certs(guest: &mut Guest<'_>, config: &Config) -> Result<(), Failed> {
    let section = config.get("ca_certs").or(config.get("ca-certs"));
    let trusted = section.and_then(|section| section.get("trusted")).and_then(Value::as_array);
    for (index, certificate) in trusted.into_iter().flatten().filter_map(Value::as_str).enumerate() {
        let path = format!("/usr/local/share/ca-certificates/cloud-init-ca-cert-{}.crt", index + 1);
        put(guest, &path, certificate.as_bytes(), 0o644)?;
    }
    Ok(())
}

pub(super) fn users_groups(guest: &mut Guest<'_>, config: &Config) -> Result<(), Failed> {
    for user in list(config, "users")? {
        let name = match user {
            Value::String(name) if name == "default" => continue,
            Value::String(name) => name.as_str(),
            Value::Object(_) => match text(user, "name") {
                Some(name) => name,
                None => return Err("'name' is a required property of a user".to_owned()),
            },
            other => return Err(format!("Unable to add a user of type {}", python_type(other))),
        };
        guest.users.insert(name.to_owned());
        let home = text(user, "homedir").map_or_else(|| format!("/home/{name}"), str::to_owned);
        guest.files.make_directories(&home).map_err(|error| errno(error, &home))?;
        let keys: Vec<&str> = user
            .get("ssh_authorized_keys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !keys.is_empty() {
            let path = format!("{home}/.ssh/authorized_keys");
            put(guest, &path, format!("{}\n", keys.join("\n")).as_bytes(), 0o600)?;
        }
        if let Some(rule) = text(user, "sudo") {
            append(guest, "/etc/sudoers.d/90-cloud-init-users", format!("{name} {rule}\n").as_bytes())?;
        }
    }
    Ok(())
}

pub(super) fn ntp(guest: &mut Guest<'_>, config: &Config) -> Result<(), Failed> {
    let Some(section) = config.get("ntp").filter(|section| !section.is_null()) else { return Ok(()) };
    if !section.is_object() {
        return Err(format!(
            "'ntp' key existed in config, but not a dictionary type, is a {} instead",
            python_type(section)
        ));
    }
    if section.get("enabled") == Some(&Value::Bool(false)) {
        return Ok(());
    }
    let servers =
        section.get("servers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let lines: String = servers.map(|server| format!("server {server} iburst\n")).collect();
    put(guest, "/etc/chrony/chrony.conf", lines.as_bytes(), 0o644)?;
    guest.services.insert("chrony.service".to_owned());
    Ok(())
}
