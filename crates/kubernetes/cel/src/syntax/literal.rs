//! The values of literal tokens.

use std::sync::Arc;

use super::ast::Literal;

/// The value of an integer literal.
pub(crate) fn int(text: &str, negative: bool) -> Option<Literal> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
    i64::from_str_radix(&signed, radix).ok().map(Literal::Int)
}

/// The value of an unsigned literal, which ends in `u`.
pub(crate) fn uint(text: &str) -> Option<Literal> {
    let text = &text[..text.len() - 1];
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(Literal::Uint)
}

/// The value of a floating point literal. Fails if it is out of range.
pub(crate) fn double(text: &str, negative: bool) -> Option<Literal> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Literal::Double(if negative { -value } else { value }))
}

/// The value of a string literal.
pub(crate) fn string(text: &str) -> Result<Literal, &'static str> {
    let bytes = unescape(text, false)?;
    // Only text and complete code points were written.
    Ok(Literal::String(String::from_utf8_lossy(&bytes).into()))
}

/// The value of a bytes literal, without its `b`.
pub(crate) fn bytes(text: &str) -> Result<Literal, &'static str> {
    Ok(Literal::Bytes(Arc::from(unescape(&text[1..], true)?)))
}

fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let normalized;
    let mut text = text;
    if text.contains('\r') {
        normalized = text.replace("\r\n", "\n").replace('\r', "\n");
        text = &normalized;
    }
    let raw = text.starts_with(['r', 'R']);
    if raw {
        text = &text[1..];
    }
    let quotes =
        if text.len() >= 6 && (text.starts_with("'''") || text.starts_with("\"\"\"")) { 3 } else { 1 };
    let text = &text[quotes..text.len() - quotes];
    if raw || !text.contains('\\') {
        return Ok(text.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let Some(kind) = chars.next() else {
            return Err("unable to unescape string, found '\\' as last character");
        };
        let (digits, radix) = match kind {
            'a' => (0, 7),
            'b' => (0, 8),
            'f' => (0, 12),
            'n' => (0, 10),
            'r' => (0, 13),
            't' => (0, 9),
            'v' => (0, 11),
            '\\' | '\'' | '"' | '`' | '?' => (0, kind as u32),
            'x' | 'X' => (2, 16),
            'u' if !is_bytes => (4, 16),
            'U' if !is_bytes => (8, 16),
            '0'..='3' => (3, 8),
            _ => return Err("unable to unescape string"),
        };
        if digits == 0 {
            out.push(radix as u8);
            continue;
        }
        let mut code: u32 = if radix == 8 { kind as u32 - '0' as u32 } else { 0 };
        for _ in usize::from(radix == 8)..digits {
            let digit = chars.next().and_then(|c| c.to_digit(radix)).ok_or("unable to unescape string")?;
            code = code.wrapping_mul(radix) + digit;
        }
        if is_bytes {
            out.push(code as u8);
        } else {
            let c = char::from_u32(code).ok_or("invalid unicode code point")?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(out)
}
