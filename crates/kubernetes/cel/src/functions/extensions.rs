//! cel-go's extensions that Kubernetes enables: optional values, strings, sets, lists, two-variable
//! comprehensions.

use super::standard::intern;
use super::{FunctionTable, Implementation, param};
use crate::library::{lists, optional, sets, strings};
use crate::types::Type;

/// The element types of the list functions that compare elements, by their run-time names.
const COMPARABLE: [Type; 8] = [
    Type::INT,
    Type::UINT,
    Type::DOUBLE,
    Type::BOOL,
    Type::DURATION,
    Type::TIMESTAMP,
    Type::STRING,
    Type::BYTES,
];

pub(super) fn declare_optional(table: &mut FunctionTable) {
    let v = || param("V");
    let opt = || Type::optional(v());
    let list = || Type::list(v());
    let map = || Type::map(param("K"), v());
    table.global("optional.of", "optional_of", [v()], opt(), optional::of as Implementation);
    table.global(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        [v()],
        opt(),
        optional::of_non_zero_value as Implementation,
    );
    table.global("optional.none", "optional_none", [], opt(), optional::none as Implementation);
    table.member("value", "optional_value", [opt()], v(), optional::value as Implementation);
    table.member("hasValue", "optional_hasValue", [opt()], Type::BOOL, optional::has_value as Implementation);
    table.member("or", "optional_or_optional", [opt(), opt()], opt(), None);
    table.member("orValue", "optional_orValue_value", [opt(), v()], v(), None);
    table.global("_?._", "select_optional_field", [Type::DYN, Type::STRING], opt(), None);
    table.global("_[?_]", "list_optindex_optional_int", [list(), Type::INT], opt(), None);
    table.global(
        "_[?_]",
        "optional_list_optindex_optional_int",
        [Type::optional(list()), Type::INT],
        opt(),
        None,
    );
    table.global("_[?_]", "map_optindex_optional_value", [map(), param("K")], opt(), None);
    table.global(
        "_[?_]",
        "optional_map_optindex_optional_value",
        [Type::optional(map()), param("K")],
        opt(),
        None,
    );
    table.global("_[_]", "optional_list_index_int", [Type::optional(list()), Type::INT], opt(), None);
    table.global("_[_]", "optional_map_index_value", [Type::optional(map()), param("K")], opt(), None);
    table.member("last", "list_last", [list()], opt(), optional::last as Implementation);
    table.member("first", "list_first", [list()], opt(), optional::first as Implementation);
    let unwrap = optional::unwrap as Implementation;
    table.global("optional.unwrap", "optional_unwrap", [Type::list(opt())], list(), unwrap);
    table.member("unwrapOpt", "optional_unwrapOpt", [Type::list(opt())], list(), unwrap);
}

pub(super) fn declare_strings(table: &mut FunctionTable) {
    let (s, i) = (|| Type::STRING, || Type::INT);
    let strings_list = || Type::list(Type::STRING);
    let mut member = |name, id, args: &[Type], result: Type, run: Implementation| {
        table.member(name, id, args.to_vec(), result, run);
    };
    member("charAt", "string_char_at_int", &[s(), i()], s(), strings::char_at);
    member("indexOf", "string_index_of_string", &[s(), s()], i(), strings::index_of);
    member("indexOf", "string_index_of_string_int", &[s(), s(), i()], i(), strings::index_of);
    member("lastIndexOf", "string_last_index_of_string", &[s(), s()], i(), strings::last_index_of);
    member("lastIndexOf", "string_last_index_of_string_int", &[s(), s(), i()], i(), strings::last_index_of);
    member("lowerAscii", "string_lower_ascii", &[s()], s(), strings::lower_ascii);
    member("replace", "string_replace_string_string", &[s(), s(), s()], s(), strings::replace);
    member("replace", "string_replace_string_string_int", &[s(), s(), s(), i()], s(), strings::replace);
    member("split", "string_split_string", &[s(), s()], strings_list(), strings::split);
    member("split", "string_split_string_int", &[s(), s(), i()], strings_list(), strings::split);
    member("substring", "string_substring_int", &[s(), i()], s(), strings::substring);
    member("substring", "string_substring_int_int", &[s(), i(), i()], s(), strings::substring);
    member("trim", "string_trim", &[s()], s(), strings::trim);
    member("upperAscii", "string_upper_ascii", &[s()], s(), strings::upper_ascii);
    member("format", "string_format", &[s(), Type::list(Type::DYN)], s(), strings::format);
    member("join", "list_join", &[strings_list()], s(), strings::join);
    member("join", "list_join_string", &[strings_list(), s()], s(), strings::join);
    table.global("strings.quote", "strings_quote", [s()], s(), strings::quote as Implementation);
}

pub(super) fn declare_sets(table: &mut FunctionTable) {
    let lists = || [Type::list(param("T")), Type::list(param("T"))];
    let all: [(&'static str, &'static str, Implementation); 3] = [
        ("sets.contains", "list_sets_contains_list", sets::contains),
        ("sets.equivalent", "list_sets_equivalent_list", sets::equivalent),
        ("sets.intersects", "list_sets_intersects_list", sets::intersects),
    ];
    for (name, id, run) in all {
        table.global(name, id, lists(), Type::BOOL, run);
    }
}

pub(super) fn declare_two_variable(table: &mut FunctionTable) {
    let map = || Type::map(param("K"), param("V"));
    let insert = optional::map_insert as Implementation;
    table.global(
        "cel.@mapInsert",
        "@mapInsert_map_key_value",
        [map(), param("K"), param("V")],
        map(),
        insert,
    );
    table.global("cel.@mapInsert", "@mapInsert_map_map", [map(), map()], map(), insert);
}

pub(super) fn declare_lists(table: &mut FunctionTable) {
    let list = || Type::list(param("T"));
    let dyn_list = || Type::list(Type::DYN);
    table.member(
        "slice",
        "list_slice",
        [list(), Type::INT, Type::INT],
        list(),
        lists::slice as Implementation,
    );
    let flatten = lists::flatten as Implementation;
    table.member("flatten", "list_flatten", [Type::list(list())], list(), flatten);
    table.member("flatten", "list_flatten_int", [dyn_list(), Type::INT], dyn_list(), flatten);
    table.unguarded("flatten");
    for t in COMPARABLE {
        let id = intern(&format!("list_{}_sort", t.name()));
        table.member("sort", id, [Type::list(t.clone())], Type::list(t), None);
    }
    table.shared("sort", lists::is_list, lists::sort);
    for t in COMPARABLE {
        let id = intern(&format!("list_{}_sortByAssociatedKeys", t.name()));
        table.member("@sortByAssociatedKeys", id, [list(), Type::list(t)], list(), None);
    }
    table.shared("@sortByAssociatedKeys", lists::is_list, lists::sort_by_keys);
    table.global(
        "lists.range",
        "lists_range",
        [Type::INT],
        Type::list(Type::INT),
        lists::range as Implementation,
    );
    table.member("reverse", "list_reverse", [list()], list(), lists::reverse as Implementation);
    table.member("distinct", "list_distinct", [list()], list(), lists::distinct as Implementation);
}
