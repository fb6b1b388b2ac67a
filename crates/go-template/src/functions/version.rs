//! Semantic versions, as the library behind sprig reads and compares them.

use std::collections::BTreeMap;

use semver::{BuildMetadata, Prerelease, Version};

use super::{Limits, Outcome, Value};

pub fn call(name: &str, values: &[Value], _: &Limits) -> Option<Outcome> {
    Some(match (name, values) {
        ("semverCompare", [Value::Text(constraint), Value::Text(version)]) => {
            satisfies(constraint, version).map(Value::Bool)
        }
        ("semver", [Value::Text(text)]) => lenient(text).map(|(version, _)| {
            let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
            Value::map(BTreeMap::from([
                ("Major".to_owned(), number(version.major)),
                ("Minor".to_owned(), number(version.minor)),
                ("Patch".to_owned(), number(version.patch)),
                ("Prerelease".to_owned(), Value::text(version.pre.as_str())),
                ("Metadata".to_owned(), Value::text(version.build.as_str())),
                ("Original".to_owned(), Value::Text(text.clone())),
            ]))
        }),
        _ => return None,
    })
}

/// How many numbers a version was written with.
type Written = usize;

/// A version with or without a `v`, and with one to three numbers.
fn lenient(text: &str) -> Result<(Version, Written), String> {
    let invalid = || "Invalid Semantic Version".to_owned();
    let bare = text.strip_prefix('v').unwrap_or(text);
    let end = bare.find(['-', '+']).unwrap_or(bare.len());
    let (numbers, rest) = bare.split_at(end);
    let parts: Vec<u64> =
        numbers.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| invalid())?;
    if parts.len() > 3 {
        return Err(invalid());
    }
    let (pre, build) = match rest.split_once('+') {
        Some((pre, build)) => (pre, build),
        None => (rest, ""),
    };
    let mut version = Version::new(0, 0, 0);
    version.major = parts[0];
    version.minor = parts.get(1).copied().unwrap_or(0);
    version.patch = parts.get(2).copied().unwrap_or(0);
    version.pre = Prerelease::new(pre.strip_prefix('-').unwrap_or(pre)).map_err(|_| invalid())?;
    version.build = BuildMetadata::new(build).map_err(|_| invalid())?;
    Ok((version, parts.len()))
}

/// `>= 1.2, < 2 || ~3.1`
fn satisfies(constraint: &str, version: &str) -> Result<bool, String> {
    let (version, _) = lenient(version)?;
    for all in constraint.split("||") {
        let parts = single_constraints(all)?;
        if parts.iter().all(|part| part.holds(&version)) {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Constraint {
    operator: String,
    version: Version,
    written: Written,
}

fn single_constraints(text: &str) -> Result<Vec<Constraint>, String> {
    if let Some((from, to)) = text.split_once(" - ") {
        return Ok(vec![constraint(">=", from.trim())?, constraint("<=", to.trim())?]);
    }
    let mut found = Vec::new();
    let mut rest = text.trim_matches([' ', ',']);
    while !rest.is_empty() {
        let length = rest.find(|c: char| !"=!<>~^".contains(c)).unwrap_or(rest.len());
        let (operator, after) = rest.split_at(length);
        let after = after.trim_start();
        let end = after.find([' ', ',']).unwrap_or(after.len());
        found.push(constraint(operator, &after[..end])?);
        rest = after[end..].trim_matches([' ', ',']);
    }
    if found.is_empty() {
        found.push(constraint("", "*")?);
    }
    Ok(found)
}

fn constraint(operator: &str, text: &str) -> Result<Constraint, String> {
    let improper = || format!("improper constraint: {operator}{text}");
    let operator = match operator {
        "" | "=" | "!=" | ">" | "<" | ">=" | "<=" | "~" | "^" => operator,
        "=>" => ">=",
        "=<" => "<=",
        "~>" => "~",
        _ => return Err(improper()),
    };
    let bare = text.strip_prefix('v').unwrap_or(text);
    let numbers: Vec<&str> = bare.split('.').take_while(|part| !matches!(*part, "x" | "X" | "*")).collect();
    let wild = bare.split('.').any(|part| matches!(part, "x" | "X" | "*"));
    if wild && numbers.is_empty() {
        return Ok(Constraint { operator: operator.to_owned(), version: Version::new(0, 0, 0), written: 0 });
    }
    let plain = if wild { numbers.join(".") } else { bare.to_owned() };
    let (version, written) = lenient(&plain).map_err(|_| improper())?;
    Ok(Constraint { operator: operator.to_owned(), version, written })
}

impl Constraint {
    fn holds(&self, version: &Version) -> bool {
        // Versions before a release are only found by those who ask for them.
        if !version.pre.is_empty() && self.version.pre.is_empty() && self.operator != "!=" {
            return false;
        }
        let wanted = &self.version;
        let order = version.cmp_precedence(wanted);
        // Numbers that were not written match any.
        let prefix = match self.written {
            0 => true,
            1 => version.major == wanted.major,
            2 => (version.major, version.minor) == (wanted.major, wanted.minor),
            _ => order.is_eq(),
        };
        match self.operator.as_str() {
            "" | "=" if self.written == 3 => order.is_eq(),
            "" | "=" => prefix && order.is_ge(),
            "!=" => !prefix,
            ">" => order.is_gt() && !(self.written < 3 && prefix),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            "<=" => order.is_le() || (self.written < 3 && prefix),
            "~" => {
                let same_minor = self.written < 2 || version.minor == wanted.minor;
                order.is_ge() && (self.written == 0 || version.major == wanted.major) && same_minor
            }
            _ => {
                let same = if wanted.major > 0 || self.written < 2 {
                    version.major == wanted.major
                } else if wanted.minor > 0 || self.written < 3 {
                    (version.major, version.minor) == (0, wanted.minor)
                } else {
                    (version.major, version.minor, version.patch) == (0, 0, wanted.patch)
                };
                order.is_ge() && (self.written == 0 || same)
            }
        }
    }
}
