//! Base64 as Go's `encoding/base64` decodes it: line breaks and stray bits are ignored, and errors have Go's byte
//! offset.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// The text without line breaks and stray bits, or the offset of the error.
pub(super) fn canonical(text: &str) -> Result<String, usize> {
    let bytes = text.as_bytes();
    let is_break = |at: usize| matches!(bytes.get(at), Some(b'\n' | b'\r'));
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let mut at = 0;
    loop {
        let mut group = [0u32; 4];
        let mut filled = 0;
        while filled < 4 {
            let Some(&byte) = bytes.get(at) else {
                if filled == 0 {
                    return Ok(STANDARD.encode(out));
                }
                return Err(at - filled);
            };
            at += 1;
            if let Some(bits) = sextet(byte) {
                group[filled] = bits;
                filled += 1;
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                continue;
            }
            if byte != b'=' || filled < 2 {
                return Err(at - 1);
            }
            // Padding: two characters after two, one after three, and nothing after it.
            if filled == 2 {
                while is_break(at) {
                    at += 1;
                }
                if at == bytes.len() {
                    return Err(at);
                }
                if bytes[at] != b'=' {
                    return Err(at - 1);
                }
                at += 1;
            }
            while is_break(at) {
                at += 1;
            }
            if at < bytes.len() {
                return Err(at);
            }
            let bits = group[0] << 18 | group[1] << 12 | group[2] << 6;
            out.extend_from_slice(&bits.to_be_bytes()[1..filled]);
            return Ok(STANDARD.encode(out));
        }
        let bits = group[0] << 18 | group[1] << 12 | group[2] << 6 | group[3];
        out.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_as_in_go() {
        for (given, wanted) in [
            ("", Ok("")),
            ("YWFh", Ok("YWFh")),
            ("YW\nFh\r\n", Ok("YWFh")),
            ("YQ==", Ok("YQ==")),
            ("YR==", Ok("YQ==")),
            ("YWE=", Ok("YWE=")),
            ("YQ=\n=", Ok("YQ==")),
            ("YQ", Err(0)),
            ("YWFhYQ", Err(4)),
            ("YQ=", Err(3)),
            ("YQ==YQ==", Err(4)),
            ("YWF*", Err(3)),
            ("Y===", Err(1)),
            ("YQ=a", Err(2)),
        ] {
            assert_eq!(canonical(given), wanted.map(str::to_owned), "{given:?}");
        }
    }
}
