//! `kubernetes.NamedFormat`: Kubernetes' name and value formats with their messages.

use std::sync::LazyLock;

use ::regex::Regex;

use super::{Opaque, Outcome, no_such_overload, url};
use crate::eval::Meter;
use crate::functions::Implementation;
use crate::value::{Value, time};

#[derive(Debug)]
pub struct NamedFormat {
    pub(crate) name: &'static str,
    /// Its name in `format.named`.
    key: &'static str,
    /// The size of its pattern, for the cost model.
    pub(crate) max_regex_size: u64,
    check: fn(&str) -> Vec<String>,
}

macro_rules! formats {
    ($($function:ident $key:literal $path:literal $name:literal $size:literal $check:expr;)*) => {
        static FORMATS: &[NamedFormat] = &[
            $(NamedFormat { name: $name, key: $key, max_regex_size: $size, check: $check },)*
        ];

        $(fn $function<'a>(_: &mut Meter, _: &[Value<'a>]) -> Outcome<'a> {
            find($key).map_or_else(no_such_overload, |format| Ok(Value::Opaque(Opaque::Format(format))))
        })*

        /// The functions that return a format, by name.
        pub(crate) fn constants() -> Vec<(&'static str, Implementation)> {
            vec![$(($path, $function as Implementation),)*]
        }
    };
}

formats! {
    dns1123_label "dns1123Label" "format.dns1123Label" "DNS1123Label" 30 dns1123_label_errors;
    dns1123_subdomain "dns1123Subdomain" "format.dns1123Subdomain" "DNS1123Subdomain" 60 |s| subdomain_errors(s, "characters");
    dns1035_label "dns1035Label" "format.dns1035Label" "DNS1035Label" 30 dns1035_label_errors;
    qualified_name "qualifiedName" "format.qualifiedName" "QualifiedName" 60 qualified_name_errors;
    dns1123_label_prefix "dns1123LabelPrefix" "format.dns1123LabelPrefix" "DNS1123LabelPrefix" 30 |s| dns1123_label_errors(&mask_trailing_dash(s));
    dns1123_subdomain_prefix "dns1123SubdomainPrefix" "format.dns1123SubdomainPrefix" "DNS1123SubdomainPrefix" 60 |s| subdomain_errors(&mask_trailing_dash(s), "characters");
    dns1035_label_prefix "dns1035LabelPrefix" "format.dns1035LabelPrefix" "DNS1035LabelPrefix" 30 |s| dns1035_label_errors(&mask_trailing_dash(s));
    label_value "labelValue" "format.labelValue" "LabelValue" 40 label_value_errors;
    uri "uri" "format.uri" "URI" 1103 |s| url::request_uri_error(s).into_iter().collect();
    uuid "uuid" "format.uuid" "uuid" 70 |s| unless(is_uuid(s), "does not match the UUID format");
    byte "byte" "format.byte" "byte" 84 |s| unless(is_base64(s), "invalid base64");
    date "date" "format.date" "date" 71 |s| unless(time::parse_date(s).is_ok(), "invalid date");
    datetime "datetime" "format.datetime" "datetime" 71 |s| unless(is_date_time(s), "invalid datetime");
}

fn find(key: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.key == key)
}

fn unless(fits: bool, message: &str) -> Vec<String> {
    if fits { Vec::new() } else { vec![message.to_owned()] }
}

fn anchored(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}

fn is_match(regex: &LazyLock<Option<Regex>>, s: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(s))
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const UUID: &str = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}";

static LABEL_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| anchored(LABEL));
static SUBDOMAIN_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| anchored(SUBDOMAIN));
static LABEL_1035_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| anchored(LABEL_1035));
static KEY_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| anchored(KEY));
static KEY_VALUE_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| anchored(KEY_VALUE));
static UUID_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| anchored(UUID));
static TIME_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| anchored("([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"));

fn regex_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn too_long(s: &str, max: usize, unit: &str) -> Option<String> {
    (s.len() > max).then(|| format!("must be no more than {max} {unit}"))
}

fn mask_trailing_dash(s: &str) -> String {
    // Upstream also drops the character before the dash.
    match s.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let end = rest.char_indices().next_back().map_or(0, |(at, _)| at);
            format!("{}a", &rest[..end])
        }
        _ => s.to_owned(),
    }
}

fn dns1123_label_errors(s: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(s, 63, "characters").into_iter().collect();
    if !is_match(&LABEL_REGEX, s) {
        errors.push(if is_match(&SUBDOMAIN_REGEX, s) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

fn subdomain_errors(s: &str, unit: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(s, 253, unit).into_iter().collect();
    if !is_match(&SUBDOMAIN_REGEX, s) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    errors
}

fn dns1035_label_errors(s: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(s, 63, "characters").into_iter().collect();
    if !is_match(&LABEL_1035_REGEX, s) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    errors
}

fn qualified_name_errors(s: &str) -> Vec<String> {
    let key_error = || {
        regex_error(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            KEY,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let mut errors = Vec::new();
    let parts: Vec<&str> = s.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let failed = subdomain_errors(prefix, "bytes");
                errors.extend(failed.into_iter().map(|error| format!("prefix part {error}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                key_error()
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if let Some(error) = too_long(name, 63, "bytes") {
        errors.push(format!("name part {error}"));
    }
    if !is_match(&KEY_REGEX, name) {
        errors.push(format!("name part {}", key_error()));
    }
    errors
}

fn label_value_errors(s: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(s, 63, "bytes").into_iter().collect();
    if !is_match(&KEY_VALUE_REGEX, s) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            KEY_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

fn is_uuid(s: &str) -> bool {
    is_match(&UUID_REGEX, s)
}

/// Padded standard base64 without line breaks. Matches a pattern, does not decode.
fn is_base64(s: &str) -> bool {
    let body = s.trim_end_matches('=');
    let padding = s.len() - body.len();
    !s.is_empty()
        && s.len().is_multiple_of(4)
        && padding <= 2
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

fn is_date_time(s: &str) -> bool {
    let lower = s.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(clock)) = (parts.next(), parts.next()) else { return false };
    if s.len() < 4 || time::parse_date(date).is_err() {
        return false;
    }
    let Some(captures) = TIME_REGEX.as_ref().and_then(|regex| regex.captures(clock)) else { return false };
    &captures[1] <= "23" && &captures[2] <= "59" && &captures[3] <= "59"
}

pub(crate) fn named<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::String(name) = &args[0] else { return no_such_overload() };
    Ok(match find(name) {
        Some(format) => Value::some(Value::Opaque(Opaque::Format(format))),
        None => Value::Optional(None),
    })
}

pub(crate) fn validate<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Opaque(Opaque::Format(format)), Value::String(s)] = args else { return no_such_overload() };
    let errors = (format.check)(s);
    if errors.is_empty() {
        return Ok(Value::Optional(None));
    }
    meter.allocate(errors.iter().map(String::len).sum())?;
    Ok(Value::some(Value::strings(errors)))
}
