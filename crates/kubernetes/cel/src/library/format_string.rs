//! `string.format`: clauses, and the formatting of arguments.

use super::convert::scalar_text;
use crate::check::Checked;
use crate::error::EvalError;
use crate::eval::Meter;
use crate::syntax::ast::{Expr, ExprId};
use crate::types::{Kind, Type};
use crate::value::time;
use crate::value::{List, Value};

const DEFAULT_PRECISION: usize = 6;
/// Limit of the precision, which is part of the expression. More digits would only be zeros.
const MAX_PRECISION: usize = 10_000;

enum Clause {
    String,
    Decimal,
    Fixed(usize),
    /// Upstream passes the precision on as a width, so there are always six digits.
    Scientific {
        width: usize,
    },
    Binary,
    Hex {
        upper: bool,
    },
    Octal,
}

/// A part of a format string.
enum Piece<'s> {
    Text(&'s str),
    Percent,
    Clause(Clause),
}

/// Reads the next part; `None` at the end.
fn next_piece<'s>(rest: &mut &'s str) -> Result<Option<Piece<'s>>, String> {
    if rest.is_empty() {
        return Ok(None);
    }
    let Some(after) = rest.strip_prefix('%') else {
        let end = rest.find('%').unwrap_or(rest.len());
        let (text, tail) = rest.split_at(end);
        *rest = tail;
        return Ok(Some(Piece::Text(text)));
    };
    if let Some(tail) = after.strip_prefix('%') {
        *rest = tail;
        return Ok(Some(Piece::Percent));
    }
    if after.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let unparsed = |reason: String| format!("could not parse formatting clause: {reason}");
    let mut precision = DEFAULT_PRECISION;
    let mut tail = after;
    if let Some(digits) = after.strip_prefix('.') {
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        if len == digits.len() {
            return Err(unparsed(
                "error while parsing precision: could not find end of precision specifier".to_owned(),
            ));
        }
        precision = digits[..len].parse().map_err(|_| {
            let reason = if len == 0 { "invalid syntax" } else { "value out of range" };
            unparsed(format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing {:?}: {reason}",
                &digits[..len]
            ))
        })?;
        tail = &digits[len..];
    }
    let kind = tail.bytes().next().unwrap_or_default();
    let clause = match kind {
        b's' => Clause::String,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed(precision.min(MAX_PRECISION)),
        b'e' => Clause::Scientific { width: precision.min(MAX_PRECISION) },
        b'b' => Clause::Binary,
        b'x' | b'X' => Clause::Hex { upper: kind == b'X' },
        b'o' => Clause::Octal,
        other => {
            return Err(unparsed(format!("unrecognized formatting clause \"{}\"", char::from(other))));
        }
    };
    *rest = &tail[1..];
    Ok(Some(Piece::Clause(clause)))
}

/// Formats the arguments.
pub(crate) fn format(meter: &mut Meter, pattern: &str, args: &List<'_>) -> Result<String, EvalError> {
    let mut text = String::new();
    let mut rest = pattern;
    let mut used = 0;
    loop {
        let at_clause = rest.starts_with('%') && !rest.starts_with("%%");
        if at_clause && used >= args.len() {
            return Err(EvalError::new(format!("index {used} out of range")));
        }
        let Some(piece) = next_piece(&mut rest).map_err(EvalError::new)? else { return Ok(text) };
        match piece {
            Piece::Text(part) => {
                meter.allocate(part.len())?;
                text.push_str(part);
            }
            Piece::Percent => text.push('%'),
            Piece::Clause(clause) => {
                let Some(arg) = args.get(used) else {
                    return Err(EvalError::new(format!("index {used} out of range")));
                };
                used += 1;
                let part = print_clause(meter, &clause, &arg?)?;
                text.push_str(&part);
            }
        }
    }
}

/// Why an argument cannot be formatted: it has the wrong type, or the evaluation ended.
enum Unprintable {
    Argument(String),
    Stop(EvalError),
}

fn print_clause(meter: &mut Meter, clause: &Clause, arg: &Value<'_>) -> Result<String, EvalError> {
    let printed = match clause {
        Clause::String => print(meter, arg),
        _ => print_number(clause, arg).map_err(Unprintable::Argument),
    };
    match printed {
        Ok(part) => {
            meter.allocate(part.len())?;
            Ok(part)
        }
        Err(Unprintable::Argument(reason)) => {
            Err(EvalError::new(format!("error during formatting: {reason}")))
        }
        Err(Unprintable::Stop(error)) => Err(error),
    }
}

