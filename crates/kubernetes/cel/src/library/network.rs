//! `net.IP` and `net.CIDR`, parsed as Go's `netip` does.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::format_string::go_quote;
use super::{Opaque, Outcome, fail, no_such_overload};
use crate::eval::Meter;
use crate::value::Value;

/// An address with the length of its network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Cidr {
    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        Self { address, bits: self.bits }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self { address, bits: self.bits }.masked() == self.masked()
    }

    fn contains_cidr(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

/// An address, and whether it has a zone.
pub(crate) fn parse_address(s: &str) -> Result<(IpAddr, bool), String> {
    let error = |message: &str| format!("ParseAddr({}): {message}", go_quote(s));
    for c in s.chars() {
        match c {
            '.' => return parse_v4(s, s).map(|v4| (IpAddr::V4(v4), false)),
            ':' => return parse_v6(s),
            '%' => return Err(error("missing IPv6 address")),
            _ => {}
        }
    }
    Err(error("unable to parse IP"))
}

fn parse_v4(whole: &str, s: &str) -> Result<Ipv4Addr, String> {
    let error = |message: &str| Err(format!("ParseAddr({}): {message}", go_quote(whole)));
    let at = |message: &str, rest: &str| error(&format!("{message} (at {})", go_quote(rest)));
    let bytes = s.as_bytes();
    let mut fields = [0u8; 4];
    let (mut value, mut position, mut digits) = (0u16, 0, 0);
    for (i, c) in s.char_indices() {
        match c {
            '0'..='9' => {
                if digits == 1 && value == 0 {
                    return error("IPv4 field has octet with leading zero");
                }
                value = value * 10 + (c as u16 - '0' as u16);
                digits += 1;
                if value > 255 {
                    return error("IPv4 field has value >255");
                }
            }
            '.' => {
                if i == 0 || i == s.len() - 1 || bytes[i - 1] == b'.' {
                    return at("IPv4 field must have at least one digit", &s[i..]);
                }
                if position == 3 {
                    return error("IPv4 address too long");
                }
                fields[position] = value as u8;
                position += 1;
                value = 0;
                digits = 0;
            }
            _ => return at("unexpected character", &s[i..]),
        }
    }
    if position < 3 {
        return error("IPv4 address too short");
    }
    fields[3] = value as u8;
    Ok(Ipv4Addr::from(fields))
}

fn parse_v6(whole: &str) -> Result<(IpAddr, bool), String> {
    let error = |message: &str| Err(format!("ParseAddr({}): {message}", go_quote(whole)));
    let at = |message: &str, rest: &str| error(&format!("{message} (at {})", go_quote(rest)));
    let (mut s, zone) = match whole.split_once('%') {
        Some((_, "")) => return error("zone must be a non-empty string"),
        Some((s, _)) => (s, true),
        None => (whole, false),
    };
    let mut bytes = [0u8; 16];
    let mut ellipsis = None;
    if let Some(rest) = s.strip_prefix("::") {
        ellipsis = Some(0);
        s = rest;
        if s.is_empty() {
            return Ok((IpAddr::V6(Ipv6Addr::UNSPECIFIED), zone));
        }
    }
    let mut filled = 0;
    while filled < 16 {
        let digits = s.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return at("each group must have 4 or less digits", s);
        }
        if digits == 0 {
            return at("each colon-separated field must have at least one digit", s);
        }
        if s[digits..].starts_with('.') {
            if ellipsis.is_none() && filled != 12 {
                return at("embedded IPv4 address must replace the final 2 fields of the address", s);
            }
            if filled + 4 > 16 {
                return at("too many hex fields to fit an embedded IPv4 at the end of the address", s);
            }
            bytes[filled..filled + 4].copy_from_slice(&parse_v4(whole, s)?.octets());
            s = "";
            filled += 4;
            break;
        }
        let group = u16::from_str_radix(&s[..digits], 16).unwrap_or_default();
        bytes[filled..filled + 2].copy_from_slice(&group.to_be_bytes());
        filled += 2;
        s = &s[digits..];
        if s.is_empty() {
            break;
        }
        if !s.starts_with(':') {
            return at("unexpected character, want colon", s);
        }
        if s.len() == 1 {
            return at("colon must be followed by more characters", s);
        }
        s = &s[1..];
        if s.starts_with(':') {
            if ellipsis.is_some() {
                return at("multiple :: in address", s);
            }
            ellipsis = Some(filled);
            s = &s[1..];
            if s.is_empty() {
                break;
            }
        }
    }
    if !s.is_empty() {
        return at("trailing garbage after address", s);
    }
    match ellipsis {
        None if filled < 16 => return error("address string too short"),
        Some(_) if filled == 16 => return error("the :: must expand to at least one field of zeros"),
        Some(position) => {
            let tail = filled - position;
            bytes.copy_within(position..filled, 16 - tail);
            bytes[position..16 - tail].fill(0);
        }
        None => {}
    }
    Ok((IpAddr::V6(Ipv6Addr::from(bytes)), zone))
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn address(s: &str) -> Result<IpAddr, String> {
    let quoted = go_quote(s);
    let (address, zone) = parse_address(s)
        .map_err(|error| format!("IP Address {quoted} parse error during conversion from string: {error}"))?;
    if zone {
        return Err(format!("IP address {quoted} with zone value is not allowed"));
    }
    if is_mapped(address) {
        return Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"));
    }
    Ok(address)
}

fn parse_cidr(s: &str) -> Result<Cidr, String> {
    let error = |message: &str| {
        Err(format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): {message}",
            go_quote(s)
        ))
    };
    let Some((ip, bits)) = s.rsplit_once('/') else { return error("no '/'") };
    let (address, zone) = match parse_address(ip) {
        Ok(parsed) => parsed,
        Err(reason) => return error(&reason),
    };
    if zone {
        return error("IPv6 zones cannot be present in a prefix");
    }
    let bad = || error(&format!("bad bits after slash: {}", go_quote(bits)));
    if bits.len() > 1 && !(b'1'..=b'9').contains(&bits.as_bytes()[0]) {
        return bad();
    }
    let Ok(length) = bits.parse::<i64>() else { return bad() };
    if !bits.bytes().all(|b| b.is_ascii_digit()) {
        return bad();
    }
    if length > if address.is_ipv4() { 32 } else { 128 } {
        return error("prefix length out of range");
    }
    if is_mapped(address) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(s)));
    }
    Ok(Cidr { address, bits: length as u8 })
}

