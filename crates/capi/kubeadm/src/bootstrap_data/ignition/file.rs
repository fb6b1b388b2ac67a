//! Files in Ignition: content as a data URL, mode as a number.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::bootstrap::{Encoding, File};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::{Map, Value, json};

use crate::Error;

/// Characters that a data URL does not escape.
const DATA: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
const DEFAULT_MODE: u32 = 0o644;

pub(super) fn data_url(content: &[u8]) -> String {
    format!("data:,{}", percent_encode(content, DATA))
}

/// A file generated here.
pub(super) fn inline(path: &str, mode: u32, content: &str) -> Value {
    json!({
        "filesystem": "root", "path": path, "mode": mode,
        "contents": {"source": data_url(content.as_bytes()), "verification": {}},
    })
}

/// A user's file. Text ends with one newline, as in cloud-config.
pub(super) fn user_file(file: &File) -> Result<Value, Error> {
    let refused = |message| Error::IgnitionFile { path: file.path.clone(), message };
    let content = match file.encoding {
        None if file.content.is_empty() => Vec::new(),
        None => format!("{}\n", file.content.trim_end_matches('\n')).into_bytes(),
        Some(Encoding::Base64) => {
            let packed: String = file.content.split_whitespace().collect();
            STANDARD.decode(packed).map_err(|_| refused("the content is not base64"))?
        }
        Some(Encoding::Gzip | Encoding::GzipBase64) => {
            return Err(refused("Ignition takes no compressed content"));
        }
    };
    let mode = match file.permissions.as_str() {
        "" => DEFAULT_MODE,
        text => u32::from_str_radix(text, 8).map_err(|_| refused("the permissions are no octal number"))?,
    };
    let mut out = json!({
        "filesystem": "root", "path": file.path, "mode": mode,
        "contents": {"source": data_url(&content), "verification": {}},
    });
    let mut owner = file.owner.splitn(2, ':').map(str::trim).filter(|name| !name.is_empty());
    let named = |name: &str| Value::Object(Map::from_iter([("name".to_owned(), name.into())]));
    if let Some(user) = owner.next() {
        out["user"] = named(user);
    }
    if let Some(group) = owner.next() {
        out["group"] = named(group);
    }
    if file.append == Some(true) {
        out["append"] = true.into();
    }
    Ok(out)
}
