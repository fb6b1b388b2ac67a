//! Formats of network addresses and names.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

/// Host names with letters and symbols of any script.
static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const WORD: &str = r"[a-zA-Z0-9\p{S}\p{L}]";
    let pattern = format!(
        r"^({WORD}((-?{WORD}{{0,62}})?)|({WORD}(([a-zA-Z0-9\-\p{{S}}\p{{L}}]{{0,61}}{WORD})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    );
    Regex::new(&pattern).ok()
});

pub fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|part| part.len() <= 63)
        && HOSTNAME.as_ref().is_some_and(|regex| regex.is_match(text))
}

/// Octets may have leading zeros, as in Go before it became strict.
fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))?;
        *octet = part
            .trim_start_matches('0')
            .parse()
            .or_else(|error| {
                // Nothing but zeros.
                if part.bytes().all(|b| b == b'0') { Ok(0) } else { Err(error) }
            })
            .ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

fn sloppy_ipv6(text: &str) -> Option<Ipv6Addr> {
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => format!("{head}:{}", sloppy_ipv4(tail)?).parse().ok(),
        _ => text.parse().ok(),
    }
}

pub fn is_ipv4(text: &str) -> bool {
    // A mapped address has dots as well and upstream accepts it.
    text.contains('.') && (sloppy_ipv4(text).is_some() || sloppy_ipv6(text).is_some())
}

pub fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

pub fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if bits.is_empty() || !bits.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let bits: u32 = bits.parse().unwrap_or(u32::MAX);
    if sloppy_ipv4(address).is_some() { bits <= 32 } else { sloppy_ipv6(address).is_some() && bits <= 128 }
}

pub fn is_mac(text: &str) -> bool {
    if !text.is_ascii() || text.len() < 12 {
        return false;
    }
    let separator = match text.as_bytes() {
        [_, _, separator @ (b':' | b'-'), ..] => Some((*separator, 2)),
        [_, _, _, _, b'.', ..] => Some((b'.', 4)),
        _ => None,
    };
    let hex: String = match separator {
        Some((separator, width)) => {
            let groups: Vec<&str> = text.split(char::from(separator)).collect();
            if groups.iter().any(|group| group.len() != width) {
                return false;
            }
            groups.concat()
        }
        None => text.to_owned(),
    };
    matches!(hex.len(), 12 | 16 | 40) && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether Go's `url.ParseRequestURI` accepts it.
pub fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//") {
        Some(authority) if !scheme.is_empty() => {
            let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
            if !is_authority(scheme, authority) {
                return false;
            }
            path
        }
        _ => rest,
    };
    escapes_are_valid(path)
}

/// Scheme and rest; `None` if the text starts with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn escapes_are_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    (0..bytes.len()).filter(|&i| bytes[i] == b'%').all(|i| hex(i + 1) && hex(i + 2))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let user_allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    user.bytes().all(user_allowed) && escapes_are_valid(user) && is_host(scheme, host)
}

fn is_host(scheme: &str, host: &str) -> bool {
    let is_port = |port: &str| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()))
    };
    match host.rfind('[') {
        Some(0) => {
            let Some(close) = host.rfind(']') else { return false };
            let (name, port) = (&host[1..close], &host[close + 1..]);
            let (address, zone) = match name.split_once("%25") {
                Some((address, zone)) => (address, Some(zone)),
                None => (name, None),
            };
            is_port(port)
                && address.parse::<Ipv6Addr>().is_ok()
                && zone.is_none_or(|zone| !zone.is_empty() && host_text_is_valid(zone))
        }
        Some(_) => false,
        None => {
            let colon = match host.find(':') {
                Some(first) if matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") => first,
                Some(_) => host.rfind(':').unwrap_or_default(),
                None => return host_text_is_valid(host),
            };
            is_port(&host[colon..]) && host_text_is_valid(host)
        }
    }
}

fn host_text_is_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut index = 0;
    while let Some(&b) = bytes.get(index) {
        if b == b'%' {
            // Only non-ASCII bytes, and the percent sign itself, may be escaped in a host.
            let digits = bytes.get(index + 1..index + 3).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
            match digits {
                Some([b'0'..=b'7', _]) if &bytes[index..index + 3] != b"%25" => return false,
                Some(_) => index += 3,
                None => return false,
            }
        } else if b < 0x80 && !(b.is_ascii_alphanumeric() || b"!\"$&'()*+,-.:;<=>[]_~".contains(&b)) {
            return false;
        } else {
            index += 1;
        }
    }
    true
}
