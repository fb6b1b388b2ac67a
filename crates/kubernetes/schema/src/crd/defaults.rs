//! Defaults of a CRD: they must be valid and must not contain fields that would be pruned.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::embedded::{self, Coerce};
use crate::field::{FieldError, FieldErrors};
use crate::path::Path;
use crate::rules::{Budget, Rules};
use crate::schema::Additional;
use crate::validate::{self, Dialect};
use crate::{Schema, prune};

/// Checks the defaults of a whole schema.
pub fn validate(schema: &Arc<Schema>, require_pruned: bool, path: &Path<'_>) -> FieldErrors {
    let mut walk =
        Walk { require_pruned, budget: Budget::default(), out: FieldErrors::new(), steps: Vec::new() };
    walk.node(schema, schema, true, false, path);
    walk.out
}

/// Checks the defaults of the schema of a value that is no resource.
pub fn validate_value(schema: &Arc<Schema>, path: &Path<'_>) -> FieldErrors {
    let mut walk =
        Walk { require_pruned: true, budget: Budget::default(), out: FieldErrors::new(), steps: Vec::new() };
    walk.node(schema, schema, false, false, path);
    walk.out
}

/// The path from the enclosing resource to a default.
#[derive(Clone)]
enum Step {
    Field(String),
    Entry,
}

struct Walk {
    require_pruned: bool,
    budget: Budget,
    out: FieldErrors,
    steps: Vec<Step>,
}

impl Walk {
    /// `inside` is whether the node belongs to the identity or metadata of a resource.
    fn node(
        &mut self,
        schema: &Arc<Schema>,
        resource: &Arc<Schema>,
        root: bool,
        inside: bool,
        path: &Path<'_>,
    ) {
        let embedded = root || schema.embedded_resource;
        let (resource, inside) = if embedded { (schema, false) } else { (resource, inside) };
        let outer = if embedded { std::mem::take(&mut self.steps) } else { Vec::new() };
        if let Some(default) = &schema.default {
            let path = path.field("default");
            if inside {
                self.inside_metadata(schema, resource, default, &path);
            } else {
                self.plain(schema, default, embedded, &path);
            }
        }
        if let Some(items) = &schema.items {
            self.steps.push(Step::Entry);
            self.node(items, resource, false, inside, &path.field("items"));
            self.steps.pop();
        }
        let properties = path.field("properties");
        for (name, property) in &schema.properties {
            let meta = embedded && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            self.steps.push(Step::Field(name.clone()));
            self.node(property, resource, false, inside || meta, &properties.key(name));
            self.steps.pop();
        }
        if embedded {
            self.steps = outer;
        }
    }

    fn plain(&mut self, schema: &Arc<Schema>, default: &Value, embedded: bool, path: &Path<'_>) {
        if self.require_pruned {
            let mut pruned = default.clone();
            prune::prune_value(&mut pruned, schema, embedded);
            if pruned != *default {
                self.out.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
            }
        }
        let mut value = default.clone();
        let options = Coerce { resource_root: embedded, drop_malformed: false };
        if let Err(error) = embedded::coerce(&mut value, schema, options, path) {
            self.out.push(error);
            return;
        }
        let errors = embedded::validate(&value, schema, embedded, path);
        if !errors.is_empty() {
            self.out.extend(errors);
            return;
        }
        self.values_and_rules(schema, &value, embedded, path);
    }

    fn inside_metadata(&mut self, schema: &Arc<Schema>, resource: &Schema, default: &Value, path: &Path<'_>) {
        let mut object = self.surround(default.clone());
        let options = Coerce { resource_root: true, drop_malformed: false };
        let root = Path::ROOT;
        let errors = match embedded::coerce(&mut object, resource, options, &root) {
            Err(error) => error.to_string(),
            Ok(_) => aggregate(&embedded::validate(&object, resource, true, &root)),
        };
        if errors.is_empty() {
            self.values_and_rules(schema, default, false, path);
        } else {
            self.out.push(FieldError::invalid(
                path,
                default.clone(),
                format!("must result in valid metadata: {errors}"),
            ));
        }
    }

