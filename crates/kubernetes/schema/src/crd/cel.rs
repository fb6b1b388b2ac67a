//! Rules of a CRD: they must compile, and their estimated cost is limited, for each rule and in total.

use std::cell::RefCell;

use capstan_cel::DeclType;
use capstan_cel::limits::{STATIC_ESTIMATED_COST_LIMIT, STATIC_ESTIMATED_CRD_COST_LIMIT};
use serde_json::Value;

use super::props::Props;
use super::{Options, render};
use crate::Schema;
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use crate::path::Path;
use crate::rules;

/// Estimated cost of all rules of a schema, and the most expensive ones.
#[derive(Debug, Default)]
pub struct TotalCost {
    total: u64,
    /// At most four, the most expensive first.
    most_expensive: Vec<(String, u64)>,
}

impl TotalCost {
    fn observe(&mut self, path: &Path<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < STATIC_ESTIMATED_CRD_COST_LIMIT / 100 {
            return;
        }
        self.most_expensive.push((path.to_string(), cost));
        self.most_expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.most_expensive.truncate(4);
    }

    /// Errors for the rules that exceed the limit of a schema.
    pub fn errors(&self, path: &Path<'_>) -> FieldErrors {
        if self.total <= STATIC_ESTIMATED_CRD_COST_LIMIT {
            return FieldErrors::new();
        }
        let contributed = |(path, _): &(String, u64)| {
            FieldError::forbidden(
                path.as_str(),
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
            )
        };
        let mut out: FieldErrors = self.most_expensive.iter().map(contributed).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        out.push(FieldError::forbidden(
            path,
            too_expensive(what, self.total, STATIC_ESTIMATED_CRD_COST_LIMIT),
        ));
        out
    }
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}

/// A schema node where rules are possible: its type, and how many values it can have in one object.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    props: Props<'a>,
    /// Set from the topmost rule on: rules see types from there.
    decl: Option<DeclType>,
    /// `None` if unbounded.
    cardinality: Option<u64>,
    total: &'a RefCell<TotalCost>,
}

impl<'a> Scope<'a> {
    /// The scope of a whole schema.
    pub fn root(props: Props<'a>, total: &'a RefCell<TotalCost>) -> Self {
        let decl = has_rules(props).then(|| declare(props, true));
        Self { props, decl, cardinality: Some(1), total }
    }

    pub fn property(&self, props: Props<'a>, name: &str) -> Self {
        let writable = capstan_cel::escape(name).is_some();
        let declared = self.decl.as_ref().and_then(|decl| decl.property(name));
        self.child(props, declared.filter(|decl| writable && decl.is_exposed()).cloned())
    }

    pub fn items(&self, props: Props<'a>) -> Self {
        self.child(props, self.decl.as_ref().and_then(DeclType::element).cloned())
    }

    pub fn additional(&self, props: Props<'a>) -> Self {
        self.items(props)
    }

    fn child(&self, props: Props<'a>, derived: Option<DeclType>) -> Self {
        let needed = self.decl.is_some() || has_rules(props);
        let declared = || declare(props, props.flag("x-kubernetes-embedded-resource"));
        let cardinality = match (self.cardinality, max_elements(self.props)) {
            (Some(outer), Some(here)) => Some(outer.saturating_mul(here)),
            _ => None,
        };
        Self { props, decl: needed.then(|| derived.unwrap_or_else(declared)), cardinality, total: self.total }
    }

    /// Estimated cost of a rule over all values.
    fn cost(&self, cost: u64, decl: &DeclType) -> u64 {
        cost.saturating_mul(self.cardinality.unwrap_or_else(|| decl.max_cardinality()))
    }
}

fn has_rules(props: Props<'_>) -> bool {
    props.rules().next().is_some()
}

fn parse(props: Props<'_>) -> Option<Schema> {
    Schema::from_json(&Value::Object(props.0.clone())).ok()
}

fn declare(props: Props<'_>, resource: bool) -> DeclType {
    parse(props).map_or_else(DeclType::preserved, |schema| rules::of_schema(&schema, resource))
}

/// Upper bound of the number of children of a value.
fn max_elements(props: Props<'_>) -> Option<u64> {
    let bound = |key: &str| props.integer(key).map(|max| u64::try_from(max).unwrap_or_default());
    match props.kind() {
        "object" if props.has_additional() => bound("maxProperties"),
        "array" => bound("maxItems"),
        _ => Some(1),
    }
}

/// Compiles the rules of a node and checks their cost.
pub fn validate(
    props: Props<'_>,
    path: &Path<'_>,
    scope: &Scope<'_>,
    uncorrelatable: Option<&str>,
    options: &Options<'_>,
    out: &mut FieldErrors,
) {
    let list = path.field("x-kubernetes-validations");
    let schema = parse(props);
    let (Some(schema), Some(decl)) = (schema, scope.decl.as_ref().filter(|decl| decl.is_exposed())) else {
        out.push(FieldError::internal(
            list,
            "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
             convert structural schema to CEL declarations",
        ));
        return;
    };
    let mut total = scope.total.borrow_mut();
    let shown = props.rules().map(|rule| BadValue::Text(render::rule(rule)));
    for (index, (compiled, shown)) in rules::compile(&schema, decl).iter().zip(shown).enumerate() {
        let path = list.index(index);
        let (rule_path, message_path) = (path.field("rule"), path.field("messageExpression"));
        let cost = scope.cost(compiled.max_cost(), decl);
        let mut check_cost = |path: &Path<'_>, what: &str, cost: u64, out: &mut FieldErrors| {
            if !options.suppress_rule_cost && cost > STATIC_ESTIMATED_COST_LIMIT {
                out.push(FieldError::forbidden(path, too_expensive(what, cost, STATIC_ESTIMATED_COST_LIMIT)));
            }
            total.observe(path, cost);
        };
        check_cost(&rule_path, "estimated rule cost", cost, out);
        if let Some(Err(error)) = &compiled.program {
            out.push(FieldError::new(ErrorKind::Invalid, rule_path, shown.clone(), error.as_str()));
        }
        match &compiled.message {
            Some(Err(error)) => {
                out.push(FieldError::new(ErrorKind::Invalid, message_path, shown, error.as_str()));
            }
            Some(Ok(_)) => {
                check_cost(
                    &message_path,
                    "estimated messageExpression cost",
                    compiled.message_max_cost(),
                    out,
                );
            }
            None => {}
        }
        let rule = &compiled.rule;
        if compiled.uses_old_self {
            if let Some(within) = uncorrelatable {
                out.push(FieldError::invalid(
                    rule_path,
                    rule.rule.as_str(),
                    format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                    ),
                ));
            }
        } else if let Some(optional) = rule.optional_old_self {
            out.push(FieldError::invalid(
                path.field("optionalOldSelf"),
                optional,
                "may not be set if oldSelf is not used in rule",
            ));
        }
    }
}
