//! Evaluates rules on a value.

use capstan_cel::limits::MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES;
use capstan_cel::{Activation, Budget, EvalError, Program};
use serde_json::Value;

use super::{Compiled, Node};
use crate::bounded::Texts;
use crate::correlate::{Correlated, Entries};
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use crate::golang::quote;
use crate::path::Path;
use crate::schema::{Rule, TypeName};

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Result of the evaluation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Failed rules.
    pub errors: FieldErrors,
    /// Failed rules in unchanged parts.
    pub warnings: Texts,
}

pub fn run(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    pair: Option<Correlated<'_>>,
    budget: &mut Budget,
    path: &Path<'_>,
) -> Outcome {
    let mut run = Run { budget, out: Outcome::default() };
    // An exceeded budget ends the walk; earlier errors count.
    _ = run.node(node, value, old, Ratchet { current: pair, parent: None }, path);
    run.out
}

/// The budget is exceeded.
struct Exhausted;

/// What the old value, or that of a parent, means for ratcheting.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<Correlated<'a>>,
    parent: Option<Correlated<'a>>,
}

impl<'a> Ratchet<'a> {
    fn forgives(&self) -> bool {
        self.current.or(self.parent).is_some_and(|pair| pair.unchanged())
    }

    fn key(&self, key: &str) -> Self {
        match self.current {
            None => *self,
            Some(_) if self.parent.is_none() && matches!(key, "apiVersion" | "kind") => {
                Self { current: None, parent: None }
            }
            Some(current) => Self { current: current.key(key), parent: Some(current) },
        }
    }

    fn entry(&self, entries: Option<&Entries<'a>>, item: &'a Value) -> Self {
        match self.current {
            None => *self,
            Some(current) => {
                Self { current: entries.and_then(|entries| entries.pair(item)), parent: Some(current) }
            }
        }
    }
}

struct Run<'b> {
    budget: &'b mut Budget,
    out: Outcome,
}

