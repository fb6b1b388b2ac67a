//! The standard library.

use super::{FunctionTable, param};
use crate::library::{convert, operators, standard, temporal};
use crate::types::Type;

const COMPARABLE: [(Type, &str); 8] = [
    (Type::BOOL, "bool"),
    (Type::INT, "int64"),
    (Type::UINT, "uint64"),
    (Type::DOUBLE, "double"),
    (Type::STRING, "string"),
    (Type::BYTES, "bytes"),
    (Type::TIMESTAMP, "timestamp"),
    (Type::DURATION, "duration"),
];

pub(super) fn declare(table: &mut FunctionTable) {
    declare_logic(table);
    declare_arithmetic(table);
    for (name, prefix, run) in [
        ("_<_", "less", operators::less as super::Implementation),
        ("_<=_", "less_equals", operators::less_equals),
        ("_>_", "greater", operators::greater),
        ("_>=_", "greater_equals", operators::greater_equals),
    ] {
        declare_comparison(table, name, prefix);
        table.shared(name, |value| value.is_comparable(), run);
    }
    declare_access(table);
    declare_conversions(table);
    declare_text(table);
    declare_time(table);
}

fn declare_logic(table: &mut FunctionTable) {
    let a = || param("A");
    table.global("_?_:_", "conditional", [Type::BOOL, a(), a()], a(), None);
    table.global("_&&_", "logical_and", [Type::BOOL, Type::BOOL], Type::BOOL, None);
    table.global("_||_", "logical_or", [Type::BOOL, Type::BOOL], Type::BOOL, None);
    table.global("!_", "logical_not", [Type::BOOL], Type::BOOL, None);
    table.shared("!_", |_| true, operators::not);
    table.global("@not_strictly_false", "not_strictly_false", [Type::BOOL], Type::BOOL, None);
    table.global("_==_", "equals", [a(), a()], Type::BOOL, None);
    table.global("_!=_", "not_equals", [a(), a()], Type::BOOL, None);
}

fn declare_arithmetic(table: &mut FunctionTable) {
    let list = || Type::list(param("A"));
    let (int, uint, double) = (Type::INT, Type::UINT, Type::DOUBLE);
    let (timestamp, duration) = (Type::TIMESTAMP, Type::DURATION);
    let mut binary = |name, id, left: &Type, right: &Type, result: &Type| {
        table.global(name, id, [left.clone(), right.clone()], result.clone(), None);
    };
    binary("_+_", "add_bytes", &Type::BYTES, &Type::BYTES, &Type::BYTES);
    binary("_+_", "add_double", &double, &double, &double);
    binary("_+_", "add_duration_duration", &duration, &duration, &duration);
    binary("_+_", "add_duration_timestamp", &duration, &timestamp, &timestamp);
    binary("_+_", "add_timestamp_duration", &timestamp, &duration, &timestamp);
    binary("_+_", "add_int64", &int, &int, &int);
    binary("_+_", "add_list", &list(), &list(), &list());
    binary("_+_", "add_string", &Type::STRING, &Type::STRING, &Type::STRING);
    binary("_+_", "add_uint64", &uint, &uint, &uint);
    binary("_/_", "divide_double", &double, &double, &double);
    binary("_/_", "divide_int64", &int, &int, &int);
    binary("_/_", "divide_uint64", &uint, &uint, &uint);
    binary("_%_", "modulo_int64", &int, &int, &int);
    binary("_%_", "modulo_uint64", &uint, &uint, &uint);
    binary("_*_", "multiply_double", &double, &double, &double);
    binary("_*_", "multiply_int64", &int, &int, &int);
    binary("_*_", "multiply_uint64", &uint, &uint, &uint);
    binary("_-_", "subtract_double", &double, &double, &double);
    binary("_-_", "subtract_duration_duration", &duration, &duration, &duration);
    binary("_-_", "subtract_int64", &int, &int, &int);
    binary("_-_", "subtract_timestamp_duration", &timestamp, &duration, &timestamp);
    binary("_-_", "subtract_timestamp_timestamp", &timestamp, &timestamp, &duration);
    binary("_-_", "subtract_uint64", &uint, &uint, &uint);
    table.global("-_", "negate_double", [Type::DOUBLE], Type::DOUBLE, None);
    table.global("-_", "negate_int64", [Type::INT], Type::INT, None);
    table.shared("_+_", operators::can_add, operators::add);
    table.shared("_/_", operators::can_divide, operators::divide);
    table.shared("_%_", operators::can_modulo, operators::modulo);
    table.shared("_*_", operators::can_divide, operators::multiply);
    table.shared("_-_", operators::can_subtract, operators::subtract);
    table.shared("-_", operators::can_negate, operators::negate);
}

