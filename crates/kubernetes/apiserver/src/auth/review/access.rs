//! SubjectAccessReview, its local and self forms, and SelfSubjectRulesReview.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_schema::field::FieldError;
use capstan_schema::meta;
use capstan_schema::selector::{FieldSelector, LabelSelector};
use serde_json::{Map, Value, json};

use crate::auth::{Attributes, Authorizer, RulesForUser, User};
use crate::status::{Result, Status};

const GROUP: &str = "authorization.k8s.io";

/// Evaluates a SubjectAccessReview.
pub fn subject_access_review(authorizer: &dyn Authorizer, review: Value) -> Result<Value> {
    let mut errors = spec_errors(&review["spec"], Subject::Named);
    errors.extend(metadata_error(&review, &[], "must be empty"));
    answer(authorizer, subject(&review["spec"]), review, &errors)
}

pub fn local_subject_access_review(
    authorizer: &dyn Authorizer,
    namespace: &str,
    mut review: Value,
) -> Result<Value> {
    if review["metadata"]["namespace"].is_null() {
        // The namespace in the body defaults to that of the path.
        review["metadata"]["namespace"] = namespace.into();
    }
    let mut errors = spec_errors(&review["spec"], Subject::Named);
    errors.extend(metadata_error(&review, &["namespace"], "must be empty except for namespace"));
    let own = text(&review["metadata"]["namespace"]);
    let resource = &review["spec"]["resourceAttributes"];
    if resource.is_object() && text(&resource["namespace"]) != own {
        errors.push(FieldError::invalid(
            "spec.resourceAttributes.namespace",
            text(&resource["namespace"]),
            "must match metadata.namespace",
        ));
    }
    let path = &review["spec"]["nonResourceAttributes"];
    if path.is_object() {
        errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            path_attributes(path),
            "disallowed on this kind of request",
        ));
    }
    if errors.is_empty() && own != namespace {
        return Err(Status::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    answer(authorizer, subject(&review["spec"]), review, &errors)
}

/// Evaluates a SelfSubjectAccessReview.
pub fn self_subject_access_review(authorizer: &dyn Authorizer, user: &User, review: Value) -> Result<Value> {
    let mut errors = spec_errors(&review["spec"], Subject::Asker);
    errors.extend(metadata_error(&review, &[], "must be empty"));
    answer(authorizer, user.clone(), review, &errors)
}

/// Evaluates a SelfSubjectRulesReview.
pub fn self_subject_rules_review(authorizer: &dyn Authorizer, user: &User, review: &Value) -> Result<Value> {
    let namespace = text(&review["spec"]["namespace"]);
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let RulesForUser { resource_rules, non_resource_rules, incomplete, evaluation_error } =
        authorizer.rules_for(user, namespace);
    let rule = |verbs: &[String], lists: &[(&str, &[String])]| {
        let mut rule = Map::from_iter([("verbs".to_owned(), Value::from(verbs.to_vec()))]);
        for (field, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
            rule.insert((*field).to_owned(), items.to_vec().into());
        }
        Value::Object(rule)
    };
    let resource_rules: Vec<Value> = resource_rules
        .iter()
        .map(|own| {
            let lists: [(&str, &[String]); 3] = [
                ("apiGroups", &own.api_groups),
                ("resources", &own.resources),
                ("resourceNames", &own.resource_names),
            ];
            rule(&own.verbs, &lists)
        })
        .collect();
    let non_resource_rules: Vec<Value> = non_resource_rules
        .iter()
        .map(|own| rule(&own.verbs, &[("nonResourceURLs", &own.non_resource_urls)]))
        .collect();
    let mut status = json!({
        "resourceRules": resource_rules, "nonResourceRules": non_resource_rules, "incomplete": incomplete,
    });
    if !evaluation_error.is_empty() {
        status["evaluationError"] = evaluation_error.into();
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": review["apiVersion"],
        "metadata": {}, "spec": {}, "status": status,
    }))
}

fn answer(
    authorizer: &dyn Authorizer,
    user: User,
    mut review: Value,
    errors: &[FieldError],
) -> Result<Value> {
    if !errors.is_empty() {
        // Upstream's decoder has already dropped the kind when this error is created.
        return Err(Status::invalid(GROUP, "", "", errors));
    }
    let decision = authorizer.authorize(&attributes(Arc::new(user), &review["spec"]));
    let mut status = Map::from_iter([("allowed".to_owned(), Value::from(decision.allowed()))]);
    if !decision.reason().is_empty() {
        status.insert("reason".into(), decision.reason().into());
    }
    let ignored = ignored_selectors(&review["spec"]["resourceAttributes"]);
    if !ignored.is_empty() {
        status.insert("evaluationError".into(), ignored.join("; ").into());
    }
    review["status"] = Value::Object(status);
    Ok(review)
}

fn attributes(user: Arc<User>, spec: &Value) -> Attributes {
    let resource = &spec["resourceAttributes"];
    if !resource.is_object() {
        let path = &spec["nonResourceAttributes"];
        return Attributes {
            user,
            verb: text(&path["verb"]).to_owned().into(),
            path: text(&path["path"]).into(),
            ..Attributes::default()
        };
    }
    let part = |name: &str| text(&resource[name]).to_owned();
    Attributes {
        user,
        verb: part("verb").into(),
        group: part("group"),
        version: part("version"),
        resource: part("resource"),
        subresource: part("subresource"),
        namespace: part("namespace"),
        name: part("name"),
        path: String::new(),
    }
}

