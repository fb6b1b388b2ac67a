//! What a cloud hands to a machine at its first boot: cloud-config, a script, or Ignition, as text or gzip.
//!
//! Pure: it is read here and executed elsewhere, by simulated machines and by real ones. Words of warnings are
//! cloud-init's; none of them quotes the user data, which holds keys.

mod files;
#[cfg(test)]
mod fuzz;
mod jinja;
mod metadata;
mod script;

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value};

pub use files::{File, Skipped, files, is_true};
pub use metadata::Metadata;
pub use script::script;

/// Why a part of a cloud-config cannot be done, in the words of cloud-init.
pub type Failed = String;

/// Bytes of user data before and after decompression.
const COMPRESSED: usize = 4 * 1024 * 1024;
const TEXT: usize = 16 * 1024 * 1024;

/// Formats of user data.
#[derive(Debug, Clone, PartialEq)]
pub enum UserData {
    /// There is none.
    Empty,
    /// `#cloud-config`.
    CloudConfig(Map<String, Value>),
    /// `#!/bin/sh` and others.
    Script(String),
    /// An Ignition configuration.
    Ignition(Map<String, Value>),
}

/// User data as it was read, with what cloud-init warns of.
pub struct Parsed {
    pub data: UserData,
    /// Warnings that cloud-init would log.
    pub warnings: Vec<String>,
}

/// Why user data cannot be used: what cloud-init prints, without any of the user data's own text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadUserData(pub String);

pub fn read(bytes: &[u8], metadata: &Metadata) -> Result<Parsed, BadUserData> {
    let bytes = decompressed(bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unhandled())?;
    let mut parsed = Parsed { data: UserData::Empty, warnings: Vec::new() };
    let trimmed = text.trim_start();
    if trimmed.is_empty() {
        return Ok(parsed);
    }
    if trimmed.starts_with('{') {
        parsed.data = UserData::Ignition(ignition(trimmed)?);
        return Ok(parsed);
    }
    let first = text.lines().next().unwrap_or_default();
    let rendered;
    let mut text = text;
    if let Some(engine) = first.strip_prefix("## template:") {
        if engine.trim() != "jinja" {
            return Err(unhandled());
        }
        let (output, warnings) = jinja::render(text.split_once('\n').map_or("", |(_, rest)| rest), metadata)
            .map_err(|why| {
                BadUserData(format!("__init__.py[WARNING]: Failed to render jinja template: {why}"))
            })?;
        parsed.warnings = warnings;
        rendered = output;
        text = &rendered;
    }
    let first = text.lines().next().unwrap_or_default().trim_end();
    parsed.data = if first == "#cloud-config" {
        UserData::CloudConfig(cloud_config(text)?)
    } else if first.starts_with("#!") {
        UserData::Script(text.to_owned())
    } else {
        return Err(unhandled());
    };
    Ok(parsed)
}

/// What cloud-init says of user data that it does not know; it goes on without.
fn unhandled() -> BadUserData {
    BadUserData("__init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata".to_owned())
}

fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, BadUserData> {
    let too_long = || BadUserData("__init__.py[WARNING]: userdata is too large".to_owned());
    if bytes.len() > COMPRESSED {
        return Err(too_long());
    }
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes.to_vec());
    }
    gunzip(bytes, TEXT).map_err(|error| match error {
        Gunzip::TooLong => too_long(),
        Gunzip::Broken => BadUserData("util.py[WARNING]: Failed to decompress userdata".to_owned()),
    })
}

/// Why data cannot be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gunzip {
    /// It is longer than allowed.
    TooLong,
    /// It is not gzip.
    Broken,
}

/// Decompresses at most `limit` bytes.
pub fn gunzip(bytes: &[u8], limit: usize) -> Result<Vec<u8>, Gunzip> {
    let mut out = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(limit as u64 + 1);
    reader.read_to_end(&mut out).map_err(|_| Gunzip::Broken)?;
    if out.len() > limit { Err(Gunzip::TooLong) } else { Ok(out) }
}