/// Numbers are comparable across types, everything else only with its own type.
fn declare_comparison(table: &mut FunctionTable, name: &'static str, prefix: &str) {
    for (left, left_name) in COMPARABLE {
        let numeric = matches!(left_name, "int64" | "uint64" | "double");
        let rights: &[(Type, &str)] = match left_name {
            "int64" => &[(Type::INT, "int64"), (Type::DOUBLE, "double"), (Type::UINT, "uint64")],
            "uint64" => &[(Type::UINT, "uint64"), (Type::DOUBLE, "double"), (Type::INT, "int64")],
            "double" => &[(Type::DOUBLE, "double"), (Type::INT, "int64"), (Type::UINT, "uint64")],
            _ => &[],
        };
        if !numeric {
            let id = intern(&format!("{prefix}_{left_name}"));
            table.global(name, id, [left.clone(), left.clone()], Type::BOOL, None);
        }
        for (right, right_name) in rights {
            let id = if *right_name == left_name {
                format!("{prefix}_{left_name}")
            } else {
                format!("{prefix}_{left_name}_{right_name}")
            };
            table.global(name, intern(&id), [left.clone(), right.clone()], Type::BOOL, None);
        }
    }
}

/// Overload names are compared by value and live as long as the table, which is built once.
pub(super) fn intern(id: &str) -> &'static str {
    Box::leak(id.to_owned().into_boxed_str())
}

fn declare_access(table: &mut FunctionTable) {
    let (a, b) = (|| param("A"), || param("B"));
    let list = || Type::list(a());
    let map = || Type::map(a(), b());
    table.global("_[_]", "index_list", [list(), Type::INT], a(), None);
    table.global("_[_]", "index_map", [map(), a()], b(), None);
    table.global("@in", "in_list", [a(), list()], Type::BOOL, None);
    table.global("@in", "in_map", [a(), map()], Type::BOOL, None);
    table.shared("@in", |_| true, operators::contained);
    let sized = [(Type::BYTES, "bytes"), (list(), "list"), (map(), "map"), (Type::STRING, "string")];
    for (t, name) in sized {
        table.global("size", intern(&format!("size_{name}")), [t.clone()], Type::INT, None);
        table.member("size", intern(&format!("{name}_size")), [t], Type::INT, None);
    }
    table.shared("size", standard::has_size, standard::size);
}