fn print_number(clause: &Clause, arg: &Value<'_>) -> Result<String, String> {
    let wrong = || Err(refusal(clause, arg.type_name()));
    match (clause, arg) {
        (Clause::Decimal, Value::Int(i)) => Ok(i.to_string()),
        (Clause::Decimal, Value::Uint(u)) => Ok(u.to_string()),
        (Clause::Fixed(precision), _) => match double(arg) {
            Some(d) => Ok(fixed(d, *precision)),
            None => wrong(),
        },
        (Clause::Scientific { width }, _) => match double(arg) {
            Some(d) => Ok(format!("{:>width$}", scientific(d))),
            None => wrong(),
        },
        (Clause::Binary, Value::Int(i)) => Ok(signed(*i, |u| format!("{u:b}"))),
        (Clause::Binary, Value::Uint(u)) => Ok(format!("{u:b}")),
        (Clause::Binary, Value::Bool(b)) => Ok(u8::from(*b).to_string()),
        (Clause::Octal, Value::Int(i)) => Ok(signed(*i, |u| format!("{u:o}"))),
        (Clause::Octal, Value::Uint(u)) => Ok(format!("{u:o}")),
        (Clause::Hex { upper }, Value::Int(i)) => Ok(cased(signed(*i, |u| format!("{u:x}")), *upper)),
        (Clause::Hex { upper }, Value::Uint(u)) => Ok(cased(format!("{u:x}"), *upper)),
        (Clause::Hex { upper }, Value::String(s)) => Ok(cased(hex(s.as_bytes()), *upper)),
        (Clause::Hex { upper }, Value::Bytes(b)) => Ok(cased(hex(b), *upper)),
        _ => wrong(),
    }
}

fn signed(i: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if i < 0 { "-" } else { "" };
    format!("{sign}{}", digits(i.unsigned_abs()))
}

