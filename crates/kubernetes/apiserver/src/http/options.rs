//! Query parameters of resource requests, validated with upstream's texts.

use std::num::IntErrorKind;
use std::time::Duration;

use capstan_schema::field::{BadValue, ErrorKind, FieldError};
use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::labels::Requirement;
use capstan_schema::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

use crate::call::{go_type, not_registered, type_of};
use crate::status::{Result, Status};

/// Most objects of a page, whatever the request.
pub const MAX_PAGE: usize = 10_000;

/// Most requirements of a selector, and most values of a label selector: far more than clients use.
const MAX_REQUIREMENTS: usize = 1_000;
const MAX_VALUES: usize = 10_000;

/// `fieldValidation`: how unknown and duplicate fields are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped with a warning header.
    #[default]
    Warn,
    /// Rejected.
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// Field manager; empty: derived from the user agent.
    pub field_manager: String,
    pub field_validation: FieldValidation,
    /// Apply only: take ownership of conflicting fields.
    pub force: Option<bool>,
}

/// The kind of write, for validation of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH with a JSON, merge or strategic patch.
    Patch,
    /// PATCH with an apply configuration.
    Apply,
}

/// Options of list and watch.
#[derive(Debug, Clone)]
pub struct ListOptions {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    /// Page size; 0 means everything (up to [`MAX_PAGE`] where a client pages).
    pub limit: usize,
    pub continue_token: String,
    /// As given.
    pub resource_version: String,
    /// As given.
    pub resource_version_match: String,
    /// Watch: send the current state first.
    pub send_initial_events: Option<bool>,
    /// Watch: send bookmarks.
    pub bookmarks: bool,
    /// Timeout of a watch.
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// Whether nothing is stored.
    pub dry_run: bool,
    pub grace_period_seconds: Option<i64>,
    /// Orphan, Background or Foreground.
    pub propagation: Option<String>,
    /// The deprecated form of orphaning.
    pub orphan_dependents: Option<bool>,
    /// Precondition on the uid.
    pub uid: Option<String>,
    /// Precondition on the resource version.
    pub resource_version: Option<String>,
}

/// Decoded query parameters.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(query: Option<&str>) -> Self {
        Self(url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// First value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All values of `key`.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Memory of the parameters in bytes, estimated.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(key, value)| size_of::<(String, String)>() + key.len() + value.len()).sum()
    }

    fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    /// As in Go's query decoding, any value except `false` and `0` is true.
    fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).map(|v| !matches!(v.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    fn integer(&self, key: &str) -> Result<Option<i64>> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
                let why = match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
            }),
        }
    }

    fn dry_run(&self, errors: &mut Vec<FieldError>) -> bool {
        let values: Vec<&str> = self.all("dryRun").collect();
        dry_run(&values, errors)
    }

    /// Options of a write of the given kind.
    pub fn write_options(&self, kind: WriteKind) -> Result<WriteOptions> {
        let mut errors = Vec::new();
        let force = self.flag("force");
        let field_manager = self.text("fieldManager");
        match kind {
            WriteKind::Apply if field_manager.is_empty() => {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
            WriteKind::Patch if force.is_some() => {
                errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        errors.extend(meta::validate_field_manager(&field_manager, &Path::at("fieldManager")));
        let dry_run = self.dry_run(&mut errors);
        let field_validation = match self.get("fieldValidation").unwrap_or_default() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, &supported));
                FieldValidation::Warn
            }
        };
        if errors.is_empty() {
            return Ok(WriteOptions { dry_run, field_manager, field_validation, force });
        }
        let kind = match kind {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        };
        Err(Status::invalid("meta.k8s.io", kind, "", &errors))
    }

    pub fn list_options(&self, watch: bool) -> Result<ListOptions> {
        let labels = LabelSelector::parse(self.get("labelSelector").unwrap_or_default())
            .map_err(|e| Status::bad_request(e.to_string()))?;
        let fields = FieldSelector::parse(self.get("fieldSelector").unwrap_or_default())
            .map_err(|e| Status::bad_request(e.to_string()))?;
        check_selectors(&labels, &fields)?;
        let mut options = ListOptions {
            labels,
            fields,
            limit: usize::try_from(self.integer("limit")?.unwrap_or(0)).unwrap_or(0),
            continue_token: self.text("continue"),
            resource_version: self.text("resourceVersion"),
            resource_version_match: self.text("resourceVersionMatch"),
            send_initial_events: self.flag("sendInitialEvents"),
            bookmarks: self.flag("allowWatchBookmarks").unwrap_or(false),
            timeout: self
                .integer("timeoutSeconds")?
                .filter(|s| *s > 0)
                .map(|s| Duration::from_secs(s.unsigned_abs())),
        };
        // A legacy watch from "" or "0" sends the current state first.
        if watch
            && options.send_initial_events.is_none()
            && options.resource_version_match.is_empty()
            && matches!(options.resource_version.as_str(), "" | "0")
        {
            options.send_initial_events = Some(true);
            options.resource_version_match = "NotOlderThan".into();
        }
        let errors = options.check(watch);
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors))
        }
    }

    /// Delete options given as query parameters.
    pub fn delete_options(&self) -> Result<DeleteOptions> {
        let mut errors = Vec::new();
        let options = DeleteOptions {
            dry_run: self.dry_run(&mut errors),
            grace_period_seconds: self.integer("gracePeriodSeconds")?,
            propagation: self.get("propagationPolicy").filter(|p| !p.is_empty()).map(str::to_owned),
            orphan_dependents: self.flag("orphanDependents"),
            // Preconditions, as in a body.
            uid: self.get("uid").filter(|uid| !uid.is_empty()).map(str::to_owned),
            resource_version: self.get("resourceVersion").filter(|v| !v.is_empty()).map(str::to_owned),
        };
        options.check(errors)
    }
}

