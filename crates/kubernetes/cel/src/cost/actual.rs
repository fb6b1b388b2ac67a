//! The cost of calls at run time.

use super::{ACCESS_CHECK, REGEX_LENGTH, STRING_TRAVERSAL, UNIT_COST};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::library::Opaque;
use crate::value::Value;

/// The size of a value: 1 if it has none, that of the content for an optional.
pub(crate) fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(value)) => size(value),
        value => value.size().unwrap_or(1),
    }
}

/// Like [`size`], but optionals count as 1: the costs of the libraries do not look into them.
fn plain_size(value: &Value<'_>) -> u64 {
    value.size().unwrap_or(1)
}

fn ceil(size: f64) -> u64 {
    size.ceil() as u64
}

/// Cost of traversing a string of that size.
pub(crate) fn traversal(size: u64) -> u64 {
    ceil(size as f64 * STRING_TRAVERSAL)
}

fn regex(text: u64, pattern: u64) -> u64 {
    let text = ceil((1.0 + text as f64) * STRING_TRAVERSAL);
    text.saturating_mul(ceil(pattern as f64 * REGEX_LENGTH))
}

/// Whether `==` on such a value costs 1 whatever the other side is.
pub(crate) fn has_unit_equality(value: &Value<'_>) -> bool {
    matches!(value, Value::Opaque(_))
}

/// Whether the cost of a call is only known after it has run.
pub(crate) fn depends_on_result(function: &str, overload: &str) -> bool {
    function == "join" || overload == "list_slice"
}

/// Cost of a call. `result` is needed where [`depends_on_result`] is true, and absent if the call failed.
pub(crate) fn call_cost(
    function: &str,
    overload: &str,
    args: &[Value<'_>],
    result: Option<&Value<'_>>,
    meter: &mut Meter,
) -> Result<u64, EvalError> {
    if let Some(cost) = extension_cost(overload, args, result) {
        return Ok(cost);
    }
    if let Some(cost) = library_cost(function, overload, args, result, meter)? {
        return Ok(cost);
    }
    Ok(match (overload, args) {
        (
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format",
            [first, ..],
        ) => traversal(size(first)),
        ("in_list", [_, list]) => size(list),
        (
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes",
            [a, b],
        ) => traversal(size(a).min(size(b))),
        ("add_string" | "add_bytes", [a, b]) => traversal(size(a).saturating_add(size(b))),
        ("matches_string", [text, pattern]) => regex(size(text), size(pattern)),
        ("contains_string", [text, part]) => traversal(size(text)).saturating_mul(traversal(size(part))),
        _ => 1,
    })
}

/// cel-go's set and list extensions.
fn extension_cost(overload: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> Option<u64> {
    // A negative depth of `flatten` wraps around, as on the machines that upstream runs on.
    let allocating = |factor: f64, size: u64| {
        let cost = size as f64 * factor;
        let cost = if cost < 0.0 { cost as i64 as u64 } else { cost as u64 };
        cost.wrapping_add(1 + 10)
    };
    let product = |a: &Value<'_>, b: &Value<'_>| plain_size(a).saturating_mul(plain_size(b));
    let self_compare = |list: &Value<'_>| {
        let Value::List(items) = list else { return allocating(2.0, 1) };
        let text = matches!(items.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
        let factor = if text { 2.0 + STRING_TRAVERSAL } else { 2.0 };
        allocating(factor, product(list, list))
    };
    Some(match (overload, args) {
        ("list_sets_contains_list" | "list_sets_intersects_list", [a, b]) => product(a, b) + 1,
        ("list_sets_equivalent_list", [a, b]) => product(a, b).saturating_mul(2) + 1,
        ("list_slice", _) => allocating(1.0, result.map_or(1, plain_size)),
        ("lists_range", [Value::Int(end)]) => allocating(1.0, u64::try_from(*end).unwrap_or(0)),
        ("lists_range", _) => allocating(1.0, 1),
        ("list_reverse", [list]) => allocating(1.0, plain_size(list)),
        ("list_flatten", [list]) => allocating(1.0, plain_size(list)),
        ("list_flatten_int", [list, Value::Int(depth)]) => allocating(*depth as f64, plain_size(list)),
        ("list_distinct", [list]) => self_compare(list),
        (id, [list]) if id.starts_with("list_") && id.ends_with("_sort") => self_compare(list),
        (id, [_, keys]) if id.ends_with("_sortByAssociatedKeys") => self_compare(keys),
        _ => return None,
    })
}

/// Kubernetes' libraries, by function name.
fn library_cost(
    function: &str,
    overload: &str,
    args: &[Value<'_>],
    result: Option<&Value<'_>>,
    meter: &mut Meter,
) -> Result<Option<u64>, EvalError> {
    let first = args.first().map_or(1, plain_size);
    let second = args.get(1).map_or(1, plain_size);
    Ok(Some(match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => match args.first() {
            Some(value) => tree_cost(value, meter)?,
            None => 0,
        },
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" => traversal(first),
        "ip" if overload == "cidr_ip" => 1,
        "ip" => traversal(first),
        "replace" | "split" | "ip.isCanonical" => ceil(first as f64 * 2.0 * STRING_TRAVERSAL),
        "join" => ceil(result.map_or(1, plain_size) as f64 * 2.0 * STRING_TRAVERSAL),
        "check" => ACCESS_CHECK,
        "find" | "findAll" => regex(first, second),
        "containsIP" => {
            let text = if overload == "cidr_contains_ip_string" { traversal(second) } else { 0 };
            traversal(first + first) + text
        }
        "containsCIDR" => {
            let text = if overload == "cidr_contains_cidr_string" { traversal(second) } else { 0 };
            traversal(first + first) + traversal(first) + 1 + text
        }
        "validate" => match args.first() {
            Some(Value::Opaque(Opaque::Format(format))) => regex(second, format.max_regex_size),
            _ => return Ok(None),
        },
        unit if UNIT_COST.contains(&unit) => 1,
        _ => return Ok(None),
    }))
}

/// Cost of traversing a value with everything it contains.
fn tree_cost(value: &Value<'_>, meter: &mut Meter) -> Result<u64, EvalError> {
    meter.work(1)?;
    Ok(match value {
        Value::String(s) => (s.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::Bytes(b) => (b.len() as f64 * STRING_TRAVERSAL) as u64,
        Value::List(list) => {
            let mut cost = 0u64;
            for item in list.iter() {
                cost = cost.saturating_add(item.map_or(Ok(1), |item| tree_cost(&item, meter))?);
            }
            cost
        }
        Value::Map(map) => {
            let mut cost = 0u64;
            for key in map.keys() {
                let value = match map.find(&key) {
                    Ok(Some(value)) => tree_cost(&value, meter)?,
                    _ => 1,
                };
                cost = cost.saturating_add(tree_cost(&key, meter)?).saturating_add(value);
            }
            cost
        }
        _ => 1,
    })
}