fn cased(text: String, upper: bool) -> String {
    if upper { text.to_ascii_uppercase() } else { text }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A double, or one of the three names of doubles that literals cannot express.
fn double(arg: &Value<'_>) -> Option<f64> {
    match arg {
        Value::Double(d) => Some(*d),
        Value::String(s) => match &**s {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(d: f64) -> Option<&'static str> {
    if d.is_nan() {
        Some("NaN")
    } else if d.is_infinite() {
        Some(if d > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

/// This locale formats a negative zero without its sign.
fn unsigned_zero(d: f64) -> f64 {
    if d == 0.0 { 0.0 } else { d }
}

/// Fixed point in the American locale that upstream uses: groups of thousands.
fn fixed(d: f64, precision: usize) -> String {
    if let Some(name) = special(d) {
        return name.to_owned();
    }
    let plain = format!("{:.precision$}", unsigned_zero(d));
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut text = sign.to_owned();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(c);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// Scientific form in the same locale: `1.052033×10⁰³`.
fn scientific(d: f64) -> String {
    if let Some(name) = special(d) {
        return name.to_owned();
    }
    let text = format!("{:.DEFAULT_PRECISION$e}", unsigned_zero(d));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let superscript = |c: char| match c {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        c => c,
    };
    let digits: String = format!("{:02}", exponent.abs()).chars().map(superscript).collect();
    let sign = if exponent < 0 { "⁻" } else { "" };
    format!("{mantissa}×10{sign}{digits}")
}

/// `%s`
fn print(meter: &mut Meter, arg: &Value<'_>) -> Result<String, Unprintable> {
    match arg {
        Value::List(_) | Value::Map(_) => print_element(meter, arg),
        Value::Null => Ok("null".to_owned()),
        Value::String(s) => Ok(s.to_string()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Unprintable::Argument(
                "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string"
                    .to_owned(),
            )),
        },
        value => scalar_text(value)
            .ok_or_else(|| Unprintable::Argument(refusal(&Clause::String, value.type_name()))),
    }
}

/// An argument inside a list or map: strings are quoted, numbers have six decimals.
fn print_element(meter: &mut Meter, arg: &Value<'_>) -> Result<String, Unprintable> {
    meter.work(1).map_err(Unprintable::Stop)?;
    match arg {
        Value::List(list) => {
            let mut text = String::from("[");
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    text.push_str(", ");
                }
                let item = item.map_err(Unprintable::Stop)?;
                let part = print_element(meter, &item)?;
                meter.allocate(part.len()).map_err(Unprintable::Stop)?;
                text.push_str(&part);
            }
            text.push(']');
            Ok(text)
        }
        Value::Map(map) => {
            let mut pairs = Vec::new();
            for key in map.keys() {
                if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                    return Err(Unprintable::Argument(format!(
                        "no formatting function for map key of type {}",
                        key.type_name()
                    )));
                }
                let key_text = print_element(meter, &key)?;
                if let Some(value) = map.find(&key).map_err(Unprintable::Stop)? {
                    let part = print_element(meter, &value)?;
                    meter.allocate(key_text.len() + part.len()).map_err(Unprintable::Stop)?;
                    pairs.push((key_text, part));
                }
            }
            pairs.sort();
            let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", pairs.join(", ")))
        }
        Value::String(s) => Ok(go_quote(s)),
        Value::Bytes(_) => Ok(format!("b{}", go_quote(&print(meter, arg)?))),
        Value::Double(d) => match d {
            d if d.is_nan() => Ok("\"NaN\"".to_owned()),
            d if d.is_infinite() => Ok(if *d > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" }.to_owned()),
            d => Ok(format!("{d:.DEFAULT_PRECISION$}")),
        },
        Value::Timestamp(t) => Ok(format!("timestamp({})", go_quote(&t.to_rfc3339()))),
        Value::Duration(nanos) => Ok(format!("duration({})", go_quote(&time::format_seconds(*nanos)))),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Null | Value::Type(_) => print(meter, arg),
        other => Err(Unprintable::Argument(format!("no formatting function for {}", other.type_name()))),
    }
}

/// Go's `%q`.
pub(crate) fn go_quote(s: &str) -> String {
    let mut text = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0c' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0b' => text.push_str("\\v"),
            c if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() || ('\u{2028}'..='\u{2029}').contains(&c) || c == '\u{feff}' => {
                text.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

fn refusal(clause: &Clause, type_name: &str) -> String {
    let rule = match clause {
        Clause::String => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        Clause::Decimal => "decimal clause can only be used on integers",
        Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
        Clause::Scientific { .. } => "scientific clause can only be used on doubles",
        Clause::Binary => "only integers and bools can be formatted as binary",
        Clause::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
        Clause::Octal => "octal clause can only be used on integers",
    };
    format!("{rule}, was given {type_name}")
}

/// Checks a literal format string against the types of a literal list of arguments. Returns the number of arguments
/// used, or an error and its location (the call, unless an argument is given).
pub(crate) fn check(
    pattern: &str,
    checked: &Checked,
    args: &[ExprId],
) -> Result<usize, (Option<ExprId>, String)> {
    let mut rest = pattern;
    let mut used = 0;
    loop {
        let at_clause = rest.starts_with('%') && !rest.starts_with("%%");
        if at_clause && rest.len() > 1 && used >= args.len() {
            return Err((None, format!("index {used} out of range")));
        }
        let Some(piece) = next_piece(&mut rest).map_err(|reason| (None, reason))? else { return Ok(used) };
        let Piece::Clause(clause) = piece else { continue };
        let arg = args[used];
        used += 1;
        let bad = match clause {
            Clause::String => unprintable_part(checked, arg),
            _ => (!clause_fits(&clause, checked.type_of(arg))).then_some(arg),
        };
        if let Some(bad) = bad {
            let reason = refusal(&clause, checked.type_of(bad).name());
            return Err((Some(bad), format!("error during formatting: {reason}")));
        }
    }
}

fn clause_fits(clause: &Clause, t: &Type) -> bool {
    match (clause, &t.0) {
        (_, Kind::Dyn) => true,
        (Clause::Decimal | Clause::Octal, kind) => matches!(kind, Kind::Int | Kind::Uint),
        (Clause::Fixed(_) | Clause::Scientific { .. }, kind) => matches!(kind, Kind::Double | Kind::String),
        (Clause::Binary, kind) => matches!(kind, Kind::Int | Kind::Uint | Kind::Bool),
        (Clause::Hex { .. }, kind) => {
            matches!(kind, Kind::Int | Kind::Uint | Kind::String | Kind::Bytes)
        }
        (Clause::String, kind) => matches!(
            kind,
            Kind::List(_)
                | Kind::Map(_)
                | Kind::Int
                | Kind::Uint
                | Kind::Double
                | Kind::Bool
                | Kind::String
                | Kind::Timestamp
                | Kind::Bytes
                | Kind::Duration
                | Kind::Type(_)
                | Kind::Null
        ),
    }
}

/// The part of a literal argument that `%s` cannot format.
fn unprintable_part(checked: &Checked, arg: ExprId) -> Option<ExprId> {
    if !clause_fits(&Clause::String, checked.type_of(arg)) {
        return Some(arg);
    }
    match checked.ast.get(arg) {
        Expr::List { .. } | Expr::Map { .. } => {
            checked.ast.children(arg).into_iter().find_map(|part| unprintable_part(checked, part))
        }
        _ => None,
    }
}
