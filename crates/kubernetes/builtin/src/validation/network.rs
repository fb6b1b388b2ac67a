//! Addresses, ranges and ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capstan_schema::path::Path;
use serde_json::Value;

use super::report::{PORT_RANGE, Report};

/// An address as Go's older parser reads it: numbers of IPv4 may have leading zeros.
pub fn sloppy_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))?;
        *octet = part.trim_start_matches('0').parse().or_else(|_| part.parse()).ok()?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

fn mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// An address in a field that predates the strict rules; the existing values in `before`, sorted, may stay.
pub(super) fn legacy_ip(text: &str, before: &[&str], path: Path<'_>, report: &mut Report) {
    if before.binary_search(&text).is_ok() {
        return;
    }
    let Some(ip) = sloppy_ip(text) else {
        report.invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        return;
    };
    if text.parse::<IpAddr>().is_err() {
        report.invalid(path, text, "must not have leading 0s");
    }
    if mapped(ip) {
        report.invalid(path, text, "must not be an IPv4-mapped IPv6 address");
    }
}

/// Address, prefix length and width of a CIDR, as Go's older parser reads it.
pub(super) fn parse_cidr(text: &str) -> Option<(IpAddr, u8, u8)> {
    let (address, bits) = text.split_once('/')?;
    let ip = sloppy_ip(address)?;
    let bits: u8 = bits.parse().ok()?;
    let width = if ip.is_ipv4() { 32 } else { 128 };
    (bits <= width).then_some((ip, bits, width))
}

/// A CIDR in a field that predates the strict rules; the existing values in `before`, sorted, may stay.
pub(super) fn legacy_cidr(text: &str, before: &[&str], path: Path<'_>, report: &mut Report) {
    if before.binary_search(&text).is_ok() {
        return;
    }
    let Some((ip, bits, width)) = parse_cidr(text) else {
        report.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        return;
    };
    let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
    let zeros = prefix.len() > 1 && prefix.starts_with('0');
    if address.parse::<IpAddr>().is_err() || zeros {
        report.invalid(path, text, "must not have leading 0s in IP or prefix length");
    } else if mapped(ip) {
        report.invalid(path, text, "must not have an IPv4-mapped IPv6 address");
    } else if bits_beyond(ip, bits, width) {
        report.invalid(path, text, "must not have bits set beyond the prefix length");
    }
}

fn bits_beyond(ip: IpAddr, bits: u8, width: u8) -> bool {
    let value = match ip {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    };
    let free = u32::from(width - bits);
    let mask = if free >= 128 { u128::MAX } else { (1 << free) - 1 };
    value & mask != 0
}

/// An address that is reachable from outside.
pub(super) fn endpoint_ip(text: &str, path: Path<'_>, report: &mut Report) {
    let Some(ip) = sloppy_ip(text) else {
        report.invalid(path, text, "must be a valid IP address");
        return;
    };
    if ip.is_unspecified() {
        report.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        report.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        report.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_local_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        report.invalid(path, text, detail);
    }
}

/// Errors of a port name.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 15 {
        out.push("must be no more than 15 characters".to_owned());
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        out.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        out.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        out.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        out.push("must not begin or end with a hyphen".to_owned());
    }
    out
}

/// A port by number or name.
pub(super) fn port_or_name(port: &Value, path: Path<'_>, report: &mut Report) {
    match port {
        Value::String(name) => report.each(path, name, port_name(name)),
        _ => {
            let number = port.as_i64().unwrap_or_default();
            if !(1..=65535).contains(&number) {
                report.invalid(path, number, PORT_RANGE);
            }
        }
    }
}

pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Protocols of ports are required after defaulting.
pub(super) fn protocol(name: &str, path: Path<'_>, report: &mut Report) {
    if name.is_empty() {
        report.required(path, "");
    } else {
        report.one_of(path, name, &PROTOCOLS);
    }
}
