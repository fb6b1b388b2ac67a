//! Validation of names, label keys and label values with apimachinery's messages. Hand-written matchers, because
//! these run for every key of every object.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
     or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character";
const DNS1035_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
     start with an alphabetic character, and end with an alphanumeric character";
const LABEL_KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
     and end with an alphanumeric character";
const LABEL_VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Validates a name of a kind. `true` means that it is a `generateName` prefix.
pub type NameCheck = fn(&str, bool) -> Vec<String>;

/// The message `must be no more than … characters`, for names.
pub fn too_many_characters(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// `… (e.g. 'a', or 'b', regex used for validation is '…')`
pub fn regex_message(message: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{regex}')");
    }
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn is_lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn matches_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            is_lower_alnum(first)
                && is_lower_alnum(last)
                && bytes.iter().all(|&b| is_lower_alnum(b) || b == b'-')
        }
        _ => false,
    }
}

fn matches_subdomain(value: &str) -> bool {
    value.split('.').all(matches_label)
}

fn matches_label_key(value: &str) -> bool {
    let bytes = value.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        }
        _ => false,
    }
}

/// Why a string is not a DNS-1123 label; empty if it is.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 63 {
        out.push(too_many_characters(63));
    }
    if !matches_label(value) {
        out.push(if matches_subdomain(value) {
            "must not contain dots".into()
        } else {
            regex_message(LABEL_MESSAGE, LABEL, &["my-name", "123-abc"])
        });
    }
    out
}

/// Why a string is not a DNS-1123 subdomain; empty if it is.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    subdomain(value, too_many_characters)
}

fn subdomain(value: &str, too_long: fn(usize) -> String) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 253 {
        out.push(too_long(253));
    }
    if !matches_subdomain(value) {
        out.push(regex_message(SUBDOMAIN_MESSAGE, SUBDOMAIN, &["example.com"]));
    }
    out
}

/// Why a string is not a DNS-1035 label; empty if it is.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 63 {
        out.push(too_many_characters(63));
    }
    let starts_with_letter = value.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !(starts_with_letter && matches_label(value)) {
        out.push(regex_message(DNS1035_MESSAGE, DNS1035_LABEL, &["my-name", "abc-123"]));
    }
    out
}

/// Why a string is not a label key (`[prefix/]name`); empty if it is.
pub fn qualified_name(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    let key_message = || regex_message(LABEL_KEY_MESSAGE, LABEL_KEY, &["MyName", "my.name", "123-abc"]);
    let mut parts = value.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".into());
            } else {
                let wrong = subdomain(prefix, too_many_bytes);
                out.extend(wrong.iter().map(|message| format!("prefix part {message}")));
            }
            name
        }
        _ => {
            out.push(format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                key_message()
            ));
            return out;
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        out.push(format!("name part {}", too_many_bytes(63)));
    }
    if !matches_label_key(name) {
        out.push(format!("name part {}", key_message()));
    }
    out
}

/// Why a string is not a label value; empty if it is.
pub fn label_value(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 63 {
        out.push(too_many_bytes(63));
    }
    if !(value.is_empty() || matches_label_key(value)) {
        out.push(regex_message(LABEL_VALUE_MESSAGE, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    out
}

/// Why a string is not a segment of a URL path; empty if it is.
pub fn path_segment(value: &str, prefix: bool) -> Vec<String> {
    if !prefix && (value == "." || value == "..") {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| value.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// Why a string is not a key of a ConfigMap or Secret; empty if it is.
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 253 {
        out.push(too_many_characters(253));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if value.is_empty() || !value.bytes().all(allowed) {
        out.push(regex_message(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match value {
        "." => out.push("must not be '.'".into()),
        ".." => out.push("must not be '..'".into()),
        _ if value.starts_with("..") => out.push("must not start with '..'".into()),
        _ => {}
    }
    out
}

/// [`NameCheck`] of most kinds.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain(&masked(name, prefix))
}

/// [`NameCheck`] of namespaces and kinds whose names become host names.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    dns1123_label(&masked(name, prefix))
}

/// [`NameCheck`] of services.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    dns1035_label(&masked(name, prefix))
}

/// A prefix may end with a dash because a suffix follows. Upstream replaces the last two characters, so it checks a
/// string that is one shorter.
fn masked(name: &str, prefix: bool) -> std::borrow::Cow<'_, str> {
    match name.get(..name.len().saturating_sub(2)) {
        Some(start) if prefix && name.len() > 1 && name.ends_with('-') => format!("{start}a").into(),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains_say_what_is_wrong() {
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
             must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
             validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        assert!(dns1123_label("a-1").is_empty());
        assert_eq!(dns1123_label("A"), [label]);
        assert_eq!(dns1123_label(""), [label]);
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert!(dns1123_subdomain("a.b-c.0").is_empty());
        for wrong in ["", "a..b", ".a", "a.", "-a", "a_b"] {
            assert_eq!(dns1123_subdomain(wrong).len(), 1, "{wrong:?}");
        }
        assert!(!dns1035_label("1a").is_empty());
        assert!(dns1035_label("a1").is_empty());
    }

    #[test]
    fn label_keys_and_values_say_what_is_wrong() {
        assert!(qualified_name("example.com/My_Name.x").is_empty());
        assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
        assert_eq!(
            qualified_name("x/"),
            [
                "name part must be non-empty",
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                 an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                 validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ]
        );
        assert_eq!(qualified_name("a/b/c").len(), 1);
        assert!(label_value("").is_empty());
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(label_value("-").len(), 1);
    }

    #[test]
    fn prefixes_may_end_with_a_dash() {
        assert!(name_is_dns_subdomain("web-", true).is_empty());
        assert!(!name_is_dns_subdomain("web-", false).is_empty());
        assert!(!name_is_dns_subdomain("-", true).is_empty());
        assert!(name_is_dns_label("é-", true).len() == 1);
    }

    #[test]
    fn path_segments_and_keys() {
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert_eq!(path_segment("a/b%", true), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(config_map_key("..a"), ["must not start with '..'"]);
        assert!(config_map_key("a.b_c-1").is_empty());
    }
}