/// A selector is matched with every object and kept for as long as a watch lasts.
fn check_selectors(labels: &LabelSelector, fields: &FieldSelector) -> Result<()> {
    let requirements = labels.requirements().unwrap_or_default();
    let values: usize = requirements.iter().map(|requirement| requirement.values.len()).sum();
    for (selector, what, count, limit) in [
        ("labelSelector", "requirements", requirements.len(), MAX_REQUIREMENTS),
        ("labelSelector", "values", values, MAX_VALUES),
        ("fieldSelector", "requirements", fields.terms.len(), MAX_REQUIREMENTS),
    ] {
        if count > limit {
            return Err(Status::bad_request(format!(
                "{selector} has {count} {what}, the limit is {limit}: select with fewer"
            )));
        }
    }
    Ok(())
}

impl ListOptions {
    /// Entries of the selectors: requirements, and the values of those that have several.
    pub fn selector_entries(&self) -> usize {
        let requirements = self.labels.requirements().unwrap_or_default();
        let values = |requirement: &Requirement| requirement.values.len().max(1);
        requirements.iter().map(values).sum::<usize>() + self.fields.terms.len()
    }

    fn check(&self, watch: bool) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let matching = self.resource_version_match.as_str();
        let forbid = |field: &str, why: &str| FieldError::forbidden(field, why);
        if watch {
            if self.send_initial_events.is_some() && matching != "NotOlderThan" {
                errors.push(forbid(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            if !matching.is_empty() {
                if self.send_initial_events.is_none() {
                    errors.push(forbid(
                        "resourceVersionMatch",
                        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                    ));
                }
                if matching != "NotOlderThan" {
                    errors.push(FieldError::not_supported(
                        "resourceVersionMatch",
                        matching,
                        &["NotOlderThan"],
                    ));
                }
                if !self.continue_token.is_empty() {
                    errors.push(forbid(
                        "resourceVersionMatch",
                        "resourceVersionMatch is forbidden when continue is provided",
                    ));
                }
            }
            return errors;
        }
        if !matching.is_empty() {
            if self.resource_version.is_empty() {
                errors.push(forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                errors.push(forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                let supported = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported("resourceVersionMatch", matching, &supported));
            }
            if matching == "Exact" && self.resource_version == "0" {
                errors.push(forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(forbid("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        errors
    }
}

impl DeleteOptions {
    /// Delete options given as a body.
    pub fn from_body(body: &Value) -> Result<Self> {
        Self::of_body(body, true)
    }

    /// Delete options of a collection. There, upstream knows no other kinds.
    pub fn of_collection(body: &Value) -> Result<Self> {
        Self::of_body(body, false)
    }

    fn of_body(body: &Value, knows_kinds: bool) -> Result<Self> {
        let mut errors = Vec::new();
        let (api_version, kind) = type_of(body).map_err(Status::bad_request)?;
        if !matches!(kind.as_str(), "" | "DeleteOptions") {
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let known = capstan_builtin::table::table().kind(group, version, &kind).is_some();
            return Err(Status::bad_request(if known && knows_kinds {
                "decoded object cannot be converted to DeleteOptions".to_owned()
            } else {
                not_registered(&kind, &api_version)
            }));
        }
        let wrong = |field: &str, expected: &str, fits: fn(&Value) -> bool| match body.get(field) {
            None | Some(Value::Null) => Ok(()),
            Some(value) if fits(value) => Ok(()),
            Some(value) => Err(Status::bad_request(format!(
                "json: cannot unmarshal {} into Go struct field DeleteOptions.{field} of type {expected}",
                go_type(value)
            ))),
        };
        wrong("gracePeriodSeconds", "int64", Value::is_i64)?;
        wrong("propagationPolicy", "v1.DeletionPropagation", Value::is_string)?;
        wrong("orphanDependents", "bool", Value::is_boolean)?;
        wrong("dryRun", "[]string", Value::is_array)?;
        wrong("preconditions", "v1.Preconditions", Value::is_object)?;
        let dry_run_values: Vec<&str> = body
            .get("dryRun")
            .and_then(Value::as_array)
            .map(|values| values.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let precondition = |key: &str| body["preconditions"][key].as_str().map(str::to_owned);
        let options = Self {
            dry_run: dry_run(&dry_run_values, &mut errors),
            grace_period_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation: body.get("propagationPolicy").and_then(Value::as_str).map(str::to_owned),
            orphan_dependents: body.get("orphanDependents").and_then(Value::as_bool),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
        };
        options.check(errors)
    }

    fn check(self, mut errors: Vec<FieldError>) -> Result<Self> {
        if let Some(policy) = &self.propagation {
            if self.orphan_dependents.is_some() {
                errors.push(FieldError::invalid(
                    "propagationPolicy",
                    policy.as_str(),
                    "orphanDependents and deletionPropagation cannot be both set",
                ));
            }
            if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", policy.as_str(), &supported));
            }
        }
        if errors.is_empty() {
            Ok(self)
        } else {
            Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors))
        }
    }

    /// The `DeleteOptions` object for webhooks.
    pub fn to_json(&self) -> Value {
        let mut out = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = self.grace_period_seconds {
            out["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(policy) = &self.propagation {
            out["propagationPolicy"] = policy.as_str().into();
        }
        if let Some(orphan) = self.orphan_dependents {
            out["orphanDependents"] = orphan.into();
        }
        if self.dry_run {
            out["dryRun"] = json!(["All"]);
        }
        for (key, value) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(value) = value {
                out["preconditions"][key] = value.as_str().into();
            }
        }
        out
    }
}

impl WriteOptions {
    /// The options object for webhooks.
    pub fn to_json(&self, kind: WriteKind) -> Value {
        let name = match kind {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        };
        let mut out = json!({"kind": name, "apiVersion": "meta.k8s.io/v1"});
        if self.dry_run {
            out["dryRun"] = json!(["All"]);
        }
        if !self.field_manager.is_empty() {
            out["fieldManager"] = self.field_manager.as_str().into();
        }
        if let Some(force) = self.force.filter(|_| kind == WriteKind::Apply) {
            out["force"] = force.into();
        }
        match self.field_validation {
            FieldValidation::Ignore => out["fieldValidation"] = "Ignore".into(),
            FieldValidation::Strict => out["fieldValidation"] = "Strict".into(),
            FieldValidation::Warn => {}
        }
        out
    }
}

fn dry_run(values: &[&str], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|v| *v != "All") {
        errors.push(FieldError::new(
            ErrorKind::NotSupported,
            "dryRun",
            BadValue::Json(json!(values)),
            "supported values: \"All\"",
        ));
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_bounded() {
        let requirements = |count: usize| (0..count).map(|n| format!("!a{n}")).collect::<Vec<_>>().join(",");
        let values = |count: usize| {
            let values: Vec<String> = (0..count).map(|n| format!("b{n}")).collect();
            format!("a in ({})", values.join(","))
        };
        let fields = |count: usize| vec!["metadata.name=a"; count].join(",");
        let parsed = |name: &str, selector: String| {
            let query = Query(vec![(name.to_owned(), selector)]);
            let options = query.list_options(true).map(|options| options.selector_entries());
            options.map_err(|status| (status.code, status.message))
        };
        let refused = |why: &str| Err((400, format!("{why}: select with fewer")));
        assert_eq!(parsed("labelSelector", requirements(1_000)), Ok(1_000));
        assert_eq!(parsed("labelSelector", values(2_000)), Ok(2_000));
        assert_eq!(parsed("fieldSelector", fields(1_000)), Ok(1_000));
        let why = "labelSelector has 13000 requirements, the limit is 1000";
        assert_eq!(parsed("labelSelector", requirements(13_000)), refused(why));
        let why = "labelSelector has 10001 values, the limit is 10000";
        assert_eq!(parsed("labelSelector", values(10_001)), refused(why));
        let why = "fieldSelector has 1001 requirements, the limit is 1000";
        assert_eq!(parsed("fieldSelector", fields(1_001)), refused(why));
    }
}
