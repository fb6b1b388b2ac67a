//! Ignition: files, users and units before the system starts, then the units that are enabled.
//!
//! Specifications 2.x (Flatcar, which Cluster API writes) and 3.x. A failure leaves the machine in its emergency
//! shell: nothing after it runs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_user_data::{Gunzip, gunzip};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256, Sha512};

use super::Guest;
use super::files::parent;
use super::shell::Io;
use super::systemd::UNITS;

/// Files, directories, links and units of one configuration.
const MOST: usize = 5_000;
/// Bytes of one file.
const LARGEST: usize = 16 * 1024 * 1024;
/// Configurations within configurations.
const DEPTH: usize = 4;
/// Written by the cloud-specific agents of Flatcar for units.
const METADATA: &str = "/run/metadata/flatcar";

type Fields = Map<String, Value>;

/// Executes an Ignition configuration.
pub(super) async fn run(guest: &mut Guest<'_>, config: &Fields) {
    guest.screen.written_by("ignition[512]");
    guest.screen.line("INFO     : Ignition 2.22.0");
    guest.screen.line("INFO     : Stage: files");
    if let Err(why) = apply(guest, config, 0) {
        return failed(guest, &why);
    }
    guest.screen.line("INFO     : Ignition finished successfully");
    start_units(guest, config).await;
}

/// The machine stays in the emergency shell.
pub(super) fn failed(guest: &mut Guest<'_>, why: &str) {
    guest.screen.written_by("ignition[512]");
    guest.fail(&format!("CRITICAL : Ignition failed: {why}"));
    guest.screen.written_by("systemd[1]");
    guest.screen.line("You are in emergency mode.");
}

fn list<'a>(config: &'a Fields, section: &str, field: &str) -> Result<&'a [Value], String> {
    let found = match config.get(section) {
        None | Some(Value::Null) => return Ok(&[]),
        Some(Value::Object(section)) => section.get(field),
        Some(_) => return Err(format!("failed to parse config: {section} is not an object")),
    };
    match found {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) if items.len() <= MOST => Ok(items),
        Some(Value::Array(_)) => {
            Err(format!("failed to parse config: {section}.{field} has more than {MOST} entries"))
        }
        Some(_) => Err(format!("failed to parse config: {section}.{field} is not a list")),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Major version of the specification.
fn specification(config: &Fields) -> Result<u8, String> {
    let version = config.get("ignition").map_or("", |ignition| text(ignition, "version"));
    let known = |prefix: &str, last: u64| {
        let minor = version.strip_prefix(prefix).and_then(|rest| rest.split('.').next()?.parse::<u64>().ok());
        minor.is_some_and(|minor| minor <= last)
    };
    if known("2.", 4) {
        Ok(2)
    } else if known("3.", 5) {
        Ok(3)
    } else {
        Err("failed to parse config: unsupported config version".to_owned())
    }
}

fn apply(guest: &mut Guest<'_>, config: &Fields, depth: usize) -> Result<(), String> {
    let version = specification(config)?;
    if depth > DEPTH {
        return Err("failed to parse config: configurations are nested too deeply".to_owned());
    }
    merge(guest, config, depth)?;
    users(guest, config)?;
    for directory in list(config, "storage", "directories")? {
        let path = absolute(directory)?;
        guest.files.make_directories(path).map_err(|error| refused("creating directory", path, error))?;
        attributes(guest, directory, path, 0o755)?;
    }
    for file in list(config, "storage", "files")? {
        write(guest, config, file, version)?;
    }
    for link in list(config, "storage", "links")? {
        let path = absolute(link)?;
        let _ = guest.files.remove(path, false);
        let made = guest.files.make_directories(parent(path));
        made.and_then(|()| guest.files.link(text(link, "target"), path))
            .map_err(|error| refused("creating link", path, error))?;
    }
    for unit in list(config, "systemd", "units")? {
        write_unit(guest, unit)?;
    }
    Ok(())
}

/// Applies referenced configurations; only inline ones are available.
fn merge(guest: &mut Guest<'_>, config: &Fields, depth: usize) -> Result<(), String> {
    let Some(references) = config.get("ignition").and_then(|ignition| ignition.get("config")) else {
        return Ok(());
    };
    let mut all: Vec<&Value> = Vec::new();
    for field in ["append", "merge"] {
        all.extend(references.get(field).and_then(Value::as_array).into_iter().flatten());
    }
    all.extend(references.get("replace").filter(|replace| !text(replace, "source").is_empty()));
    for reference in all {
        let bytes = contents(reference).map_err(|why| format!("failed to fetch config: {why}"))?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(inner)) => apply(guest, &inner, depth + 1)?,
            _ => return Err("failed to parse config: a referenced config is not valid".to_owned()),
        }
    }
    Ok(())
}

