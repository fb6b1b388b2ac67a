//! Names of the CRD and its kind, and protected community groups.

use serde_json::Value;

use super::props::Props;
use super::view::Spec;
use crate::field::{FieldError, FieldErrors};
use crate::format::Format;
use crate::golang::quote;
use crate::meta;
use crate::path::Path;

const APPROVAL: &str = "api-approved.kubernetes.io";

/// The name of a CRD is its plural and group.
pub fn own_name(name: &str, prefix: bool, spec: &Spec<'_>) -> Vec<String> {
    let mut out = meta::name_is_dns_subdomain(name, prefix);
    if name != format!("{}.{}", spec.names.text("plural"), spec.props.text("group")) {
        out.push(r#"must be spec.names.plural+"."+spec.group"#.into());
    }
    out
}

/// Validates the names that are set. Required names are checked elsewhere.
pub fn validate(names: Props<'_>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    for key in ["plural", "singular"] {
        let name = names.text(key);
        let wrong = meta::dns1035_label(name);
        if !name.is_empty() && !wrong.is_empty() {
            out.push(FieldError::invalid(path.field(key), name, wrong.join(",")));
        }
    }
    for key in ["kind", "listKind"] {
        let name = names.text(key);
        let wrong = meta::dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            out.push(FieldError::invalid(path.field(key), name, detail));
        }
    }
    let labels = |out: &mut FieldErrors, key: &str| {
        let list = path.field(key);
        for (index, name) in names.texts(key).into_iter().enumerate() {
            let wrong = meta::dns1035_label(name);
            if !wrong.is_empty() {
                out.push(FieldError::invalid(list.index(index), name, wrong.join(",")));
            }
        }
    };
    labels(&mut out, "shortNames");
    let kind = names.text("kind");
    if !kind.is_empty() && kind == names.text("listKind") {
        out.push(FieldError::invalid(path.field("listKind"), kind, "kind and listKind may not be the same"));
    }
    labels(&mut out, "categories");
    out
}

/// Validates the names in a status.
pub fn validate_status(crd: &Value) -> FieldErrors {
    match crd.pointer("/status/acceptedNames").and_then(Props::of) {
        Some(names) => validate(names, &Path::at("status.acceptedNames")),
        None => FieldErrors::new(),
    }
}

#[derive(PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn approval_state(crd: &Value) -> (Approval, &str) {
    let text = crd.pointer("/metadata/annotations").and_then(|a| a.get(APPROVAL)).and_then(Value::as_str);
    let text = text.unwrap_or_default();
    let is_url = || {
        let host = text.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
        host.is_some_and(|host| !host.is_empty()) && Format::find("uri").is_some_and(|uri| uri.accepts(text))
    };
    let state = match text {
        "" => Approval::Missing,
        _ if text.starts_with("unapproved") => Approval::Bypassed,
        _ if is_url() => Approval::Approved,
        _ => Approval::Invalid,
    };
    (state, text)
}

/// Groups under `k8s.io` and `kubernetes.io` need an approval annotation.
pub fn approval(new: &Value, old: Option<&Value>) -> FieldErrors {
    let group = new.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let (state, text) = approval_state(new);
    if !protected || old.is_some_and(|old| approval_state(old).0 == state) {
        return FieldErrors::new();
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let required = format!("protected groups must have approval annotation {}", quote(APPROVAL));
    match state {
        Approval::Missing => [FieldError::required(field, format!("{required}, {see}"))].into(),
        Approval::Invalid => [FieldError::invalid(
            field,
            text,
            format!("{required} with either a URL or a reason starting with \"unapproved\", {see}"),
        )]
        .into(),
        Approval::Bypassed | Approval::Approved => FieldErrors::new(),
    }
}