/// Decodes base64 with whitespace in it, as Python does.
pub fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok()
}

fn cloud_config(text: &str) -> Result<Map<String, Value>, BadUserData> {
    // Python's parser reads YAML 1.1: 0755 is a mode, and the last of two keys wins.
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        // The message of the parser may quote the text, which may hold keys.
        let place = error.location().map_or(String::new(), |at| {
            format!(" Invalid format at line {} column {}", at.line(), at.column())
        });
        BadUserData(format!("util.py[WARNING]: Failed loading yaml blob.{place}"))
    })?;
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        other => Err(BadUserData(format!(
            "util.py[WARNING]: Failed loading yaml blob. Yaml load allows (<class 'dict'>,) root types, but got {} instead",
            python_type(&other)
        ))),
    }
}

/// The name of a value's type in Python.
pub fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

fn ignition(text: &str) -> Result<Map<String, Value>, BadUserData> {
    let broken = |why: String| BadUserData(format!("failed to parse config: {why}"));
    let value: Value =
        serde_json::Deserializer::from_str(text).into_iter().next().unwrap_or(Ok(Value::Null)).map_err(
            |error| {
                broken(format!("config is not valid JSON at line {} column {}", error.line(), error.column()))
            },
        )?;
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(broken("config is not an object".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn parsed(text: &[u8]) -> Result<UserData, String> {
        read(text, &Metadata::of_test()).map(|parsed| parsed.data).map_err(|error| error.0)
    }

    #[test]
    fn user_data_is_identified_by_its_first_line() {
        let config = |text: &str| match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => UserData::CloudConfig(fields),
            other => panic!("{other:?}"),
        };
        assert_eq!(parsed(b""), Ok(UserData::Empty));
        assert_eq!(parsed(b"\n \n"), Ok(UserData::Empty));
        assert_eq!(parsed(b"#cloud-config\nruncmd: [a]\n"), Ok(config(r#"{"runcmd":["a"]}"#)));
        assert_eq!(parsed(b"#cloud-config\n"), Ok(config("{}")));
        assert_eq!(
            parsed(b"## template: jinja\n#cloud-config\n\nhostname: '{{ v1.local_hostname }}'\n"),
            Ok(config(r#"{"hostname":"node-1"}"#))
        );
        assert_eq!(parsed(b"#!/bin/sh\ntrue\n"), Ok(UserData::Script("#!/bin/sh\ntrue\n".to_owned())));
        assert!(matches!(parsed(br#"{"ignition":{"version":"3.4.0"}}"#), Ok(UserData::Ignition(_))));
    }

    #[test]
    fn compressed_user_data_is_read_and_bombs_are_not() {
        let compressed = |bytes: &[u8]| {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(bytes).expect("written");
            writer.finish().expect("compressed")
        };
        assert!(matches!(parsed(&compressed(b"#cloud-config\n")), Ok(UserData::CloudConfig(_))));
        assert_eq!(
            parsed(&compressed(&vec![b' '; TEXT + 1])),
            Err("__init__.py[WARNING]: userdata is too large".to_owned())
        );
        assert_eq!(
            parsed(&[0x1f, 0x8b, 1, 2, 3]),
            Err("util.py[WARNING]: Failed to decompress userdata".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_read_fails_without_being_quoted() {
        for (text, why) in [
            (&b"password: hunter2"[..], "userdata"),
            (b"\xff\xfe", "Unhandled"),
            (b"#cloud-config\npassword: [hunter2", "Failed loading yaml blob. Invalid format at line"),
            (b"#cloud-config\n- hunter2", "but got list instead"),
            (b"## template: mako\n#cloud-config\n", "Unhandled"),
            (b"## template: jinja\n#cloud-config\n{{ hunter2", "Failed to render jinja template"),
            (b"{\"ignition\": hunter2", "failed to parse config: config is not valid JSON at line 1"),
        ] {
            let said = parsed(text).expect_err("cannot be read");
            assert!(said.contains(why), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
