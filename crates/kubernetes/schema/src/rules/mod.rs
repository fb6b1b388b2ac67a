//! `x-kubernetes-validations`: rules are compiled once per schema and evaluated for every object, in upstream's order
//! and with its cost budget.

mod compile;
mod decl;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use capstan_cel::Budget;
use capstan_cel::DeclType;
use serde_json::Value;

use crate::Schema;
use crate::correlate::Correlated;
use crate::field::FieldErrors;
use crate::path::Path;

pub use compile::{Compiled, compile};
pub use decl::{of_object, of_schema};
pub use run::Outcome;

/// The compiled rules of a schema. Shared between requests.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

/// Rules of one schema node and of those below it. Nodes without rules are left out.
#[derive(Debug)]
struct Node {
    schema: Arc<Schema>,
    decl: DeclType,
    /// The node has no type, so its rules cannot be compiled.
    untyped: bool,
    rules: Vec<Compiled>,
    /// Whether `oldSelf` is bound for the rules of this node.
    uses_old_self: bool,
    items: Option<Box<Node>>,
    additional: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
}

impl Rules {
    /// Compiles all rules of a schema; `None` if it has none.
    pub fn compile(schema: &Arc<Schema>, resource_root: bool) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        let root = Node::new(schema, decl::of_schema(schema, resource_root))?;
        Some(Self { root })
    }

    /// Evaluates the rules on an object and its old value. Failures in unchanged parts become warnings, except for
    /// transition rules.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Outcome {
        let mut budget = Budget::default();
        let pair = old.map(|old| Correlated { new, old, schema: &self.root.schema });
        run::run(&self.root, new, old, pair, &mut budget, &Path::ROOT)
    }

    /// Evaluates the rules on a value at a path, without ratcheting.
    pub fn validate_at(
        &self,
        value: &Value,
        old: Option<&Value>,
        budget: &mut Budget,
        path: &Path<'_>,
    ) -> FieldErrors {
        run::run(&self.root, value, old, None, budget, path).errors
    }
}

fn has_rules(schema: &Schema) -> bool {
    !schema.rules.is_empty()
        || schema.items.as_deref().is_some_and(has_rules)
        || schema.additional_schema().is_some_and(|s| has_rules(s))
        || schema.properties.values().any(|s| has_rules(s))
}

impl Node {
    fn new(schema: &Arc<Schema>, decl: DeclType) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        let untyped = !decl.is_exposed();
        let rules = if untyped { Vec::new() } else { compile(schema, &decl) };
        let element = |child: &Arc<Schema>| {
            let element = decl.element().cloned();
            let decl = element.unwrap_or_else(|| decl::of_schema(child, child.embedded_resource));
            Self::new(child, decl).map(Box::new)
        };
        let property = |(name, child): (&String, &Arc<Schema>)| {
            let declared = match (decl.property(name), capstan_cel::escape(name)) {
                (Some(declared), Some(_)) => declared.clone(),
                // Fields with names that cannot be escaped are not in the declared type.
                _ => decl::of_schema(child, child.embedded_resource),
            };
            // Fields without a type are left out with everything below them.
            let node = declared.is_exposed().then(|| Self::new(child, declared)).flatten()?;
            Some((name.clone(), node))
        };
        Some(Self {
            uses_old_self: rules.iter().any(|rule| rule.uses_old_self),
            rules,
            items: schema.items.as_ref().and_then(element),
            additional: schema.additional_schema().and_then(element),
            properties: schema.properties.iter().filter_map(property).collect(),
            untyped,
            schema: schema.clone(),
            decl,
        })
    }
}

#[cfg(test)]
mod tests;
