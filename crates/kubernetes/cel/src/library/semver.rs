//! `kubernetes.Semver`

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::format_string::go_quote;
use super::{Opaque, Outcome, fail, no_such_overload};
use crate::eval::Meter;
use crate::value::Value;

/// A semantic version.
#[derive(Clone, Debug)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<Identifier>,
    build: Vec<String>,
}

// Numeric identifiers sort before alphanumeric ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        let pre: Vec<String> = self
            .pre
            .iter()
            .map(|identifier| match identifier {
                Identifier::Number(number) => number.to_string(),
                Identifier::Text(text) => text.clone(),
            })
            .collect();
        if !pre.is_empty() {
            write!(f, "-{}", pre.join("."))?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build.join("."))?;
        }
        Ok(())
    }
}

fn is_alphanumeric(s: &str) -> bool {
    s.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_numeric(s: &str) -> bool {
    s.chars().all(|c| c.is_ascii_digit())
}

fn has_leading_zero(s: &str) -> bool {
    s.len() > 1 && s.starts_with('0')
}

fn number(s: &str) -> Result<u64, String> {
    s.parse().map_err(|_| {
        let reason = if s.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {reason}", go_quote(s))
    })
}

fn part(s: &str, name: &str) -> Result<u64, String> {
    if !is_numeric(s) {
        return Err(format!("Invalid character(s) found in {name} number {}", go_quote(s)));
    }
    if has_leading_zero(s) {
        let capital = name[..1].to_uppercase() + &name[1..];
        return Err(format!("{capital} number must not contain leading zeroes {}", go_quote(s)));
    }
    number(s)
}

impl Version {
    pub(crate) fn parse(s: &str) -> Result<Self, String> {
        if s.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = s.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (part(major, "major")?, part(minor, "minor")?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let patch = part(patch, "patch")?;
        let pre = pre.map_or_else(|| Ok(Vec::new()), |pre| pre.split('.').map(identifier).collect())?;
        let mut builds = Vec::new();
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_alphanumeric(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", go_quote(part)));
            }
            builds.push(part.to_owned());
        }
        Ok(Self { major, minor, patch, pre, build: builds })
    }

    /// Parses a version leniently: `v1.2`, `01.2.3`.
    fn parse_lenient(s: &str) -> Result<Self, String> {
        let s = s.strip_prefix('v').unwrap_or(s);
        let mut parts: Vec<String> = s.splitn(3, '.').map(str::to_owned).collect();
        for part in &mut parts {
            if part.len() > 1 {
                let trimmed = part.trim_start_matches('0');
                let needs_zero = !trimmed.starts_with(|c: char| c.is_ascii_digit());
                *part = if needs_zero { format!("0{trimmed}") } else { trimmed.to_owned() };
            }
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch).cmp(&(other.major, other.minor, other.patch)).then_with(
            || match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            },
        )
    }
}

fn identifier(s: &str) -> Result<Identifier, String> {
    if s.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if is_numeric(s) {
        if has_leading_zero(s) {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                go_quote(s)
            ));
        }
        return number(s).map(Identifier::Number);
    }
    if is_alphanumeric(s) {
        return Ok(Identifier::Text(s.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", go_quote(s)))
}

fn read(args: &[Value<'_>]) -> Option<Result<Version, String>> {
    match args {
        [Value::String(s)] | [Value::String(s), Value::Bool(false)] => Some(Version::parse(s)),
        [Value::String(s), Value::Bool(true)] => Some(Version::parse_lenient(s)),
        _ => None,
    }
}

pub(crate) fn parse<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match read(args) {
        Some(Ok(version)) => Ok(Value::Opaque(Opaque::Semver(Arc::new(version)))),
        Some(Err(message)) => fail(message),
        None => no_such_overload(),
    }
}

pub(crate) fn is_semver<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    read(args).map_or_else(no_such_overload, |version| Ok(Value::Bool(version.is_ok())))
}

fn version<'v>(value: &'v Value<'_>) -> Option<&'v Version> {
    match value {
        Value::Opaque(Opaque::Semver(version)) => Some(version),
        _ => None,
    }
}

fn compared<'a>(args: &[Value<'a>], run: fn(Ordering) -> Value<'a>) -> Outcome<'a> {
    match (version(&args[0]), version(&args[1])) {
        (Some(a), Some(b)) => Ok(run(a.compare(b))),
        _ => no_such_overload(),
    }
}

fn field<'a>(args: &[Value<'a>], of: fn(&Version) -> u64) -> Outcome<'a> {
    version(&args[0]).map_or_else(no_such_overload, |version| Ok(Value::Int(of(version) as i64)))
}

pub(crate) fn is_greater_than<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, |order| Value::Bool(order.is_gt()))
}

pub(crate) fn is_less_than<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, |order| Value::Bool(order.is_lt()))
}

pub(crate) fn compare_to<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, |order| Value::Int(order as i64))
}

pub(crate) fn major<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    field(args, |version| version.major)
}

pub(crate) fn minor<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    field(args, |version| version.minor)
}

pub(crate) fn patch<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    field(args, |version| version.patch)
}
