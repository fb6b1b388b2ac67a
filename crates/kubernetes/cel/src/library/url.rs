//! `kubernetes.URL`, parsed as Go's `net/url` does, which differs from the WHATWG rules.

use std::fmt;
use std::sync::Arc;

use super::format_string::go_quote;
use super::network::parse_address;
use super::{Opaque, Outcome, fail, no_such_overload};
use crate::eval::Meter;
use crate::value::{Key, List, Map, OwnedMap, Text, Value};

/// The parts of a URL. Those that can contain escaped bytes are bytes.
#[derive(Clone, Debug, Default)]
pub struct Url {
    scheme: String,
    opaque: String,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    raw_path: String,
    omit_host: bool,
    force_query: bool,
    raw_query: String,
    fragment: Vec<u8>,
    raw_fragment: String,
}

/// The part of a URL, which decides what must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

fn should_escape(byte: u8, part: UrlPart) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        return false;
    }
    let plain: &[u8] = match part {
        UrlPart::Path => b"$&+,/:;=@",
        UrlPart::Host | UrlPart::Zone => b"!\"$&'()*+,:;<=>[]",
        UrlPart::User => b"$&+,;=",
        UrlPart::Query => b"",
        UrlPart::Fragment => b"!$&()*+,/:;=?@",
    };
    !plain.contains(&byte)
}

fn escape(bytes: &[u8], part: UrlPart) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if should_escape(*byte, part) {
            text.push_str(&format!("%{byte:02X}"));
        } else {
            text.push(char::from(*byte));
        }
    }
    text
}

fn unescape(s: &str, part: UrlPart) -> Result<Vec<u8>, String> {
    let bytes = s.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'%' => {
                let code = bytes.get(i + 1..i + 3).filter(|code| code.iter().all(u8::is_ascii_hexdigit));
                let invalid = |end: usize| {
                    let text = String::from_utf8_lossy(&bytes[i..end.min(bytes.len())]);
                    Err(format!("invalid URL escape {}", go_quote(&text)))
                };
                let Some(code) = code else { return invalid(i + 3) };
                let digit = |b: u8| (b as char).to_digit(16).unwrap_or_default() as u8;
                let value = digit(code[0]) << 4 | digit(code[1]);
                if part == UrlPart::Host && digit(code[0]) < 8 && code != b"25" {
                    return invalid(i + 3);
                }
                if part == UrlPart::Zone
                    && code != b"25"
                    && value != b' '
                    && should_escape(value, UrlPart::Host)
                {
                    return invalid(i + 3);
                }
                out.push(value);
                i += 3;
            }
            b'+' if part == UrlPart::Query => {
                out.push(b' ');
                i += 1;
            }
            byte => {
                if matches!(part, UrlPart::Host | UrlPart::Zone) && byte < 0x80 && should_escape(byte, part) {
                    return Err(format!("invalid character {} in host name", go_quote(&s[i..=i])));
                }
                out.push(byte);
                i += 1;
            }
        }
    }
    Ok(out)
}

fn parse_parts(raw: &str, via_request: bool) -> Result<Url, String> {
    if raw.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if raw.is_empty() && via_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if raw == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(raw)?;
    url.scheme = scheme.to_ascii_lowercase();
    if rest.ends_with('?') && rest.matches('?').count() == 1 {
        url.force_query = true;
        rest = &rest[..rest.len() - 1];
    } else if let Some((before, query)) = rest.split_once('?') {
        url.raw_query = query.to_owned();
        rest = before;
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority =
        (!url.scheme.is_empty() || !via_request && !rest.starts_with("///")) && rest.starts_with("//");
    if has_authority {
        let authority = &rest[2..];
        let end = authority.find('/').unwrap_or(authority.len());
        rest = &authority[end..];
        parse_authority(&mut url, &authority[..end])?;
    } else if !url.scheme.is_empty() && rest.starts_with('/') {
        url.omit_host = true;
    }
    url.path = unescape(rest, UrlPart::Path)?;
    if escape(&url.path, UrlPart::Path) != rest {
        url.raw_path = rest.to_owned();
    }
    Ok(url)
}

fn split_scheme(raw: &str) -> Result<(&str, &str), String> {
    for (i, c) in raw.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&raw[..i], &raw[i + 1..])),
            _ => return Ok(("", raw)),
        }
    }
    Ok(("", raw))
}

fn parse_authority(url: &mut Url, authority: &str) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = parse_host(&url.scheme, host)?;
    let Some(user) = user else { return Ok(()) };
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    url.user = Some(match user.split_once(':') {
        None => (unescape(user, UrlPart::User)?, None),
        Some((name, password)) => (unescape(name, UrlPart::User)?, Some(unescape(password, UrlPart::User)?)),
    });
    Ok(())
}

