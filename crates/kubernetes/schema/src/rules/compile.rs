//! Compiles the rules of a schema node.

use capstan_cel::{CompileError, DeclType, Env, Program};

use crate::Schema;
use crate::fieldpath;
use crate::schema::Rule;

/// A compiled rule, or the compile error.
#[derive(Debug)]
pub struct Compiled {
    /// The rule in the schema.
    pub rule: Rule,
    /// `None` for an empty rule.
    pub program: Option<Result<Program, String>>,
    /// Whether it uses `oldSelf`.
    pub uses_old_self: bool,
    /// The message expression.
    pub message: Option<Result<Program, String>>,
    /// Path below the value that failures refer to.
    pub field_path: Option<String>,
}

impl Compiled {
    /// Estimated upper bound of the cost of one evaluation.
    pub fn max_cost(&self) -> u64 {
        program_cost(self.program.as_ref())
    }

    /// Estimated upper bound of the cost of one evaluation of the message.
    pub fn message_max_cost(&self) -> u64 {
        program_cost(self.message.as_ref())
    }
}

fn program_cost(program: Option<&Result<Program, String>>) -> u64 {
    program.and_then(|program| program.as_ref().ok()).map_or(0, |program| program.cost_estimate().max)
}

/// Compiles the rules of a node against its declared type.
pub fn compile(schema: &Schema, decl: &DeclType) -> Vec<Compiled> {
    let plain = Env::kubernetes().with_variable("self", decl.clone()).with_variable("oldSelf", decl.clone());
    let optional = Env::kubernetes()
        .with_variable("self", decl.clone())
        .with_variable("oldSelf", decl.clone().optional());
    let one = |rule: &Rule| {
        let env = if rule.optional_old_self == Some(true) { &optional } else { &plain };
        compile_rule(rule, env, schema)
    };
    schema.rules.iter().map(one).collect()
}

fn compile_rule(rule: &Rule, env: &Env, schema: &Schema) -> Compiled {
    let mut out =
        Compiled { rule: rule.clone(), program: None, uses_old_self: false, message: None, field_path: None };
    if rule.rule.trim().is_empty() {
        return out;
    }
    let program = match env.compile(&rule.rule) {
        Ok(program) if program.output().is_bool() => program,
        Ok(_) => {
            out.program = Some(Err("cel expression must evaluate to a bool".into()));
            return out;
        }
        Err(CompileError::Issues(issues)) => {
            out.program = Some(Err(format!("compilation failed: {issues}")));
            return out;
        }
        Err(CompileError::Program(error)) => {
            out.program = Some(Err(format!("program instantiation failed: {error}")));
            return out;
        }
    };
    out.uses_old_self = program.uses("oldSelf");
    out.program = Some(Ok(program));
    if !rule.message_expression.is_empty() {
        out.message = Some(match env.compile(&rule.message_expression) {
            Ok(program) if program.output().is_string() => Ok(program),
            Ok(_) => Err("messageExpression must evaluate to a string".into()),
            Err(CompileError::Issues(issues)) => {
                Err(format!("messageExpression compilation failed: {issues}"))
            }
            Err(CompileError::Program(error)) => {
                Err(format!("messageExpression instantiation failed: {error}"))
            }
        });
    }
    // An invalid message expression ends the compilation of the rule; failures then refer to the value itself.
    if !rule.field_path.is_empty() && !matches!(out.message, Some(Err(_))) {
        out.field_path = fieldpath::resolve(&rule.field_path, schema, true).ok().map(|path| path.text);
    }
    out
}