fn subject(spec: &Value) -> User {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    };
    let extra: BTreeMap<String, Vec<String>> = spec["extra"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), list(values)))
        .collect();
    User {
        name: text(&spec["user"]).into(),
        uid: text(&spec["uid"]).into(),
        groups: list(&spec["groups"]),
        extra,
    }
}

/// The subject of a review.
#[derive(PartialEq)]
enum Subject {
    Named,
    Asker,
}

fn spec_errors(spec: &Value, subject: Subject) -> Vec<FieldError> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    match (resource.is_object(), path.is_object()) {
        (true, true) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            path_attributes(path),
            "cannot be specified in combination with resourceAttributes",
        )),
        (false, false) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    let no_groups = spec["groups"].as_array().is_none_or(Vec::is_empty);
    if subject == Subject::Named && text(&spec["user"]).is_empty() && no_groups {
        errors.push(FieldError::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    for field in ["fieldSelector", "labelSelector"] {
        let path = format!("spec.resourceAttributes.{field}");
        errors.extend(selector_error(&resource[field], &path));
        let requirements = resource[field]["requirements"].as_array().into_iter().flatten();
        for (index, requirement) in requirements.enumerate() {
            let path = format!("{path}.requirements[{index}]");
            errors.extend(requirement_errors(requirement, field == "labelSelector", &path));
        }
    }
    errors
}

/// As upstream, operators that are not known are no error: a newer client may have them.
fn requirement_errors(requirement: &Value, of_labels: bool, path: &str) -> Vec<FieldError> {
    let key = text(&requirement["key"]);
    let values: Vec<&str> = requirement["values"].as_array().into_iter().flatten().map(text).collect();
    let mut errors = Vec::new();
    if key.is_empty() && !of_labels {
        errors.push(FieldError::required(format!("{path}.key"), "must be specified"));
    }
    match text(&requirement["operator"]) {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            format!("{path}.values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            format!("{path}.values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        _ => {}
    }
    if of_labels {
        let wrong = meta::qualified_name(key).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(format!("{path}.key"), key, why)));
        for (index, value) in values.iter().enumerate() {
            let wrong = meta::label_value(value).into_iter();
            let path = format!("{path}.values[{index}]");
            errors.extend(wrong.map(|why| FieldError::invalid(path.clone(), *value, why)));
        }
    }
    errors
}

fn selector_error(selector: &Value, path: &str) -> Option<FieldError> {
    selector.as_object()?;
    let raw = text(&selector["rawSelector"]);
    let requirements = selector["requirements"].as_array().is_some_and(|list| !list.is_empty());
    match (raw.is_empty(), requirements) {
        (false, true) => Some(FieldError::invalid(
            format!("{path}.rawSelector"),
            raw,
            "may not specified at the same time as requirements",
        )),
        (true, false) => Some(FieldError::required(
            format!("{path}.requirements"),
            format!("when {path} is specified, requirements or rawSelector is required"),
        )),
        _ => None,
    }
}

/// What the review says about selectors that cannot be read. RBAC has no rules about selectors, so the others change
/// nothing either.
fn ignored_selectors(resource: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (field, readable) in [
        ("fieldSelector", field_requirement as fn(&Value) -> bool),
        ("labelSelector", label_requirement as fn(&Value) -> bool),
    ] {
        let selector = &resource[field];
        let requirements = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
        let raw = text(&selector["rawSelector"]);
        let (read, all) = if requirements.is_empty() {
            let parsed = match field {
                "fieldSelector" => FieldSelector::parse(raw).is_ok(),
                _ => LabelSelector::parse(raw).is_ok(),
            };
            (usize::from(parsed || raw.is_empty()), 1)
        } else {
            (requirements.iter().filter(|requirement| readable(requirement)).count(), requirements.len())
        };
        if read < all {
            let partially = if read > 0 { "partially " } else { "" };
            found.push(format!("spec.resourceAttributes.{field} {partially}ignored due to parse error"));
        }
    }
    found
}

fn field_requirement(requirement: &Value) -> bool {
    let values = requirement["values"].as_array().map_or(0, Vec::len);
    values == 1 && matches!(text(&requirement["operator"]), "In" | "NotIn")
}

fn label_requirement(requirement: &Value) -> bool {
    LabelSelector::from_object(&json!({"matchExpressions": [requirement]})).is_ok()
}

/// Reviews have no identity; their metadata may only have what the server adds itself.
fn metadata_error(review: &Value, allowed: &[&str], detail: &str) -> Option<FieldError> {
    let metadata = review["metadata"].as_object()?;
    let given = metadata.iter().any(|(field, value)| {
        field != "managedFields" && !allowed.contains(&field.as_str()) && !is_empty(value)
    });
    given.then(|| FieldError::invalid("metadata", review["metadata"].clone(), detail))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// With the field names of upstream's internal type.
fn path_attributes(path: &Value) -> Value {
    json!({"Path": text(&path["path"]), "Verb": text(&path["verb"])})
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