fn absolute(node: &Value) -> Result<&str, String> {
    match text(node, "path") {
        path if path.starts_with('/') => Ok(path),
        path => Err(format!("failed to parse config: path {path:?} not absolute")),
    }
}

fn refused(what: &str, path: &str, error: impl std::fmt::Display) -> String {
    format!("failed to create files: {what} {path:?}: {error}")
}

/// Content of a file: only data URLs are available without a network.
fn contents(node: &Value) -> Result<Vec<u8>, String> {
    let source = text(node, "source");
    if source.is_empty() {
        return Ok(Vec::new());
    }
    let Some(data) = source.strip_prefix("data:") else {
        let host =
            source.split_once("://").map_or(source, |(_, rest)| rest).split('/').next().unwrap_or_default();
        return Err(format!("GET error: dial tcp: lookup {host}: no such host"));
    };
    let (kind, data) = data.split_once(',').ok_or("invalid data URL")?;
    let decoded: Vec<u8> = percent_decode_str(data).collect();
    let bytes = if kind.ends_with(";base64") {
        STANDARD.decode(&decoded).map_err(|_| "invalid data URL: illegal base64 data")?
    } else {
        decoded
    };
    let bytes = match text(node, "compression") {
        "" => bytes,
        "gzip" => gunzip(&bytes, LARGEST).map_err(|error| match error {
            Gunzip::Broken => "gzip: invalid header".to_owned(),
            Gunzip::TooLong => format!("the file is larger than {LARGEST} bytes"),
        })?,
        other => return Err(format!("invalid compression method {other:?}")),
    };
    let expected = node.get("verification").map_or("", |verification| text(verification, "hash"));
    let hex = |digest: &[u8]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sum = match expected.split_once('-') {
        Some(("sha512", _)) => format!("sha512-{}", hex(&Sha512::digest(&bytes))),
        Some(("sha256", _)) => format!("sha256-{}", hex(&Sha256::digest(&bytes))),
        Some((function, _)) => return Err(format!("unsupported hash function {function:?}")),
        None => return Ok(bytes),
    };
    if sum == expected { Ok(bytes) } else { Err("hash verification failed".to_owned()) }
}

fn write(guest: &mut Guest<'_>, config: &Fields, file: &Value, version: u8) -> Result<(), String> {
    let path = absolute(file)?;
    if version == 2 {
        let filesystem = text(file, "filesystem");
        let known = filesystem == "root"
            || list(config, "storage", "filesystems")?.iter().any(|held| text(held, "name") == filesystem);
        if !known {
            return Err(format!(
                "failed to create files: filesystem {filesystem:?} of {path:?} is not defined"
            ));
        }
    }
    let failed = |why: String| refused("writing file", path, why);
    let mode = mode(file, 0o644);
    let mut parts = Vec::new();
    // In version 2 one content is appended, in version 3 there is a list of them.
    let mut replaces = version == 3 || file.get("append") != Some(&Value::Bool(true));
    match file.get("contents") {
        Some(Value::Object(_)) => parts.push(contents(&file["contents"]).map_err(failed)?),
        _ if version == 3 => replaces = false,
        _ => parts.push(Vec::new()),
    }
    if let Some(Value::Array(appended)) = file.get("append") {
        for part in appended {
            parts.push(contents(part).map_err(failed)?);
        }
    }
    let content: Vec<u8> = parts.concat();
    let text = String::from_utf8_lossy(&content);
    if mode & 0o077 == 0 && !text.starts_with("#!") {
        guest.screen.hide(&text);
    }
    let overwrite = file.get("overwrite").and_then(Value::as_bool).unwrap_or(version == 2);
    if replaces && !overwrite && guest.files.exists(path) {
        return Err(failed("a file exists there already and overwrite is false".to_owned()));
    }
    guest.files.make_directories(parent(path)).map_err(|error| failed(error.lower()))?;
    let written =
        if replaces { guest.files.write(path, &content) } else { guest.files.append(path, &content) };
    written.map_err(|error| failed(error.lower()))?;
    guest.screen.line(&format!("INFO     : files: createFiles: [finished] writing file {path:?}"));
    attributes(guest, file, path, 0o644)
}

fn mode(node: &Value, default: u32) -> u32 {
    let given = node.get("mode").and_then(Value::as_u64).and_then(|mode| u32::try_from(mode).ok());
    given.filter(|mode| *mode <= 0o7777).unwrap_or(default)
}