    fn values_and_rules(&mut self, schema: &Arc<Schema>, default: &Value, root: bool, path: &Path<'_>) {
        let errors = validate::validate(schema, default, Dialect::Definition, path);
        if !errors.is_empty() {
            self.out.extend(errors);
            return;
        }
        let Some(rules) = Rules::compile(schema, root) else { return };
        // Once as an unchanged and once as a new value: transition rules see both.
        let mut unchanged = self.budget.clone();
        let errors = rules.validate_at(default, Some(default), &mut unchanged, path);
        let clean = errors.is_empty();
        self.out.extend(errors);
        let mut fresh = self.budget.clone();
        if clean {
            self.out.extend(rules.validate_at(default, None, &mut fresh, path));
            if fresh.remaining() < unchanged.remaining() {
                unchanged = fresh;
            }
        }
        self.budget = unchanged;
    }

    /// The smallest resource with a value at the current path.
    fn surround(&self, value: Value) -> Value {
        let mut object = value;
        for step in self.steps.iter().rev() {
            object = match step {
                Step::Field(name) => Value::Object(Map::from_iter([(name.clone(), object)])),
                Step::Entry => json!([object]),
            };
        }
        if let Value::Object(fields) = &mut object {
            fields.entry("kind").or_insert_with(|| "Validation".into());
            fields.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        object
    }
}

/// Joins several errors to one text.
fn aggregate(errors: &[FieldError]) -> String {
    let mut seen = HashSet::new();
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.retain(|text| seen.insert(text.clone()));
    match texts.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Removes from defaults what the schema would prune: CRDs stored by older servers may have such defaults, and
/// objects must not get them.
pub fn prune_defaults(schema: &mut Schema) {
    let whole = schema.clone();
    prune_node(schema, &whole, &mut Vec::new());
}

fn prune_node(schema: &mut Schema, whole: &Schema, steps: &mut Vec<Step>) {
    if let Some(default) = schema.default.take() {
        let walk = Walk {
            require_pruned: false,
            budget: Budget::default(),
            out: FieldErrors::new(),
            steps: steps.clone(),
        };
        let mut object = walk.surround(default.clone());
        let options = Coerce { resource_root: true, drop_malformed: true };
        let pruned =
            if object.is_object() && embedded::coerce(&mut object, whole, options, &Path::ROOT).is_ok() {
                prune::prune(&mut object, whole);
                take(object, steps)
            } else {
                Some(default)
            };
        schema.default = pruned;
    }
    if let Additional::Schema(additional) = &mut schema.additional {
        below(additional, whole, steps, Step::Field("*".into()));
    }
    if let Some(items) = &mut schema.items {
        below(items, whole, steps, Step::Entry);
    }
    for (name, property) in &mut schema.properties {
        below(property, whole, steps, Step::Field(name.clone()));
    }
}

fn below(schema: &mut Arc<Schema>, whole: &Schema, steps: &mut Vec<Step>, step: Step) {
    if !has_defaults(schema) {
        return;
    }
    steps.push(step);
    prune_node(Arc::make_mut(schema), whole, steps);
    steps.pop();
}

fn has_defaults(schema: &Schema) -> bool {
    schema.default.is_some()
        || schema.items.as_deref().is_some_and(has_defaults)
        || schema.additional_schema().is_some_and(|s| has_defaults(s))
        || schema.properties.values().any(|s| has_defaults(s))
}

/// The value at a path.
fn take(object: Value, steps: &[Step]) -> Option<Value> {
    steps.iter().try_fold(object, |value, step| match (step, value) {
        (Step::Field(name), Value::Object(mut fields)) => fields.remove(name),
        (Step::Entry, Value::Array(items)) => items.into_iter().next(),
        _ => None,
    })
}