/// A conversion's name, result, sources by overload, and implementation.
type Conversion = (&'static str, Type, &'static [(&'static str, Type)], super::Implementation);

fn declare_conversions(table: &mut FunctionTable) {
    table.global("type", "type", [param("A")], Type::type_of(param("A")), None);
    table.shared("type", |_| true, convert::to_type);
    table.global("dyn", "to_dyn", [param("A")], Type::DYN, None);
    table.shared("dyn", |_| true, convert::identity);
    let all: [Conversion; 8] = [
        (
            "bool",
            Type::BOOL,
            &[("bool_to_bool", Type::BOOL), ("string_to_bool", Type::STRING)],
            convert::to_bool,
        ),
        (
            "bytes",
            Type::BYTES,
            &[("bytes_to_bytes", Type::BYTES), ("string_to_bytes", Type::STRING)],
            convert::to_bytes,
        ),
        (
            "double",
            Type::DOUBLE,
            &[
                ("double_to_double", Type::DOUBLE),
                ("int64_to_double", Type::INT),
                ("string_to_double", Type::STRING),
                ("uint64_to_double", Type::UINT),
            ],
            convert::to_double,
        ),
        (
            "duration",
            Type::DURATION,
            &[
                ("duration_to_duration", Type::DURATION),
                ("int64_to_duration", Type::INT),
                ("string_to_duration", Type::STRING),
            ],
            convert::to_duration,
        ),
        (
            "int",
            Type::INT,
            &[
                ("int64_to_int64", Type::INT),
                ("double_to_int64", Type::DOUBLE),
                ("duration_to_int64", Type::DURATION),
                ("string_to_int64", Type::STRING),
                ("timestamp_to_int64", Type::TIMESTAMP),
                ("uint64_to_int64", Type::UINT),
            ],
            convert::to_int,
        ),
        (
            "string",
            Type::STRING,
            &[
                ("string_to_string", Type::STRING),
                ("bool_to_string", Type::BOOL),
                ("bytes_to_string", Type::BYTES),
                ("double_to_string", Type::DOUBLE),
                ("duration_to_string", Type::DURATION),
                ("int64_to_string", Type::INT),
                ("timestamp_to_string", Type::TIMESTAMP),
                ("uint64_to_string", Type::UINT),
            ],
            convert::to_string,
        ),
        (
            "timestamp",
            Type::TIMESTAMP,
            &[
                ("timestamp_to_timestamp", Type::TIMESTAMP),
                ("int64_to_timestamp", Type::INT),
                ("string_to_timestamp", Type::STRING),
            ],
            convert::to_timestamp,
        ),
        (
            "uint",
            Type::UINT,
            &[
                ("uint64_to_uint64", Type::UINT),
                ("double_to_uint64", Type::DOUBLE),
                ("int64_to_uint64", Type::INT),
                ("string_to_uint64", Type::STRING),
            ],
            convert::to_uint,
        ),
    ];
    for (name, result, overloads, run) in all {
        for (id, from) in overloads {
            table.global(name, id, [from.clone()], result.clone(), run);
        }
    }
}

fn declare_text(table: &mut FunctionTable) {
    let two = || [Type::STRING, Type::STRING];
    table.member(
        "contains",
        "contains_string",
        two(),
        Type::BOOL,
        standard::contains as super::Implementation,
    );
    table.member(
        "endsWith",
        "ends_with_string",
        two(),
        Type::BOOL,
        standard::ends_with as super::Implementation,
    );
    table.member(
        "startsWith",
        "starts_with_string",
        two(),
        Type::BOOL,
        standard::starts_with as super::Implementation,
    );
    for name in ["contains", "endsWith", "startsWith"] {
        table.unguarded(name);
    }
    table.global("matches", "matches", two(), Type::BOOL, None);
    table.member("matches", "matches_string", two(), Type::BOOL, None);
    table.shared("matches", standard::is_string, standard::matches);
}

fn declare_time(table: &mut FunctionTable) {
    let fields: [(&'static str, &str, &str, super::Implementation); 10] = [
        ("getFullYear", "timestamp_to_year", "_with_tz", temporal::full_year),
        ("getMonth", "timestamp_to_month", "_with_tz", temporal::month),
        ("getDayOfYear", "timestamp_to_day_of_year", "_with_tz", temporal::day_of_year),
        ("getDayOfMonth", "timestamp_to_day_of_month", "_with_tz", temporal::day_of_month),
        ("getDate", "timestamp_to_day_of_month_1_based", "_with_tz", temporal::date),
        ("getDayOfWeek", "timestamp_to_day_of_week", "_with_tz", temporal::day_of_week),
        ("getHours", "timestamp_to_hours", "_with_tz", temporal::hours),
        ("getMinutes", "timestamp_to_minutes", "_with_tz", temporal::minutes),
        ("getSeconds", "timestamp_to_seconds", "_tz", temporal::seconds),
        ("getMilliseconds", "timestamp_to_milliseconds", "_with_tz", temporal::milliseconds),
    ];
    for (name, id, with_zone, run) in fields {
        table.member(name, intern(id), [Type::TIMESTAMP], Type::INT, run);
        let zoned = intern(&format!("{id}{with_zone}"));
        table.member(name, zoned, [Type::TIMESTAMP, Type::STRING], Type::INT, run);
        if let "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" = name {
            let id = intern(&id.replacen("timestamp", "duration", 1));
            table.member(name, id, [Type::DURATION], Type::INT, run);
        }
    }
}
