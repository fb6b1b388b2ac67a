//! Functions of `text/template` and of sprig, without those that read a clock, chance or the environment.

mod compare;
mod encode;
mod lists;
mod maps;
mod math;
mod patterns;
mod text;
mod types;
mod version;

use crate::exec::Limits;
use crate::value::Value;

type Outcome = Result<Value, String>;

/// Functions of one subject: `None` if the name is not one of them.
type Family = fn(&str, &[Value], &Limits) -> Option<Outcome>;

const FAMILIES: [Family; 9] = [
    compare::call,
    types::call,
    text::call,
    lists::call,
    maps::call,
    math::call,
    encode::call,
    patterns::call,
    version::call,
];

/// Every name; the parser refuses others, as Go's does.
const NAMES: &[&str] = &[
    "abbrev",
    "add",
    "add1",
    "add1f",
    "addf",
    "adler32sum",
    "all",
    "and",
    "any",
    "append",
    "atoi",
    "b32dec",
    "b32enc",
    "b64dec",
    "b64enc",
    "base",
    "biggest",
    "camelcase",
    "cat",
    "ceil",
    "chunk",
    "clean",
    "coalesce",
    "compact",
    "concat",
    "contains",
    "deepCopy",
    "deepEqual",
    "default",
    "dict",
    "dig",
    "dir",
    "div",
    "divf",
    "empty",
    "eq",
    "ext",
    "fail",
    "first",
    "float64",
    "floor",
    "fromJson",
    "ge",
    "get",
    "gt",
    "has",
    "hasKey",
    "hasPrefix",
    "hasSuffix",
    "html",
    "indent",
    "index",
    "initial",
    "initials",
    "int",
    "int64",
    "isAbs",
    "join",
    "js",
    "kebabcase",
    "keys",
    "kindIs",
    "kindOf",
    "last",
    "le",
    "len",
    "list",
    "lower",
    "lt",
    "max",
    "maxf",
    "merge",
    "mergeOverwrite",
    "min",
    "minf",
    "mod",
    "mul",
    "mulf",
    "mustAppend",
    "mustChunk",
    "mustCompact",
    "mustDeepCopy",
    "mustFirst",
    "mustFromJson",
    "mustHas",
    "mustInitial",
    "mustLast",
    "mustMerge",
    "mustMergeOverwrite",
    "mustPrepend",
    "mustRegexFind",
    "mustRegexFindAll",
    "mustRegexMatch",
    "mustRegexReplaceAll",
    "mustRegexReplaceAllLiteral",
    "mustRegexSplit",
    "mustRest",
    "mustReverse",
    "mustSlice",
    "mustToJson",
    "mustToPrettyJson",
    "mustToRawJson",
    "mustUniq",
    "mustWithout",
    "ne",
    "nindent",
    "nospace",
    "not",
    "omit",
    "or",
    "osBase",
    "osClean",
    "osDir",
    "osExt",
    "osIsAbs",
    "pick",
    "pluck",
    "plural",
    "prepend",
    "print",
    "printf",
    "println",
    "quote",
    "regexFind",
    "regexFindAll",
    "regexMatch",
    "regexQuoteMeta",
    "regexReplaceAll",
    "regexReplaceAllLiteral",
    "regexSplit",
    "repeat",
    "replace",
    "rest",
    "reverse",
    "round",
    "semver",
    "semverCompare",
    "seq",
    "set",
    "sha256sum",
    "sha512sum",
    "slice",
    "snakecase",
    "sortAlpha",
    "split",
    "splitList",
    "splitn",
    "squote",
    "sub",
    "subf",
    "substr",
    "swapcase",
    "ternary",
    "title",
    "toDecimal",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "toString",
    "toStrings",
    "trim",
    "trimAll",
    "trimPrefix",
    "trimSuffix",
    "trimall",
    "trunc",
    "tuple",
    "typeIs",
    "typeIsLike",
    "typeOf",
    "uniq",
    "unset",
    "until",
    "untilStep",
    "untitle",
    "upper",
    "urlquery",
    "values",
    "without",
    "wrap",
    "wrapWith",
];

pub fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

pub fn call(name: &str, values: &[Value], limits: &Limits) -> Outcome {
    // The two differ in how they fail, and every failure is an error here.
    let plain = match name.strip_prefix("must").filter(|rest| rest.starts_with(char::is_uppercase)) {
        Some(rest) => format!("{}{}", rest[..1].to_lowercase(), &rest[1..]),
        None => name.to_owned(),
    };
    let found = FAMILIES.iter().find_map(|family| family(&plain, values, limits));
    found.unwrap_or_else(|| Err(format!("wrong number or types of arguments: {} given", values.len())))
}

fn text_of(value: &Value) -> Result<std::rc::Rc<str>, String> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => Err(format!("wrong type for value; expected string; got {}", crate::print::go_type(other))),
    }
}

fn texts(values: &[Value]) -> Result<Vec<std::rc::Rc<str>>, String> {
    values.iter().map(text_of).collect()
}

/// A number of an argument that Go declares as int.
fn whole(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(format!("wrong type for value; expected int; got {}", crate::print::go_type(other))),
    }
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn int(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_in_order() {
        assert!(super::NAMES.is_sorted());
    }
}
