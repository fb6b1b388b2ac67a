//! Protobuf as text, without a schema: field numbers, nested messages, strings.

use std::fmt::Write as _;

/// Seconds of a time in this range are masked.
const TIMES: std::ops::Range<u64> = 1_600_000_000..4_000_000_000;
const DEEPEST: usize = 40;

/// A message that begins with Kubernetes' magic number.
pub fn text(body: &[u8]) -> String {
    let mut out = "protobuf\n".to_owned();
    match fields(body.get(4..).unwrap_or_default()) {
        Some(all) => write_fields(&mut out, &all, 0),
        None => out.push_str("malformed\n"),
    }
    out
}

enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed(&'a [u8]),
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(rest: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    *rest = left;
    Some(taken)
}

fn fields(mut rest: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let number = key >> 3;
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut rest)?),
            1 => Field::Fixed(take(&mut rest, 8)?),
            2 => {
                let length = varint(&mut rest)?;
                Field::Bytes(take(&mut rest, length)?)
            }
            5 => Field::Fixed(take(&mut rest, 4)?),
            _ => return None,
        };
        if number == 0 {
            return None;
        }
        all.push((number, field));
    }
    Some(all)
}

fn write_fields(out: &mut String, all: &[(u64, Field<'_>)], depth: usize) {
    let indent = "  ".repeat(depth);
    for (number, field) in all {
        match field {
            Field::Varint(value) if TIMES.contains(value) => writeln!(out, "{indent}{number}: <time>"),
            Field::Varint(value) => writeln!(out, "{indent}{number}: {value}"),
            Field::Fixed(bytes) => writeln!(out, "{indent}{number}: {bytes:?}"),
            Field::Bytes(bytes) => {
                write_bytes(out, *number, bytes, depth);
                Ok(())
            }
        }
        .unwrap_or_default();
    }
}

/// A text if it can be one, otherwise a message if it can be one.
fn write_bytes(out: &mut String, number: u64, bytes: &[u8], depth: usize) {
    let indent = "  ".repeat(depth);
    let readable = std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control));
    if let Some(text) = readable {
        // A resource version is the sixth field of metadata, and the second of a list's.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let text = if digits && (number == 6 || number == 2) { "<version>" } else { text };
        writeln!(out, "{indent}{number}: {text:?}").unwrap_or_default();
        return;
    }
    let nested = bytes.strip_prefix(b"k8s\0").unwrap_or(bytes);
    match fields(nested).filter(|_| depth < DEEPEST) {
        Some(nested) => {
            writeln!(out, "{indent}{number}:").unwrap_or_default();
            write_fields(out, &nested, depth + 1);
        }
        None => {
            let text = String::from_utf8_lossy(bytes);
            writeln!(out, "{indent}{number}: {text:?}").unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_shown_with_numbers_and_texts() {
        let body = b"k8s\0\x0a\x04\x0a\x02v1\x10\x05";
        assert_eq!(text(body), "protobuf\n1:\n  1: \"v1\"\n2: 5\n");
        assert_eq!(text(b"k8s\0\xff"), "protobuf\nmalformed\n");
    }
}
