//! Value validation: one walk over a value and its schema, with the results, order and texts of upstream's OpenAPI
//! validator. Fields are visited in the order of their names; upstream's order is random.

mod findings;
mod number;
mod types;

use std::collections::HashSet;
use std::hash::Hash;

use serde_json::{Map, Value};

use crate::Schema;
use crate::correlate::Correlated;
use crate::field::FieldErrors;
use crate::format::Format;
use crate::golang;
use crate::path::Path;
use crate::schema::{Additional, Checks};
use findings::{Findings, Name};
use types::{Shape, Types};

/// How a schema is interpreted. Upstream has two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// For objects: unsupported formats are ignored, int-or-string is a type.
    Object,
    /// For defaults in CRDs: formats and types are checked literally.
    Definition,
}

/// Validates a value. Paths of errors start with `at`.
pub fn validate(schema: &Schema, value: &Value, dialect: Dialect, at: &Path<'_>) -> FieldErrors {
    let mut findings = Findings::new(at);
    Walk { dialect }.node(schema, value, &Name::ROOT, None, &mut findings);
    findings.into_errors()
}

/// Validates a changed value. Errors in unchanged parts are dropped, so that an object stored under an older schema
/// can still be changed elsewhere.
pub fn validate_update(pair: Correlated<'_>, schema: &Schema, at: &Path<'_>) -> FieldErrors {
    let mut findings = Findings::new(at);
    Walk { dialect: Dialect::Object }.ratcheted(schema, &pair, &Name::ROOT, &mut findings);
    findings.into_errors()
}

struct Walk {
    dialect: Dialect,
}

impl Walk {
    /// Validates a value with its old value, and drops errors if it did not change.
    fn ratcheted(
        &self,
        schema: &Schema,
        pair: &Correlated<'_>,
        name: &Name<'_>,
        out: &mut Findings<'_>,
    ) -> u64 {
        let before = out.len();
        let count = self.node(schema, pair.new, name, Some(pair), out);
        if out.len() > before && pair.unchanged() {
            out.truncate(before);
        }
        count
    }

    /// Validates one value. Returns upstream's count of passed checks, which selects the branch of an `anyOf` or
    /// `oneOf` to report.
    fn node(
        &self,
        schema: &Schema,
        value: &Value,
        name: &Name<'_>,
        pair: Option<&Correlated<'_>>,
        out: &mut Findings<'_>,
    ) -> u64 {
        let types = Types::of(schema, self.dialect);
        let checks = schema.checks.as_deref();
        let format = checks.and_then(|checks| types.format(checks, self.dialect));

        if value.is_null() {
            let typed = types.check(schema, value, Shape::Null, None, name, out);
            self.enumeration(checks, value, name, out);
            return u64::from(typed);
        }

        let shape = Shape::of(value);
        let mut count = 1;
        if !types.is_empty() || format.is_some() {
            count += 1 + u64::from(types.check(schema, value, shape, format, name, out));
        }
        count += 2;
        if let Some(checks) = checks {
            count += self.combinations(checks, value, name, out);
        }
        match value {
            Value::String(text) => {
                count += 1;
                if let Some(checks) = checks {
                    string(checks, text, name, out);
                }
                if let Some(known) = format.and_then(Format::find) {
                    count += 1;
                    if !known.accepts(text) {
                        let format = format.unwrap_or_default();
                        out.type_invalid(
                            name,
                            text.as_str().into(),
                            format!("{name} in body must be of type {format}: {}", golang::quote(text)),
                        );
                    }
                }
            }
            Value::Number(n) => {
                count += 2;
                if checks.is_some() || types.single().is_some() {
                    number::check(n, checks, &types, format, name, out);
                }
            }
            Value::Array(items) => count += 2 + self.array(schema, checks, items, name, pair, out),
            _ => {}
        }
        count += 1;
        self.enumeration(checks, value, name, out);
        if let Value::Object(fields) = value {
            count += 1 + self.object(schema, checks, fields, name, pair, out);
        }
        count
    }

    fn enumeration(&self, checks: Option<&Checks>, value: &Value, name: &Name<'_>, out: &mut Findings<'_>) {
        let Some(checks) = checks.filter(|checks| !checks.enumeration.is_empty()) else { return };
        if checks.enumeration.iter().any(|allowed| enum_matches(value, allowed)) {
            return;
        }
        let supported: Vec<String> = checks
            .enumeration
            .iter()
            .map(|allowed| match allowed {
                Value::String(text) => text.clone(),
                other => golang::json(other),
            })
            .collect();
        let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
        out.not_supported(name, value.clone(), &supported);
    }