fn attributes(guest: &mut Guest<'_>, node: &Value, path: &str, default: u32) -> Result<(), String> {
    let name = |field: &str| {
        let owner = node.get(field)?;
        owner
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .or_else(|| Some(owner.get("id")?.to_string()))
    };
    if let Some(user) =
        name("user").filter(|user| user.parse::<u32>().is_err() && !guest.users.contains(user))
    {
        return Err(refused("setting owner of", path, format!("no such user {user:?}")));
    }
    let owner = format!(
        "{}:{}",
        name("user").unwrap_or("root".to_owned()),
        name("group").unwrap_or("root".to_owned())
    );
    let set =
        guest.files.set_mode(path, mode(node, default)).and_then(|()| guest.files.set_owner(path, &owner));
    set.map_err(|error| refused("setting attributes of", path, error))
}

fn users(guest: &mut Guest<'_>, config: &Fields) -> Result<(), String> {
    for user in list(config, "passwd", "users")? {
        let name = text(user, "name");
        if name.is_empty() {
            return Err("failed to parse config: a user needs a name".to_owned());
        }
        guest.screen.hide(text(user, "passwordHash"));
        guest.users.insert(name.to_owned());
        let home = match text(user, "homeDir") {
            "" => format!("/home/{name}"),
            home => home.to_owned(),
        };
        let keys: Vec<&str> = user
            .get("sshAuthorizedKeys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let made = guest.files.make_directories(&home).and_then(|()| {
            if keys.is_empty() {
                return Ok(());
            }
            guest.files.write_deep(&format!("{home}/.ssh/authorized_keys"), keys.join("\n").as_bytes(), 0o600)
        });
        made.map_err(|error| format!("failed to create users/groups: {name}: {error}"))?;
    }
    Ok(())
}

fn is_unit_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name.contains('.')
}

fn write_unit(guest: &mut Guest<'_>, unit: &Value) -> Result<(), String> {
    let name = text(unit, "name");
    if !is_unit_name(name) {
        return Err(format!("failed to parse config: invalid systemd unit name {name:?}"));
    }
    let path = format!("{UNITS}/{name}");
    let failed =
        |error: super::files::FileError| format!("failed to create units: {name}: {}", error.lower());
    let content = text(unit, "contents");
    if !content.is_empty() {
        guest.files.write_deep(&path, content.as_bytes(), 0o644).map_err(failed)?;
        guest.screen.line(&format!("INFO     : files: createUnits: [finished] writing unit {name:?}"));
    }
    for drop_in in unit.get("dropins").and_then(Value::as_array).into_iter().flatten() {
        let file = format!("{path}.d/{}", text(drop_in, "name").replace('/', "-"));
        guest.files.write_deep(&file, text(drop_in, "contents").as_bytes(), 0o644).map_err(failed)?;
    }
    Ok(())
}

/// Starts the enabled units, each after its dependencies.
async fn start_units(guest: &mut Guest<'_>, config: &Fields) {
    let metadata = format!(
        "COREOS_CUSTOM_HOSTNAME={0}\nCOREOS_OPENSTACK_HOSTNAME={0}\nCOREOS_CLOUDSTACK_LOCAL_HOSTNAME={0}\n\
         COREOS_OPENSTACK_INSTANCE_ID={1}\nCOREOS_CLOUDSTACK_INSTANCE_ID={1}\nCOREOS_OPENSTACK_IPV4_LOCAL={2}\n\
         COREOS_CLOUDSTACK_IPV4_LOCAL={2}\n",
        guest.hostname, guest.vm.id, guest.address
    );
    // In memory, which is never full.
    let _ = guest.files.write_deep(METADATA, metadata.as_bytes(), 0o644);
    let enabled = |unit: &&Value| {
        let on = |field: &str| unit.get(field) == Some(&Value::Bool(true));
        (on("enabled") || on("enable")) && !on("mask")
    };
    let units = list(config, "systemd", "units").unwrap_or_default();
    let mut waiting: Vec<String> =
        units.iter().filter(enabled).map(|unit| text(unit, "name").to_owned()).collect();
    while !waiting.is_empty() {
        let ready = waiting.iter().position(|name| {
            let after = guest.unit(name).map(|unit| unit.after).unwrap_or_default();
            !after.iter().any(|before| before != name && waiting.contains(before))
        });
        // Units in a cycle start in the order of the file, as systemd breaks cycles.
        let name = waiting.remove(ready.unwrap_or(0));
        if !name.ends_with(".service") {
            continue;
        }
        guest.screen.written_by("systemd[1]");
        guest.screen.line(&format!("Starting {name}..."));
        let base = name.trim_end_matches(".service").to_owned();
        guest.screen.written_by(&format!("{base}[1021]"));
        let started = guest.start_unit(&name, &Io::console()).await;
        guest.screen.written_by("systemd[1]");
        match started {
            Ok(()) => guest.screen.line(&format!("Finished {name}.")),
            Err(why) => guest.fail(&why),
        }
    }
}