fn text<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    value.as_str()
}

pub(crate) fn to_ip<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some(s) = text(&args[0]) else { return no_such_overload() };
    match address(s) {
        Ok(address) => Ok(Value::Opaque(Opaque::Ip(address))),
        Err(message) => fail(message),
    }
}

pub(crate) fn is_ip<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some(s) = text(&args[0]) else { return no_such_overload() };
    Ok(Value::Bool(address(s).is_ok()))
}

pub(crate) fn is_canonical<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some(s) = text(&args[0]) else { return no_such_overload() };
    match address(s) {
        Ok(address) => Ok(Value::Bool(address.to_string() == s)),
        Err(message) => fail(message),
    }
}

pub(crate) fn to_cidr<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some(s) = text(&args[0]) else { return no_such_overload() };
    match parse_cidr(s) {
        Ok(cidr) => Ok(Value::Opaque(Opaque::Cidr(cidr))),
        Err(message) => fail(format!("network address parse error during conversion from string: {message}")),
    }
}

pub(crate) fn is_cidr<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some(s) = text(&args[0]) else { return no_such_overload() };
    Ok(Value::Bool(parse_cidr(s).is_ok()))
}

pub(crate) fn to_text<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Opaque(opaque @ (Opaque::Ip(_) | Opaque::Cidr(_))) => Ok(Value::string(opaque.to_string())),
        _ => no_such_overload(),
    }
}

fn ip<'a>(args: &[Value<'a>], run: fn(IpAddr) -> Value<'a>) -> Outcome<'a> {
    match &args[0] {
        Value::Opaque(Opaque::Ip(address)) => Ok(run(*address)),
        _ => no_such_overload(),
    }
}

fn cidr<'a>(args: &[Value<'a>], run: fn(Cidr) -> Value<'a>) -> Outcome<'a> {
    match &args[0] {
        Value::Opaque(Opaque::Cidr(cidr)) => Ok(run(*cidr)),
        _ => no_such_overload(),
    }
}

pub(crate) fn family<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    ip(args, |address| Value::Int(if address.is_ipv4() { 4 } else { 6 }))
}

pub(crate) fn is_unspecified<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    ip(args, |address| Value::Bool(address.is_unspecified()))
}

pub(crate) fn is_loopback<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    ip(args, |address| Value::Bool(address.is_loopback()))
}

pub(crate) fn is_link_local_multicast<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    ip(args, |address| {
        Value::Bool(match address {
            IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
            IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
        })
    })
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

pub(crate) fn is_link_local_unicast<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    ip(args, |address| Value::Bool(link_local(address)))
}

pub(crate) fn is_global_unicast<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    ip(args, |address| {
        let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        Value::Bool(
            !broadcast
                && !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !link_local(address),
        )
    })
}

pub(crate) fn contains_ip<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::Cidr(cidr)), other] = args else { return no_such_overload() };
    match other {
        Value::Opaque(Opaque::Ip(other)) => Ok(Value::Bool(cidr.contains(*other))),
        // As upstream, an invalid address fails as if the function did not exist.
        Value::String(s) => match address(s) {
            Ok(other) => Ok(Value::Bool(cidr.contains(other))),
            Err(_) => no_such_overload(),
        },
        _ => no_such_overload(),
    }
}

pub(crate) fn contains_cidr<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::Cidr(cidr)), other] = args else { return no_such_overload() };
    match other {
        Value::Opaque(Opaque::Cidr(other)) => Ok(Value::Bool(cidr.contains_cidr(*other))),
        Value::String(s) => match parse_cidr(s) {
            Ok(other) => Ok(Value::Bool(cidr.contains_cidr(other))),
            Err(message) => {
                fail(format!("network address parse error during conversion from string: {message}"))
            }
        },
        _ => no_such_overload(),
    }
}

pub(crate) fn cidr_ip<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    cidr(args, |cidr| Value::Opaque(Opaque::Ip(cidr.address)))
}

pub(crate) fn prefix_length<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    cidr(args, |cidr| Value::Int(i64::from(cidr.bits)))
}

pub(crate) fn masked<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    cidr(args, |cidr| Value::Opaque(Opaque::Cidr(cidr.masked())))
}
