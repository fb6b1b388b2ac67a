//! `write_files`.

use serde_json::{Map, Value};

use super::{Config, Failed, modules, warn};
use crate::machine::Guest;
use crate::machine::user_data::{Gunzip, base64, gunzip, python_type};

/// Files that one configuration may write, and bytes of one after decoding.
const MOST: usize = 5_000;
const LARGEST: usize = 16 * 1024 * 1024;

/// Writes the files that are deferred, or those that are not. The first that cannot be written ends it.
pub(super) fn run(guest: &mut Guest<'_>, config: &Config, deferred: bool) -> Result<(), Failed> {
    let files = match config.get("write_files") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(files)) => files,
        Some(other) => return Err(format!("'{}' object is not a list of files", python_type(other))),
    };
    if files.len() > MOST {
        return Err(format!("{} files are more than {MOST}", files.len()));
    }
    for (index, file) in files.iter().enumerate() {
        let Some(file) = file.as_object() else {
            return Err(format!("'{}' object has no attribute 'get'", python_type(file)));
        };
        if modules::is_true(file.get("defer")) == deferred {
            write(guest, file, index)?;
        }
    }
    Ok(())
}

fn write(guest: &mut Guest<'_>, file: &Map<String, Value>, index: usize) -> Result<(), Failed> {
    let text = |field: &str| file.get(field).and_then(Value::as_str).unwrap_or_default();
    let path = text("path");
    if path.is_empty() {
        warn(
            guest,
            &format!("cc_write_files.py[WARNING]: No path provided to write for entry {}", index + 1),
        );
        return Ok(());
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if file.get("source").is_some_and(|source| source.get("uri").is_some()) {
        warn(
            guest,
            &format!("cc_write_files.py[WARNING]: Failed to retrieve contents from source for {path}"),
        );
    }
    let content = match file.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(content)) => content.clone(),
        // What YAML reads as a number or a truth is written as Python prints it.
        Some(Value::Bool(truth)) => if *truth { "True" } else { "False" }.to_owned(),
        Some(other) => other.to_string(),
    };
    let content = decoded(guest, content.into_bytes(), text("encoding"))?;
    let mode = mode(guest, file.get("permissions"), &path);
    let text_of_it = String::from_utf8_lossy(&content);
    // The lines of a script are no secret, and their errors quote them.
    if mode & 0o077 == 0 && !text_of_it.starts_with("#!") {
        guest.screen.hide(&text_of_it);
    }
    let append = modules::is_true(file.get("append"));
    let owner = match text("owner") {
        "" => "root:root".to_owned(),
        owner => owner.to_owned(),
    };
    if append {
        modules::append(guest, &path, &content)?;
        guest.files.set_mode(&path, mode).map_err(|error| modules::errno(error, &path))?;
    } else {
        modules::put(guest, &path, &content, mode)?;
    }
    let user = owner.split(':').next().unwrap_or_default();
    if !guest.users.contains(user) && user.parse::<u32>().is_err() {
        return Err(format!("Unknown user or group: \"getpwnam(): name not found: '{user}'\""));
    }
    guest.files.set_owner(&path, &owner).map_err(|error| modules::errno(error, &path))
}

fn decoded(guest: &mut Guest<'_>, content: Vec<u8>, encoding: &str) -> Result<Vec<u8>, Failed> {
    let (zipped, encoded) = match encoding.trim().to_lowercase().as_str() {
        "" | "text/plain" => (false, false),
        "gz" | "gzip" => (true, false),
        "gz+base64" | "gzip+base64" | "gz+b64" | "gzip+b64" => (true, true),
        "b64" | "base64" => (false, true),
        other => {
            let known =
                format!("cc_write_files.py[WARNING]: Unknown encoding type {other}, assuming text/plain");
            warn(guest, &known);
            (false, false)
        }
    };
    let content =
        if encoded { base64(&content).ok_or("Incorrect padding (binascii.Error)")? } else { content };
    if !zipped {
        return Ok(content);
    }
    gunzip(&content, LARGEST).map_err(|error| match error {
        Gunzip::Broken => "Not a gzipped file (gzip.BadGzipFile)".to_owned(),
        Gunzip::TooLong => format!("the file is larger than {LARGEST} bytes"),
    })
}

/// Permissions as a text in base eight, or as the number that YAML has read.
fn mode(guest: &mut Guest<'_>, permissions: Option<&Value>, path: &str) -> u32 {
    let mode = match permissions {
        None | Some(Value::Null) => return 0o644,
        Some(Value::String(text)) => u32::from_str_radix(text.trim_start_matches("0o"), 8).ok(),
        Some(Value::Number(number)) => number.as_u64().and_then(|mode| u32::try_from(mode).ok()),
        Some(_) => None,
    };
    mode.filter(|mode| *mode <= 0o7777).unwrap_or_else(|| {
        let undecodable = format!(
            "cc_write_files.py[WARNING]: Undecodable permissions for {path}, returning default 0o644"
        );
        warn(guest, &undecodable);
        0o644
    })
}