    fn branch<'a>(
        &self,
        schema: &Schema,
        value: &Value,
        name: &Name<'_>,
        out: &Findings<'a>,
    ) -> (u64, Findings<'a>) {
        let mut findings = out.fresh();
        let count = self.node(schema, value, name, None, &mut findings);
        (count, findings)
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`. Their parts have no old value.
    fn combinations(&self, checks: &Checks, value: &Value, name: &Name<'_>, out: &mut Findings<'_>) -> u64 {
        let mut count = 0;
        let quoted = || golang::quote(&name.to_string());

        if !checks.any_of.is_empty() {
            let mut best: Option<(u64, Findings<'_>)> = None;
            let mut success = None;
            for schema in &checks.any_of {
                let (matched, findings) = self.branch(schema, value, name, out);
                if findings.is_empty() {
                    success = Some(matched);
                    break;
                }
                if best.as_ref().is_none_or(|(most, _)| matched > *most) {
                    best = Some((matched, findings));
                }
            }
            match (success, best) {
                (Some(matched), _) => count += matched,
                (None, best) => {
                    out.composite(format!("{} must validate at least one schema (anyOf)", quoted()));
                    if let Some((matched, findings)) = best {
                        count += matched;
                        out.append(findings);
                    }
                }
            }
        }
        if !checks.one_of.is_empty() {
            let mut best: Option<(u64, Findings<'_>)> = None;
            let (mut valid, mut first) = (0, None);
            for schema in &checks.one_of {
                let (matched, findings) = self.branch(schema, value, name, out);
                if findings.is_empty() {
                    valid += 1;
                    best = None;
                    first.get_or_insert(matched);
                } else if valid == 0 && best.as_ref().is_none_or(|(most, _)| matched > *most) {
                    best = Some((matched, findings));
                }
            }
            if valid == 1 {
                count += first.unwrap_or_default();
            } else {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    many => format!("Found {many} valid alternatives"),
                };
                out.composite(format!("{} must validate one and only one schema (oneOf). {found}", quoted()));
                if let Some((matched, findings)) = best {
                    count += matched;
                    out.append(findings);
                }
            }
        }
        if !checks.all_of.is_empty() {
            let mut valid = 0;
            for schema in &checks.all_of {
                let before = out.len();
                count += self.node(schema, value, name, None, out);
                valid += usize::from(out.len() == before);
            }
            if valid != checks.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                out.composite(format!("{} must validate all the schemas (allOf){none}", quoted()));
            }
        }
        if let Some(not) = &checks.not
            && self.branch(not, value, name, out).1.is_empty()
        {
            out.composite(format!("{} must not validate the schema (not)", quoted()));
        }
        count
    }

    fn array(
        &self,
        schema: &Schema,
        checks: Option<&Checks>,
        items: &[Value],
        name: &Name<'_>,
        pair: Option<&Correlated<'_>>,
        out: &mut Findings<'_>,
    ) -> u64 {
        let mut count = 0;
        if let Some(child) = &schema.items {
            let old = pair.and_then(Correlated::entries);
            for (index, item) in items.iter().enumerate() {
                let name = name.index(index);
                let pair = old.as_ref().and_then(|old| old.pair(item));
                count += match pair {
                    Some(pair) => self.ratcheted(child, &pair, &name, out),
                    None => self.node(child, item, &name, None, out),
                };
            }
        }
        let Some(checks) = checks else { return count };
        let size = items.len() as i64;
        if let Some(min) = checks.min_items.filter(|min| size < *min) {
            out.invalid(name, size.into(), format!("{name} in body should have at least {min} items"));
        }
        if let Some(max) = checks.max_items.filter(|max| size > *max) {
            out.too_many(name, size, max);
        }
        if checks.unique_items && !all_differ(items) {
            out.invalid(name, "".into(), format!("{name} in body shouldn't contain duplicates"));
        }
        count
    }

    fn object(
        &self,
        schema: &Schema,
        checks: Option<&Checks>,
        fields: &Map<String, Value>,
        name: &Name<'_>,
        pair: Option<&Correlated<'_>>,
        out: &mut Findings<'_>,
    ) -> u64 {
        let mut count = 0;
        let size = fields.len() as i64;
        if let Some(checks) = checks {
            if let Some(min) = checks.min_properties.filter(|min| size < *min) {
                out.invalid(
                    name,
                    size.into(),
                    format!("{name} in body should have at least {min} properties"),
                );
            }
            if let Some(max) = checks.max_properties.filter(|max| size > *max) {
                out.too_many(name, size, max);
            }
        }
        let undeclared = fields.iter().filter(|(key, _)| !schema.properties.contains_key(*key));
        match &schema.additional {
            Additional::Any(false) => {
                for (key, _) in undeclared {
                    out.invalid(
                        name,
                        key.as_str().into(),
                        format!("{name}.{key} in body is a forbidden property"),
                    );
                }
            }
            Additional::Schema(child) => {
                for (key, value) in undeclared {
                    let child_name = name.additional(key);
                    count += self.field(child, key, value, &child_name, name, pair, out);
                }
            }
            Additional::Any(true) | Additional::None => {}
        }
        // Iterates over the shorter one: objects of wide schemas use few fields.
        if fields.len() < schema.properties.len() {
            for (key, value) in fields {
                if let Some(child) = schema.properties.get(key) {
                    count += self.field(child, key, value, &name.field(key), name, pair, out);
                }
            }
        } else {
            for (key, child) in &schema.properties {
                if let Some(value) = fields.get(key) {
                    count += self.field(child, key, value, &name.field(key), name, pair, out);
                }
            }
        }
        for key in checks.map(|checks| checks.required.as_slice()).unwrap_or_default() {
            if !fields.contains_key(key) {
                out.required(&name.additional(key));
            }
        }
        count
    }

    #[expect(clippy::too_many_arguments, reason = "one call of a recursive walk")]
    fn field(
        &self,
        schema: &Schema,
        key: &str,
        value: &Value,
        name: &Name<'_>,
        parent: &Name<'_>,
        pair: Option<&Correlated<'_>>,
        out: &mut Findings<'_>,
    ) -> u64 {
        // Both objects were converted to the current version, so an unchanged `apiVersion` means nothing.
        let identity = parent.is_root() && matches!(key, "kind" | "apiVersion");
        match pair.and_then(|pair| pair.key(key)).filter(|_| !identity) {
            Some(pair) => self.ratcheted(schema, &pair, name, out),
            None => self.node(schema, value, name, None, out),
        }
    }
}

fn string(checks: &Checks, text: &str, name: &Name<'_>, out: &mut Findings<'_>) {
    if checks.max_length.is_some() || checks.min_length.is_some() {
        let length = text.chars().count() as i64;
        if let Some(max) = checks.max_length.filter(|max| length > *max) {
            out.too_long(name, max);
            return;
        }
        if let Some(min) = checks.min_length.filter(|min| length < *min) {
            out.invalid(name, text.into(), format!("{name} in body should be at least {min} chars long"));
            return;
        }
    }
    if let Some(pattern) = &checks.pattern {
        let source = pattern.source();
        match pattern.regex() {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => out.invalid(name, text.into(), format!("{name} in body should match '{source}'")),
            Err(error) => out.invalid(
                name,
                text.into(),
                format!("{name} in body should match '{source}, but pattern is invalid: {error}'"),
            ),
        }
    }
}

/// Upstream converts the value to the type of each allowed one before it compares, with Go's rules: numbers are
/// truncated, an integer becomes the character of that number. Null equals nothing.
fn enum_matches(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() != b.is_f64() => {
            let (Some(a_float), Some(b_float)) = (a.as_f64(), b.as_f64()) else { return false };
            if b.is_f64() { a_float == b_float } else { number::to_i64(a_float) == number::to_i64(b_float) }
        }
        (Value::Number(number), Value::String(text)) => {
            let code = number.as_i64().and_then(|n| u32::try_from(n).ok());
            number.is_i64() && code.and_then(char::from_u32).unwrap_or('\u{fffd}').to_string() == *text
        }
        (Value::Null, _) | (_, Value::Null) => false,
        _ => value == allowed,
    }
}

/// Whether all values differ.
fn all_differ<T: Hash + Eq>(items: &[T]) -> bool {
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().all(|item| seen.insert(item))
}

#[cfg(test)]
mod tests;
