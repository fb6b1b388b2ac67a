//! Encodings and hashes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha512};

use super::{Limits, Outcome, Value};

pub fn call(name: &str, values: &[Value], _: &Limits) -> Option<Outcome> {
    let text = |text: String| Ok(Value::text(text));
    let utf8 = |bytes: Vec<u8>| String::from_utf8(bytes).map(Value::text).map_err(|error| error.to_string());
    Some(match (name, values) {
        ("b64enc", [Value::Text(of)]) => text(STANDARD.encode(of.as_bytes())),
        ("b64dec", [Value::Text(of)]) => match STANDARD.decode(of.as_bytes()) {
            Ok(bytes) => utf8(bytes),
            // Sprig puts the error into the text.
            Err(error) => text(error.to_string()),
        },
        ("b32enc", [Value::Text(of)]) => text(base32(of.as_bytes())),
        ("b32dec", [Value::Text(of)]) => match of_base32(of) {
            Some(bytes) => utf8(bytes),
            None => text("illegal base32 data".to_owned()),
        },
        ("sha256sum", [Value::Text(of)]) => text(hex(&Sha256::digest(of.as_bytes()))),
        ("sha512sum", [Value::Text(of)]) => text(hex(&Sha512::digest(of.as_bytes()))),
        ("adler32sum", [Value::Text(of)]) => text(adler32(of.as_bytes()).to_string()),
        ("toJson", [value]) => value.to_json().map(|json| Value::text(go_json(&json.to_string()))),
        ("toRawJson", [value]) => value.to_json().map(|json| Value::text(json.to_string())),
        ("toPrettyJson", [value]) => value.to_json().and_then(|json| {
            serde_json::to_string_pretty(&json)
                .map(|json| Value::text(go_json(&json)))
                .map_err(|error| error.to_string())
        }),
        ("fromJson", [Value::Text(of)]) => serde_json::from_str::<serde_json::Value>(of)
            .map(|json| Value::from(&json))
            .map_err(|error| error.to_string()),
        _ => return None,
    })
}

/// Go's encoder escapes what HTML would read.
fn go_json(text: &str) -> String {
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let mut block = [0_u8; 5];
        block[..chunk.len()].copy_from_slice(chunk);
        let number = block.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let letters = (chunk.len() * 8).div_ceil(5);
        for at in 0..8 {
            let index = usize::try_from(number >> (35 - 5 * at) & 31).unwrap_or(0);
            out.push(if at < letters { char::from(BASE32[index]) } else { '=' });
        }
    }
    out
}

fn of_base32(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut number, mut bits) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = BASE32.iter().position(|known| *known == letter)?;
        number = number << 5 | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(number >> bits & 255).ok()?);
            number &= (1 << bits) - 1;
        }
    }
    Some(out)
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}
