//! Validates versions: subresources, printer columns, selectable fields, deprecation, stored versions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::props::Props;
use super::view::Spec;
use super::{MAX_SELECTABLE_FIELDS, Options};
use crate::Schema;
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use crate::fieldpath;
use crate::golang;
use crate::path::Path;
use crate::schema::TypeName;

const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";

/// Validates the deprecation warning of a version.
pub fn deprecation(version: Props<'_>, path: &Path<'_>) -> FieldErrors {
    let path = path.field("deprecationWarning");
    let Some(warning) = version.optional_text("deprecationWarning") else { return FieldErrors::new() };
    let mut wrong: Vec<String> = Vec::new();
    if !version.flag("deprecated") {
        wrong.push("can only be set for deprecated versions".into());
    } else {
        if warning.len() > 256 {
            wrong.push("must be <= 256 characters long".into());
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".into());
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, c)| !golang::is_print(*c)) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    }
    // The field is a pointer, so upstream shows its text as JSON.
    let shown = BadValue::Text(golang::json(&warning.into()));
    wrong.into_iter().map(|detail| FieldError::new(ErrorKind::Invalid, path, shown.clone(), detail)).collect()
}

/// Validates `subresources`.
pub fn subresources(subresources: Option<Props<'_>>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    let Some(scale) = subresources.and_then(|s| s.schema("scale")) else { return out };
    for (key, below, detail) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ] {
        let (text, field) = (scale.text(key), format!("scale.{key}"));
        let path = path.field(&field);
        if text.is_empty() {
            if key != "labelSelectorPath" {
                out.push(FieldError::required(path, ""));
            }
            continue;
        }
        let wrong = simple_json_path(text, &path);
        if wrong.is_empty() && !below.iter().any(|prefix| text.starts_with(prefix)) {
            out.push(FieldError::invalid(path, text, detail));
        }
        out.extend(wrong);
    }
    out
}

fn simple_json_path(text: &str, path: &Path<'_>) -> FieldErrors {
    if text.starts_with('.') {
        return FieldErrors::new();
    }
    [FieldError::invalid(path, text, "must be a simple json path starting with .")].into()
}

/// Validates `additionalPrinterColumns`.
pub fn columns(columns: &[Value], path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    let list = path.field("additionalPrinterColumns");
    for (index, column) in columns.iter().filter_map(Props::of).enumerate() {
        let path = list.index(index);
        if column.text("name").is_empty() {
            out.push(FieldError::required(path.field("name"), ""));
        }
        let one_of = format!("must be one of {COLUMN_TYPES}");
        match column.text("type") {
            "" => out.push(FieldError::required(path.field("type"), one_of)),
            kind if COLUMN_TYPES.split(',').any(|known| known == kind) => {}
            kind => out.push(FieldError::invalid(path.field("type"), kind, one_of)),
        }
        let format = column.text("format");
        if !format.is_empty() && !COLUMN_FORMATS.split(',').any(|known| known == format) {
            out.push(FieldError::invalid(
                path.field("format"),
                format,
                format!("must be one of {COLUMN_FORMATS}"),
            ));
        }
        match column.text("jsonPath") {
            "" => out.push(FieldError::required(path.field("JSONPath"), "")),
            text => out.extend(simple_json_path(text, &path.field("JSONPath"))),
        }
    }
    out
}

/// Validates `selectableFields` of one version, or of all (the empty name).
pub fn selectable_fields(
    fields: &[Value],
    schema: Option<&Schema>,
    version: &str,
    options: &Options<'_>,
    path: &Path<'_>,
) -> FieldErrors {
    let mut out = FieldErrors::new();
    let mut unique = BTreeSet::new();
    let empty = Schema::default();
    for (index, field) in fields.iter().filter_map(Props::of).enumerate() {
        let path = path.index(index);
        let path = path.field("jsonPath");
        let text = field.text("jsonPath");
        if text.is_empty() {
            out.push(FieldError::required(path, ""));
            continue;
        }
        let found = match fieldpath::resolve(text, schema.unwrap_or(&empty), false) {
            Ok(found) => found,
            Err(error) => {
                out.push(FieldError::invalid(path, text, format!("is an invalid path: {error}")));
                continue;
            }
        };
        if found.root == "metadata" {
            out.push(FieldError::invalid(path, text, "must not point to fields in metadata"));
        }
        if !matches!(found.schema.kind, Some(TypeName::String | TypeName::Boolean | TypeName::Integer)) {
            out.push(FieldError::invalid(
                path,
                text,
                "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                 formats are allowed.",
            ));
        }
        if !unique.insert(found.text) {
            out.push(FieldError::duplicate(path, text));
        }
    }
    if unique.len() > MAX_SELECTABLE_FIELDS && !options.allow_many_selectable.contains(version) {
        out.push(FieldError::too_many(path, unique.len() as i64, MAX_SELECTABLE_FIELDS as i64));
    }
    out
}

/// Versions that already have too many selectable fields and do not change them.
pub fn many_selectable<'a>(new: &Spec<'a>, old: &Spec<'_>) -> BTreeSet<&'a str> {
    let too_many = |fields: Option<&[Value]>| fields.is_some_and(|f| f.len() > MAX_SELECTABLE_FIELDS);
    let mut out = BTreeSet::new();
    if too_many(old.selectable_fields) && new.selectable_fields == old.selectable_fields {
        out.insert("");
    }
    for version in &new.versions {
        let before = old.versions.iter().find(|v| v.name == version.name);
        if let Some(before) = before
            && too_many(before.selectable_fields)
            && before.selectable_fields == version.selectable_fields
        {
            out.insert(version.name);
        }
    }
    out
}

/// Validates that every stored version still exists.
pub fn stored(crd: &Value, spec: &Spec<'_>) -> FieldErrors {
    let path = Path::at("status.storedVersions");
    let status = crd.get("status").and_then(Props::of);
    let stored = status.map(|status| status.texts("storedVersions")).unwrap_or_default();
    if stored.is_empty() {
        // Go formats a nil list as null.
        return [FieldError::invalid(path, Value::Null, "must have at least one stored version")].into();
    }
    let mut out = FieldErrors::new();
    for (index, version) in spec.versions.iter().enumerate() {
        // Only the first version of a name counts.
        let repeated = spec.versions[..index].iter().any(|v| v.name == version.name);
        if version.props.flag("storage") && (repeated || !stored.contains(&version.name)) {
            out.push(FieldError::invalid(
                path,
                stored.clone(),
                format!("must have the storage version {}", version.name),
            ));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let last = !stored[index + 1..].contains(name);
        if last && !spec.versions.iter().any(|v| v.name == *name) {
            out.push(FieldError::invalid(
                path.index(index),
                *name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and must remain in \
                     spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                     {name} from status.storedVersions"
                ),
            ));
        }
    }
    out
}
