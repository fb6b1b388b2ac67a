//! A Container Linux Config (Ignition in YAML with friendlier names), appended to our own.
//!
//! Sections with an equivalent in Ignition are translated: `ignition`, `passwd`, `storage`, `systemd`, `networkd`.
//! Sections that write units and files of specific programs (`etcd`, `flannel`, `docker`, `update`, `locksmith`) are
//! rejected.

use serde_json::{Map, Value, json};

use super::file::data_url;
use crate::Error;

/// Names that are not the snake-case form of Ignition's.
const TYPE_GUIDS: [(&str, &str); 4] = [
    ("raid_containing_root", "be9067b9-ea49-4f15-b4f6-f36f8c9e1818"),
    ("linux_filesystem_data", "0fc63daf-8483-4772-8e79-3d69d8477de4"),
    ("swap_partition", "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"),
    ("raid_partition", "a19d880f-05fc-4d3b-a006-743f0f84911e"),
];

/// A list in the configuration, the fields its entries may have, and how an entry is converted beyond renaming.
type List = (&'static str, &'static [&'static str], fn(&mut Value) -> Result<(), String>);

const LISTS: [List; 11] = [
    ("/passwd/users", USER, |_| Ok(())),
    ("/passwd/groups", &["name", "gid", "password_hash", "system"], |_| Ok(())),
    ("/systemd/units", &["name", "enable", "enabled", "mask", "contents", "dropins"], |_| Ok(())),
    ("/networkd/units", &["name", "contents", "dropins"], |_| Ok(())),
    ("/storage/disks", &["device", "wipe_table", "partitions"], disk),
    ("/storage/raid", &["name", "level", "devices", "spares", "options"], |_| Ok(())),
    ("/storage/filesystems", &["name", "mount", "path"], |_| Ok(())),
    ("/storage/files", FILE, file),
    ("/storage/directories", &["filesystem", "path", "user", "group", "mode", "overwrite"], |entry| {
        node(entry, 0o755);
        Ok(())
    }),
    ("/storage/links", &["filesystem", "path", "user", "group", "hard", "target", "overwrite"], |entry| {
        entry.as_object_mut().map(|link| link.entry("filesystem").or_insert_with(|| "root".into()));
        Ok(())
    }),
    ("/ignition/security/tls/certificate_authorities", &["source", "verification"], verified),
];

const USER: &[&str] = &[
    "name",
    "password_hash",
    "ssh_authorized_keys",
    "create",
    "uid",
    "gecos",
    "home_dir",
    "no_create_home",
    "primary_group",
    "groups",
    "no_user_group",
    "system",
    "no_log_init",
    "shell",
];
const FILE: &[&str] = &["filesystem", "path", "user", "group", "mode", "contents", "overwrite", "append"];
const UNSUPPORTED: [&str; 5] = ["etcd", "flannel", "docker", "update", "locksmith"];
const SECTIONS: [&str; 6] = ["version", "ignition", "passwd", "storage", "systemd", "networkd"];

/// Appends the user's configuration. An unknown field is an error in strict mode and ignored otherwise.
pub(super) fn append(config: &mut Value, text: &str, strict: bool) -> Result<(), Error> {
    translate(config, text, strict).map_err(Error::ContainerLinuxConfig)
}

fn translate(config: &mut Value, text: &str, strict: bool) -> Result<(), String> {
    // Modes are octal numbers with a leading zero.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let given: Value =
        serde_saphyr::from_str_with_options(text, options).map_err(|_| "is not valid YAML".to_owned())?;
    let given = match given {
        Value::Null => return Ok(()),
        Value::Object(_) => given,
        _ => return Err("is not a mapping".to_owned()),
    };
    for section in UNSUPPORTED {
        if given.get(section).is_some_and(|section| !section.is_null()) {
            return Err(format!("section {section} is not supported: write its units and files instead"));
        }
    }
    check_fields(&given, &SECTIONS, "", strict)?;
    for (path, known, finish) in LISTS {
        let Some(entries) = given.pointer(path) else { continue };
        let entries = entries.as_array().ok_or_else(|| format!("{path} is not a list"))?;
        let mut out = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let place = format!("{path}/{index}");
            check_fields(entry, known, &place, strict)?;
            let mut entry = renamed(&only(entry, known));
            finish(&mut entry).map_err(|message| format!("{place}: {message}"))?;
            out.push(entry);
        }
        append_list(config, &camel_path(path), out);
    }
    if let Some(references) = given.pointer("/ignition/config") {
        let mut references = renamed(references);
        for reference in references.as_object_mut().into_iter().flat_map(Map::values_mut) {
            match reference {
                Value::Array(list) => list.iter_mut().try_for_each(verified)?,
                single => verified(single)?,
            }
        }
        config["ignition"]["config"] = references;
    }
    if let Some(timeouts) = given.pointer("/ignition/timeouts").and_then(Value::as_object) {
        for (key, value) in timeouts {
            // Ignition writes acronyms in lower case: httpResponseHeaders.
            config["ignition"]["timeouts"][camel(key)] = value.clone();
        }
    }
    Ok(())
}

fn check_fields(value: &Value, known: &[&str], place: &str, strict: bool) -> Result<(), String> {
    let fields = value.as_object().ok_or_else(|| format!("{place} is not a mapping"))?;
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(unknown) if strict => Err(format!("{place}/{unknown} is unknown")),
        _ => Ok(()),
    }
}

