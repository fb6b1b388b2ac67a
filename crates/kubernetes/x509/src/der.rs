//! The subset of DER for writing certificates.

use jiff::Timestamp;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// One element: tag, length, content.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let length = content.len().to_be_bytes();
            let significant = &length[length.iter().take_while(|byte| **byte == 0).count()..];
            // At most eight bytes of length, so the count fits the low bits.
            out.push(0x80 | significant.len() as u8);
            out.extend_from_slice(significant);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A SEQUENCE of elements.
pub fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A SET of one element.
pub fn set(part: &[u8]) -> Vec<u8> {
    element(SET, part)
}

/// An explicit context tag.
pub fn explicit(number: u8, part: &[u8]) -> Vec<u8> {
    element(0xa0 | number, part)
}

/// An implicit context tag of a primitive element.
pub fn implicit(number: u8, content: &[u8]) -> Vec<u8> {
    element(0x80 | number, content)
}

/// A non-negative INTEGER from big-endian bytes.
pub fn integer(bytes: &[u8]) -> Vec<u8> {
    let significant = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let mut content = Vec::with_capacity(significant.len() + 1);
    if significant.first().is_none_or(|first| *first >= 0x80) {
        content.push(0);
    }
    content.extend_from_slice(significant);
    element(INTEGER, &content)
}

pub fn boolean_true() -> Vec<u8> {
    vec![0x01, 0x01, 0xff]
}

pub fn null() -> Vec<u8> {
    element(NULL, &[])
}

/// A BIT STRING of whole bytes.
pub fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// A BIT STRING of named bits, bit 0 first, without trailing zeros, as DER requires.
pub fn named_bits(bits: &[u8]) -> Vec<u8> {
    let byte = bits.iter().fold(0u8, |byte, bit| byte | (0x80 >> bit));
    element(BIT_STRING, &[byte.trailing_zeros().min(7) as u8, byte])
}

pub fn octet_string(bytes: &[u8]) -> Vec<u8> {
    element(OCTET_STRING, bytes)
}

pub fn text(text: &str) -> Vec<u8> {
    element(UTF8_STRING, text.as_bytes())
}

/// An OBJECT IDENTIFIER from its arcs.
pub fn oid(arcs: &[u32]) -> Vec<u8> {
    let mut content = Vec::new();
    let [first, second, rest @ ..] = arcs else { return element(OBJECT_IDENTIFIER, &content) };
    for arc in std::iter::once(first * 40 + second).chain(rest.iter().copied()) {
        let mut groups = vec![(arc & 0x7f) as u8];
        let mut remaining = arc >> 7;
        while remaining > 0 {
            groups.push((remaining & 0x7f) as u8 | 0x80);
            remaining >>= 7;
        }
        content.extend(groups.iter().rev());
    }
    element(OBJECT_IDENTIFIER, &content)
}

/// A time as RFC 5280 requires: UTCTime until 2049.
pub fn time(at: Timestamp) -> Vec<u8> {
    let year: i32 = at.strftime("%Y").to_string().parse().unwrap_or_default();
    if (1950..2050).contains(&year) {
        element(UTC_TIME, at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        element(GENERALIZED_TIME, at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_encoded_as_der() {
        let table: [(Vec<u8>, &[u8]); 9] = [
            (integer(&[0, 0]), &[2, 1, 0]),
            (integer(&[0, 0x7f]), &[2, 1, 0x7f]),
            (integer(&[0x80]), &[2, 2, 0, 0x80]),
            (oid(&[1, 2, 840, 10045, 2, 1]), &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]),
            (named_bits(&[5, 6]), &[3, 2, 1, 0b0000_0110]),
            (named_bits(&[0]), &[3, 2, 7, 0x80]),
            (bit_string(&[1]), &[3, 2, 0, 1]),
            (implicit(2, b"a"), &[0x82, 1, b'a']),
            (sequence(&[null(), boolean_true()]), &[0x30, 5, 5, 0, 1, 1, 0xff]),
        ];
        for (encoded, expected) in table {
            assert_eq!(encoded, expected);
        }
        assert_eq!(element(4, &[7; 200])[..4], [4, 0x81, 200, 7]);
        assert_eq!(element(4, &[7; 300])[..5], [4, 0x82, 1, 44, 7]);
    }

    #[test]
    fn times_change_format_in_2050() {
        let at = |text: &str| time(text.parse().unwrap());
        assert_eq!(at("2049-12-31T23:59:59Z")[2..], *b"491231235959Z");
        assert_eq!(at("2050-01-01T00:00:00Z")[2..], *b"20500101000000Z");
    }
}