impl Run<'_> {
    fn node<'a>(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let old = old.filter(|old| !old.is_null());
        match value {
            Value::Null => return Ok(()),
            _ => self.expressions(node, value, old, ratchet, path)?,
        }
        match value {
            Value::Array(items) => {
                let Some(child) = &node.items else { return Ok(()) };
                let before = old.and_then(Value::as_array).map(|old| Entries::new(&node.schema, old));
                let entries = ratchet.current.as_ref().and_then(Correlated::entries);
                for (index, item) in items.iter().enumerate() {
                    let old = match node.schema.list_type {
                        Some(crate::schema::ListType::Map) => before.as_ref().and_then(|b| b.get(item)),
                        _ => None,
                    };
                    self.node(child, item, old, ratchet.entry(entries.as_ref(), item), &path.index(index))?;
                }
            }
            Value::Object(fields) => {
                let old = old.and_then(Value::as_object);
                if let Some(child) = &node.additional {
                    for (key, value) in fields {
                        let old = old.and_then(|old| old.get(key));
                        self.node(child, value, old, ratchet.key(key), &path.key(key))?;
                    }
                }
                for (key, child) in &node.properties {
                    if let Some(value) = fields.get(key) {
                        let old = old.and_then(|old| old.get(key));
                        self.node(child, value, old, ratchet.key(key), &path.field(key))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expressions<'a>(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        old: Option<&'a Value>,
        ratchet: Ratchet<'_>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        // Evaluation errors are shown with the type of the value.
        let kind = node.schema.kind.map_or("", TypeName::as_str);
        if node.untyped && !node.schema.rules.is_empty() {
            self.out.errors.push(FieldError::invalid(
                path,
                kind,
                "rule compiler initialization error: failed to convert to declType for CEL validation rules",
            ));
            return Ok(());
        }
        if node.rules.is_empty() {
            return Ok(());
        }
        if self.budget.remaining() <= 0 {
            self.out.errors.push(FieldError::invalid(path, kind, OUT_OF_BUDGET));
            return Err(Exhausted);
        }
        let mut plain = Activation::new().bind("self", value, &node.decl);
        let mut optional = plain.clone();
        if node.uses_old_self {
            optional = optional.bind_optional("oldSelf", old, &node.decl);
            if let Some(old) = old {
                plain = plain.bind("oldSelf", old, &node.decl);
            }
        }
        for compiled in &node.rules {
            let rule = &compiled.rule;
            let program = match &compiled.program {
                None => continue,
                Some(Err(error)) => {
                    let detail = format!("rule compile error: {error}");
                    self.out.errors.push(FieldError::invalid(path, kind, detail));
                    continue;
                }
                Some(Ok(program)) => program,
            };
            let is_optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !is_optional {
                continue;
            }
            let variables = if is_optional { &optional } else { &plain };
            match program.evaluate(variables, self.budget) {
                Ok(result) if result.as_bool() == Some(true) => {}
                Ok(_) => self.failed(compiled, &plain, value, kind, &ratchet, path)?,
                Err(error) => self.not_run(rule, &error, kind, path)?,
            }
        }
        Ok(())
    }

    /// A rule that could not be evaluated.
    fn not_run(
        &mut self,
        rule: &Rule,
        error: &EvalError,
        kind: &str,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let text = rule_text(rule);
        let (detail, exhausted) = match error {
            EvalError::BudgetExceeded => (OUT_OF_BUDGET.to_owned(), true),
            EvalError::CostLimitExceeded => (
                format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {text}"
                ),
                true,
            ),
            EvalError::Runtime(message) if message.starts_with("no such overload") => (
                format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for \
                     rule: {text}"
                ),
                false,
            ),
            EvalError::Runtime(_) => (format!("{error} evaluating rule: {text}"), false),
        };
        self.out.errors.push(FieldError::invalid(path, kind, detail));
        if exhausted { Err(Exhausted) } else { Ok(()) }
    }

    /// A rule that evaluated to false.
    fn failed(
        &mut self,
        compiled: &Compiled,
        variables: &Activation<'_>,
        value: &Value,
        kind: &str,
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let rule = &compiled.rule;
        let below = compiled.field_path.as_deref().map(|field| path.field(field));
        let path = below.as_ref().unwrap_or(path);
        let mut detail = None;
        if let Some(Ok(program)) = &compiled.message {
            match message(program, &rule.message_expression, variables, self.budget) {
                Ok(message) => detail = message,
                Err(error) => {
                    self.report(compiled, ratchet, FieldError::invalid(path, kind, error));
                    return Err(Exhausted);
                }
            }
        }
        let detail = detail.unwrap_or_else(|| match rule.message.as_str() {
            "" => format!("failed rule: {}", rule_text(rule)),
            message => message.trim().to_owned(),
        });
        let shown = match kind {
            "object" | "array" => BadValue::Omitted,
            _ => BadValue::Json(value.clone()),
        };
        let error = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
            Some("FieldValueRequired") => FieldError::required(path, detail),
            Some("FieldValueDuplicate") => FieldError::new(ErrorKind::Duplicate, path, shown, ""),
            _ => FieldError::new(ErrorKind::Invalid, path, shown, detail),
        };
        self.report(compiled, ratchet, error);
        Ok(())
    }

    fn report(&mut self, compiled: &Compiled, ratchet: &Ratchet<'_>, error: FieldError) {
        if !compiled.uses_old_self && ratchet.forgives() {
            self.out.warnings.push(error);
        } else {
            self.out.errors.push(error);
        }
    }
}

/// The result of the message expression, if it is usable. Fails if the budget is exceeded.
fn message(
    program: &Program,
    source: &str,
    variables: &Activation<'_>,
    budget: &mut Budget,
) -> Result<Option<String>, String> {
    match program.evaluate(variables, budget) {
        Err(EvalError::BudgetExceeded) => {
            Err("messageExpression evaluation failed due to running out of cost \
                                               budget, no further validation rules will be run"
                .into())
        }
        Err(EvalError::CostLimitExceeded) => Err(format!(
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
            quote(source)
        )),
        Err(EvalError::Runtime(_)) => Ok(None),
        Ok(result) => {
            let text = result.as_str().unwrap_or_default().trim().to_owned();
            let usable = !text.is_empty()
                && !text.contains('\n')
                && text.len() <= MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES;
            Ok(usable.then_some(text))
        }
    }
}

fn rule_text(rule: &Rule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}
