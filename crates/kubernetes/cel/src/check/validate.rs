//! Checks of Kubernetes beyond types: literal durations, timestamps, regular expressions and format strings, and that
//! lists and maps have elements of one type.

use super::Checked;
use super::Reference;
use crate::library::{format_string, regex};
use crate::syntax::ast::{Expr, ExprId, Literal};
use crate::syntax::source::{Issues, Source};
use crate::types::Type;
use crate::value::time;

pub(super) fn validate(checked: &Checked, source: &Source, issues: &mut Issues) {
    let mut stack = vec![(checked.ast.root, false)];
    while let Some((id, exempt)) = stack.pop() {
        let at = |id: ExprId| source.location(checked.ast.offset(id));
        let mut exempt = exempt;
        match checked.ast.get(id) {
            Expr::Call { function, target, args } => {
                if let Some(arg) = args.first()
                    && let Some(literal) = checked.ast.literal(*arg)
                    && !literal_fits(function, literal)
                {
                    issues.report(at(*arg), format!("invalid {function} argument"));
                }
                if &**function == "format" {
                    exempt = true;
                    if let (Some(target), [list]) = (target, args.as_slice()) {
                        check_format(checked, source, id, *target, *list, issues);
                    }
                }
            }
            Expr::List { elements } if !exempt => {
                let mut first: Option<&Type> = None;
                for element in elements {
                    let t = element_type(checked, element.value, element.optional);
                    match first {
                        None => first = Some(t),
                        Some(first) if !first.equals(t, true) => {
                            issues.report(
                                at(element.value),
                                format!("expected type '{first}' but found '{t}'"),
                            );
                            break;
                        }
                        Some(_) => {}
                    }
                }
            }
            Expr::Map { entries } if !exempt => {
                let mut first: Option<(&Type, &Type)> = None;
                for entry in entries {
                    let key = checked.type_of(entry.key);
                    let value = element_type(checked, entry.value, entry.optional);
                    let Some((first_key, first_value)) = first else {
                        first = Some((key, value));
                        continue;
                    };
                    if !first_key.equals(key, true) {
                        let message = format!("expected type '{first_key}' but found '{key}'");
                        issues.report(at(entry.key), message);
                    }
                    if !first_value.equals(value, true) {
                        let message = format!("expected type '{first_value}' but found '{value}'");
                        issues.report(at(entry.value), message);
                    }
                }
            }
            _ => {}
        }
        stack.extend(checked.ast.children(id).into_iter().map(|child| (child, exempt)));
    }
}

fn element_type(checked: &Checked, id: ExprId, optional: bool) -> &Type {
    let t = checked.type_of(id);
    if optional { t.params().first().unwrap_or(t) } else { t }
}

/// Whether a literal is a valid first argument of the function.
fn literal_fits(function: &str, literal: &Literal) -> bool {
    match (function, literal) {
        ("duration", Literal::String(s)) => time::parse_duration(s).is_some(),
        ("timestamp", Literal::String(s)) => time::parse_rfc3339(s).is_some_and(|t| t.in_range()),
        ("timestamp", Literal::Int(i)) => time::Timestamp::from_unix(*i).in_range(),
        ("duration", Literal::Int(_)) => false,
        // In the global form this is the text, not the pattern; upstream checks it nevertheless.
        ("matches", Literal::String(s)) => regex::translate(s).is_ok(),
        _ => true,
    }
}

fn check_format(
    checked: &Checked,
    source: &Source,
    call: ExprId,
    target: ExprId,
    list: ExprId,
    issues: &mut Issues,
) {
    let Some(Literal::String(pattern)) = checked.ast.literal(target) else { return };
    let Expr::List { elements } = checked.ast.get(list) else { return };
    if !matches!(checked.reference(call), Reference::Overloads { .. }) {
        return;
    }
    let values: Vec<ExprId> = elements.iter().map(|element| element.value).collect();
    match format_string::check(pattern, checked, &values) {
        Ok(used) if values.len() > used => {
            let message = format!(
                "too many arguments supplied to string.format (expected {used}, got {})",
                values.len()
            );
            issues.report(source.location(checked.ast.offset(call)), message);
        }
        Ok(_) => {}
        Err((at, message)) => {
            let offset = checked.ast.offset(at.unwrap_or(call));
            issues.report(source.location(offset), message);
        }
    }
}