fn is_optional_port(s: &str) -> bool {
    s.is_empty() || s.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    let invalid_port = |port: &str| Err(format!("invalid port {} after host", go_quote(port)));
    match host.rfind('[') {
        Some(0) => {
            let Some(close) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
            let port = &host[close + 1..];
            if !is_optional_port(port) {
                return invalid_port(port);
            }
            let name = &host[1..close];
            let unescaped = match name.find("%25") {
                Some(zone) => {
                    let mut bytes = unescape(&name[..zone], UrlPart::Host)?;
                    bytes.extend(unescape(&name[zone..], UrlPart::Zone)?);
                    bytes
                }
                None => unescape(name, UrlPart::Host)?,
            };
            let text = String::from_utf8_lossy(&unescaped);
            match parse_address(&text) {
                Err(error) => return Err(format!("invalid host: {error}")),
                Ok((address, _)) if address.is_ipv4() => return Err("invalid IP-literal".to_owned()),
                Ok(_) => {}
            }
            let mut bytes = vec![b'['];
            bytes.extend(&unescaped);
            bytes.push(b']');
            bytes.extend(port.bytes());
            return Ok(bytes);
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(first) = host.find(':') {
        // Only these schemes forbid further colons before the port.
        let colon = if matches!(scheme, "http" | "https") { Some(first) } else { host.rfind(':') };
        let port = &host[colon.unwrap_or(first)..];
        if !is_optional_port(port) {
            return invalid_port(port);
        }
    }
    unescape(host, UrlPart::Host)
}

impl Url {
    fn parse_request(raw: &str) -> Result<Self, String> {
        parse_parts(raw, true).map_err(|error| format!("parse {}: {error}", go_quote(raw)))
    }

    fn parse(raw: &str) -> Result<Self, String> {
        let (before, fragment) = raw.split_once('#').unwrap_or((raw, ""));
        let mut url =
            parse_parts(before, false).map_err(|error| format!("parse {}: {error}", go_quote(before)))?;
        if !fragment.is_empty() {
            url.fragment = unescape(fragment, UrlPart::Fragment)
                .map_err(|error| format!("parse {}: {error}", go_quote(raw)))?;
            if escape(&url.fragment, UrlPart::Fragment) != fragment {
                url.raw_fragment = fragment.to_owned();
            }
        }
        Ok(url)
    }

    fn escaped(raw: &str, bytes: &[u8], part: UrlPart) -> String {
        let valid = |b: u8| b"!$&'()*+,;=:@[]%".contains(&b) || !should_escape(b, part);
        if !raw.is_empty()
            && raw.bytes().all(valid)
            && unescape(raw, part).is_ok_and(|unescaped| unescaped == bytes)
        {
            return raw.to_owned();
        }
        if part == UrlPart::Path && bytes == b"*" {
            return "*".to_owned();
        }
        escape(bytes, part)
    }

    fn escaped_path(&self) -> String {
        Self::escaped(&self.raw_path, &self.path, UrlPart::Path)
    }

    fn host_and_port(&self) -> (String, String) {
        let whole = String::from_utf8_lossy(&self.host).into_owned();
        let (mut host, mut port) = (whole.as_str(), "");
        if let Some(colon) = whole.rfind(':')
            && is_optional_port(&whole[colon..])
        {
            (host, port) = (&whole[..colon], &whole[colon + 1..]);
        }
        if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            host = inner;
        }
        (host.to_owned(), port.to_owned())
    }

    fn query(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.raw_query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((unescape(key, UrlPart::Query).ok()?, unescape(value, UrlPart::Query).ok()?))
            })
            .collect()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&self.scheme);
            text.push(':');
        }
        if self.opaque.is_empty() {
            let has_host = !self.host.is_empty() || self.user.is_some();
            if has_host || !self.scheme.is_empty() && !self.omit_host {
                if has_host || !self.path.is_empty() {
                    text.push_str("//");
                }
                if let Some((name, password)) = &self.user {
                    text.push_str(&escape(name, UrlPart::User));
                    if let Some(password) = password {
                        text.push(':');
                        text.push_str(&escape(password, UrlPart::User));
                    }
                    text.push('@');
                }
                text.push_str(&escape(&self.host, UrlPart::Host));
            }
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                text.push('/');
            }
            if text.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
                text.push_str("./");
            }
            text.push_str(&path);
        } else {
            text.push_str(&self.opaque);
        }
        if self.force_query || !self.raw_query.is_empty() {
            text.push('?');
            text.push_str(&self.raw_query);
        }
        if !self.fragment.is_empty() {
            text.push('#');
            text.push_str(&Self::escaped(&self.raw_fragment, &self.fragment, UrlPart::Fragment));
        }
        f.write_str(&text)
    }
}

/// Why a text is not a valid request URI.
pub(crate) fn request_uri_error(s: &str) -> Option<String> {
    Url::parse_request(s).err()
}

pub(crate) fn parse<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::String(s) = &args[0] else { return no_such_overload() };
    match Url::parse_request(s).and_then(|_| Url::parse(s)) {
        Ok(url) => Ok(Value::Opaque(Opaque::Url(Arc::new(url)))),
        Err(error) => fail(format!("URL parse error during conversion from string: {error}")),
    }
}

pub(crate) fn is_url<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::String(s) = &args[0] else { return no_such_overload() };
    Ok(Value::Bool(Url::parse_request(s).is_ok()))
}

fn part<'a>(args: &[Value<'a>], of: fn(&Url) -> String) -> Outcome<'a> {
    match &args[0] {
        Value::Opaque(Opaque::Url(url)) => Ok(Value::string(of(url))),
        _ => no_such_overload(),
    }
}

pub(crate) fn scheme<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |url| url.scheme.clone())
}

pub(crate) fn host<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |url| String::from_utf8_lossy(&url.host).into_owned())
}

pub(crate) fn hostname<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |url| url.host_and_port().0)
}

pub(crate) fn port<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, |url| url.host_and_port().1)
}

pub(crate) fn escaped_path<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    part(args, Url::escaped_path)
}

pub(crate) fn query<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::Opaque(Opaque::Url(url)) = &args[0] else { return no_such_overload() };
    meter.allocate(url.raw_query.len())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut entries: std::collections::BTreeMap<String, Vec<Value<'a>>> = Default::default();
    for (key, value) in url.query() {
        entries.entry(text(&key)).or_default().push(Value::string(text(&value)));
    }
    let entries: OwnedMap<'a> = entries
        .into_iter()
        .map(|(key, values)| (Key::String(Text::Shared(key.into())), Value::List(List::owned(values))))
        .collect();
    Ok(Value::Map(Map::owned(entries)))
}
