//! `write_files`: what files shall be there, decoded.

use serde_json::{Map, Value};

use crate::{Failed, Gunzip, base64, gunzip, python_type};

/// Files that one configuration may write, and bytes of one after decoding.
const MOST: usize = 5_000;
const LARGEST: usize = 16 * 1024 * 1024;

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where, from the root.
    pub path: String,
    pub content: Vec<u8>,
    /// Permissions.
    pub mode: u32,
    /// User and group, as they were written.
    pub owner: String,
    /// The content goes to the end of what is there.
    pub append: bool,
}

/// Hands over the files that are deferred, or those that are not, one after the other. The first that cannot be
/// decoded or taken ends it.
pub fn files(
    config: &Map<String, Value>,
    deferred: bool,
    mut each: impl FnMut(Result<File, Skipped>) -> Result<(), Failed>,
) -> Result<(), Failed> {
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
        if is_true(file.get("defer")) == deferred {
            let mut warnings = Vec::new();
            let file = read(file, index, &mut warnings);
            for warning in warnings {
                each(Err(Skipped(warning)))?;
            }
            if let Some(file) = file? {
                each(Ok(file))?;
            }
        }
    }
    Ok(())
}

/// Something about a file that is left out, in cloud-init's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped(pub String);

/// Truth as cloud-init reads it, be it written as a text.
pub fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(truth)) => *truth,
        Some(Value::String(text)) => matches!(text.to_lowercase().as_str(), "1" | "on" | "true" | "yes"),
        Some(Value::Number(number)) => number.as_i64() == Some(1),
        _ => false,
    }
}

fn read(file: &Map<String, Value>, index: usize, warnings: &mut Vec<String>) -> Result<Option<File>, Failed> {
    let text = |field: &str| file.get(field).and_then(Value::as_str).unwrap_or_default();
    let path = text("path");
    if path.is_empty() {
        warnings
            .push(format!("cc_write_files.py[WARNING]: No path provided to write for entry {}", index + 1));
        return Ok(None);
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if file.get("source").is_some_and(|source| source.get("uri").is_some()) {
        warnings
            .push(format!("cc_write_files.py[WARNING]: Failed to retrieve contents from source for {path}"));
    }
    let content = match file.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(content)) => content.clone(),
        // What YAML reads as a number or a truth is written as Python prints it.
        Some(Value::Bool(truth)) => if *truth { "True" } else { "False" }.to_owned(),
        Some(other) => other.to_string(),
    };
    let content = decoded(content.into_bytes(), text("encoding"), warnings)?;
    let mode = mode(file.get("permissions"), &path, warnings);
    let owner = match text("owner") {
        "" => "root:root",
        owner => owner,
    };
    Ok(Some(File { content, mode, owner: owner.to_owned(), append: is_true(file.get("append")), path }))
}

fn decoded(content: Vec<u8>, encoding: &str, warnings: &mut Vec<String>) -> Result<Vec<u8>, Failed> {
    let (zipped, encoded) = match encoding.trim().to_lowercase().as_str() {
        "" | "text/plain" => (false, false),
        "gz" | "gzip" => (true, false),
        "gz+base64" | "gzip+base64" | "gz+b64" | "gzip+b64" => (true, true),
        "b64" | "base64" => (false, true),
        other => {
            warnings.push(format!(
                "cc_write_files.py[WARNING]: Unknown encoding type {other}, assuming text/plain"
            ));
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
fn mode(permissions: Option<&Value>, path: &str, warnings: &mut Vec<String>) -> u32 {
    let mode = match permissions {
        None | Some(Value::Null) => return 0o644,
        Some(Value::String(text)) => u32::from_str_radix(text.trim_start_matches("0o"), 8).ok(),
        Some(Value::Number(number)) => number.as_u64().and_then(|mode| u32::try_from(mode).ok()),
        Some(_) => None,
    };
    mode.filter(|mode| *mode <= 0o7777).unwrap_or_else(|| {
        warnings.push(format!(
            "cc_write_files.py[WARNING]: Undecodable permissions for {path}, returning default 0o644"
        ));
        0o644
    })
}