fn only(value: &Value, known: &[&str]) -> Value {
    let fields = value.as_object().into_iter().flatten();
    let kept = fields.filter(|(key, value)| known.contains(&key.as_str()) && !value.is_null());
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Converts all keys to camel case.
fn renamed(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (camel(key), renamed(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(renamed).collect()),
        other => other.clone(),
    }
}

fn camel(key: &str) -> String {
    let mut parts = key.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut chars = part.chars();
        out.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}

fn camel_path(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(camel).collect()
}

fn append_list(config: &mut Value, path: &[String], entries: Vec<Value>) {
    let mut target = config;
    for name in path {
        target = &mut target[name.as_str()];
    }
    match target {
        Value::Array(list) => list.extend(entries),
        other => *other = entries.into(),
    }
}

fn node(entry: &mut Value, mode: u32) {
    if let Some(fields) = entry.as_object_mut() {
        fields.entry("filesystem").or_insert_with(|| "root".into());
        fields.entry("mode").or_insert_with(|| mode.into());
    }
}

fn file(entry: &mut Value) -> Result<(), String> {
    node(entry, 0o644);
    let contents = entry["contents"].take();
    let given = |pointer: &str| contents.pointer(pointer).and_then(Value::as_str).filter(|s| !s.is_empty());
    let source = match (given("/inline"), given("/remote/url"), given("/local")) {
        (_, _, Some(_)) => return Err("local files cannot be read here".to_owned()),
        (Some(_), Some(_), _) => return Err("has both inline and remote content".to_owned()),
        (Some(text), None, None) => data_url(text.as_bytes()),
        (None, Some(url), None) => url.to_owned(),
        (None, None, None) => data_url(b""),
    };
    let mut out = json!({"source": source});
    if let Some(compression) = given("/remote/compression") {
        out["compression"] = compression.into();
    }
    out["verification"] = contents.pointer("/remote/verification").cloned().unwrap_or_else(|| json!({}));
    verified(&mut out)?;
    entry["contents"] = out;
    Ok(())
}

/// Ignition has one string for a hash: `sha512-…`.
fn verified(entry: &mut Value) -> Result<(), String> {
    let hash = entry.pointer("/verification/hash").cloned().unwrap_or_default();
    let part = |name: &str| hash.get(name).and_then(Value::as_str).filter(|part| !part.is_empty());
    entry["verification"] = match (part("function"), part("sum")) {
        (Some(function), Some(sum)) => json!({"hash": format!("{function}-{sum}")}),
        _ => json!({}),
    };
    Ok(())
}

fn disk(entry: &mut Value) -> Result<(), String> {
    for partition in entry.get_mut("partitions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(fields) = partition.as_object_mut() else {
            return Err("a partition is not a mapping".to_owned());
        };
        for (from, to) in [("size", "sizeMiB"), ("start", "startMiB")] {
            if let Some(size) = fields.remove(from) {
                fields.insert(to.to_owned(), mebibytes(&size)?.into());
            }
        }
        if let Some(Value::String(kind)) = fields.get_mut("typeGuid")
            && let Some((_, guid)) = TYPE_GUIDS.iter().find(|(name, _)| name == kind)
        {
            *kind = (*guid).to_owned();
        }
    }
    Ok(())
}

fn mebibytes(size: &Value) -> Result<u64, String> {
    const MEBIBYTE: u64 = 1 << 20;
    let text = match size {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: Option<u64> = match unit {
        "" | "B" => Some(1),
        "KB" | "KiB" => Some(1 << 10),
        "MB" | "MiB" => Some(1 << 20),
        "GB" | "GiB" => Some(1 << 30),
        "TB" | "TiB" => Some(1 << 40),
        _ => None,
    };
    let bytes =
        number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    match bytes {
        Some(bytes) if bytes % MEBIBYTE == 0 => Ok(bytes / MEBIBYTE),
        Some(_) => Err(format!("{text} is not a whole number of mebibytes")),
        None => Err(format!("{text:?} is not a size such as 512MiB")),
    }
}
