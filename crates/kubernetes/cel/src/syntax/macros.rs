//! Calls that expand to other expressions: `has`, the comprehensions, and those of the libraries.

use std::sync::Arc;

use super::ACCUMULATOR;
use super::ast::{Comprehension, Expr, ExprId, ListElement, Literal};
use super::parser::{Abort, Parser};

/// The old name of the accumulator, still rejected as a variable.
const OLD_ACCUMULATOR: &str = "__result__";
const SORT_BY_INPUT: &str = "@__sortBy_input__";
const UNUSED: &str = "#unused";

/// Why a macro cannot be expanded, and the location of the error.
enum Refusal {
    At(u32, String),
    Abort(Abort),
}

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

type Expansion = Result<Option<ExprId>, Refusal>;

impl Parser<'_> {
    /// A call, expanded if it is a macro.
    pub(super) fn call_or_macro(
        &mut self,
        function: &str,
        target: Option<ExprId>,
        args: Vec<ExprId>,
        offset: u32,
    ) -> Result<ExprId, Abort> {
        match self.expand(function, target, &args, offset) {
            Ok(Some(expanded)) => Ok(expanded),
            Ok(None) => self.add(Expr::Call { function: Arc::from(function), target, args }, offset),
            Err(Refusal::At(offset, message)) => self.report(offset, message),
            Err(Refusal::Abort(abort)) => Err(abort),
        }
    }

    fn expand(&mut self, function: &str, target: Option<ExprId>, args: &[ExprId], offset: u32) -> Expansion {
        let Some(target) = target else {
            return match (function, args) {
                ("has", [arg]) => self.has(*arg, offset),
                _ => Ok(None),
            };
        };
        let expanded = match (function, args) {
            ("all" | "exists" | "exists_one", [var, predicate]) => {
                let var = self.variable(*var, "argument must be a simple name")?;
                self.quantifier(function, target, (var, None), *predicate, offset)?
            }
            ("all" | "exists" | "exists_one" | "existsOne", [var, var2, predicate]) => {
                let vars = self.variables(*var, *var2)?;
                self.quantifier(function, target, vars, *predicate, offset)?
            }
            ("map", [var, transform]) => self.map_macro(target, *var, None, *transform, offset)?,
            ("map", [var, filter, transform]) => {
                self.map_macro(target, *var, Some(*filter), *transform, offset)?
            }
            ("filter", [var, predicate]) => {
                let name = self.variable(*var, "argument is not an identifier")?;
                let element = self.generated_list(vec![*var], offset)?;
                self.collect(target, (name, None), Some(*predicate), element, offset)?
            }
            ("transformList", [var, var2, rest @ ..]) if matches!(rest.len(), 1 | 2) => {
                let vars = self.variables(*var, *var2)?;
                let (filter, transform) = filter_and_transform(rest);
                let element = self.generated_list(vec![transform], offset)?;
                self.collect(target, vars, filter, element, offset)?
            }
            ("transformMap" | "transformMapEntry", [var, var2, rest @ ..]) if matches!(rest.len(), 1 | 2) => {
                let vars = self.variables(*var, *var2)?;
                let (filter, transform) = filter_and_transform(rest);
                let accu = self.ident(ACCUMULATOR, offset)?;
                let args = if function == "transformMap" {
                    let key = self.ident(&vars.0, offset)?;
                    vec![accu, key, transform]
                } else {
                    vec![accu, transform]
                };
                let step = self.generated_call("cel.@mapInsert", args, offset)?;
                let step = self.guarded(filter, step, offset)?;
                let init = self.add_generated(Expr::Map { entries: Vec::new() }, offset)?;
                self.fold(target, vars, init, None, step, None, offset)?
            }
            ("optMap" | "optFlatMap", [var, body]) => self.opt_map(function, target, *var, *body, offset)?,
            ("sortBy", [var, key]) => self.sort_by(target, *var, *key, offset)?,
            _ => return Ok(None),
        };
        Ok(Some(expanded))
    }

    fn has(&mut self, arg: ExprId, offset: u32) -> Expansion {
        let Expr::Select { operand, field, .. } = self.ast.get(arg).clone() else {
            return Err(self.refuse(arg, "invalid argument to has() macro"));
        };
        Ok(Some(self.add_generated(Expr::Select { operand, field, test_only: true }, offset)?))
    }

    fn refuse(&self, at: ExprId, message: &str) -> Refusal {
        Refusal::At(self.ast.offset(at), message.to_owned())
    }

    fn variable(&self, arg: ExprId, message: &str) -> Result<Arc<str>, Refusal> {
        let Expr::Ident(name) = self.ast.get(arg) else { return Err(self.refuse(arg, message)) };
        self.check_shadow(arg, name)?;
        Ok(name.clone())
    }

    fn check_shadow(&self, arg: ExprId, name: &str) -> Result<(), Refusal> {
        if matches!(name, ACCUMULATOR | OLD_ACCUMULATOR) {
            return Err(self.refuse(arg, "iteration variable overwrites accumulator variable"));
        }
        Ok(())
    }

    fn variables(&self, var: ExprId, var2: ExprId) -> Result<(Arc<str>, Option<Arc<str>>), Refusal> {
        let simple = |arg| match self.ast.get(arg) {
            Expr::Ident(name) => Ok(name.clone()),
            _ => Err(self.refuse(arg, "argument must be a simple name")),
        };
        let (first, second) = (simple(var)?, simple(var2)?);
        if first == second {
            return Err(self.refuse(var2, &format!("duplicate variable name: {first}")));
        }
        self.check_shadow(var, &first)?;
        self.check_shadow(var2, &second)?;
        Ok((first, Some(second)))
    }

    fn ident(&mut self, name: &str, offset: u32) -> Result<ExprId, Abort> {
        self.add_generated(Expr::Ident(Arc::from(name)), offset)
    }

    fn generated_literal(&mut self, literal: Literal, offset: u32) -> Result<ExprId, Abort> {
        self.add_generated(Expr::Literal(literal), offset)
    }

    fn generated_list(&mut self, values: Vec<ExprId>, offset: u32) -> Result<ExprId, Abort> {
        let elements = values.into_iter().map(|value| ListElement { value, optional: false }).collect();
        self.add_generated(Expr::List { elements }, offset)
    }

    fn generated_call(&mut self, function: &str, args: Vec<ExprId>, offset: u32) -> Result<ExprId, Abort> {
        self.add_generated(Expr::Call { function: Arc::from(function), target: None, args }, offset)
    }

    /// `filter ? step : @result`
    fn guarded(&mut self, filter: Option<ExprId>, step: ExprId, offset: u32) -> Result<ExprId, Abort> {
        let Some(filter) = filter else { return Ok(step) };
        let accu = self.ident(ACCUMULATOR, offset)?;
        self.generated_call("_?_:_", vec![filter, step, accu], offset)
    }

    /// A fold that returns its accumulator and iterates over everything unless `condition` ends it.
    #[expect(clippy::too_many_arguments, reason = "a comprehension has that many parts")]
    fn fold(
        &mut self,
        range: ExprId,
        (var, var2): (Arc<str>, Option<Arc<str>>),
        init: ExprId,
        condition: Option<ExprId>,
        step: ExprId,
        result: Option<ExprId>,
        offset: u32,
    ) -> Result<ExprId, Abort> {
        let condition = match condition {
            Some(condition) => condition,
            None => self.generated_literal(Literal::Bool(true), offset)?,
        };
        let result = match result {
            Some(result) => result,
            None => self.ident(ACCUMULATOR, offset)?,
        };
        let accu = Arc::from(ACCUMULATOR);
        let fold = Comprehension { range, var, var2, accu, init, condition, step, result };
        self.add_generated(Expr::Comprehension(Box::new(fold)), offset)
    }

    fn quantifier(
        &mut self,
        function: &str,
        range: ExprId,
        vars: (Arc<str>, Option<Arc<str>>),
        predicate: ExprId,
        offset: u32,
    ) -> Result<ExprId, Abort> {
        let accu = self.ident(ACCUMULATOR, offset)?;
        match function {
            "all" => {
                let init = self.generated_literal(Literal::Bool(true), offset)?;
                let condition = self.generated_call("@not_strictly_false", vec![accu], offset)?;
                let accu = self.ident(ACCUMULATOR, offset)?;
                let step = self.generated_call("_&&_", vec![accu, predicate], offset)?;
                self.fold(range, vars, init, Some(condition), step, None, offset)
            }
            "exists" => {
                let init = self.generated_literal(Literal::Bool(false), offset)?;
                let negated = self.generated_call("!_", vec![accu], offset)?;
                let condition = self.generated_call("@not_strictly_false", vec![negated], offset)?;
                let accu = self.ident(ACCUMULATOR, offset)?;
                let step = self.generated_call("_||_", vec![accu, predicate], offset)?;
                self.fold(range, vars, init, Some(condition), step, None, offset)
            }
            _ => {
                let init = self.generated_literal(Literal::Int(0), offset)?;
                let one = self.generated_literal(Literal::Int(1), offset)?;
                let more = self.generated_call("_+_", vec![accu, one], offset)?;
                let step = self.guarded(Some(predicate), more, offset)?;
                let accu = self.ident(ACCUMULATOR, offset)?;
                let one = self.generated_literal(Literal::Int(1), offset)?;
                let result = self.generated_call("_==_", vec![accu, one], offset)?;
                self.fold(range, vars, init, None, step, Some(result), offset)
            }
        }
    }

    /// Appends a one-element list for each entry that passes the filter.
    fn collect(
        &mut self,
        range: ExprId,
        vars: (Arc<str>, Option<Arc<str>>),
        filter: Option<ExprId>,
        element: ExprId,
        offset: u32,
    ) -> Result<ExprId, Abort> {
        let accu = self.ident(ACCUMULATOR, offset)?;
        let step = self.generated_call("_+_", vec![accu, element], offset)?;
        let step = self.guarded(filter, step, offset)?;
        let init = self.generated_list(Vec::new(), offset)?;
        self.fold(range, vars, init, None, step, None, offset)
    }

    fn map_macro(
        &mut self,
        range: ExprId,
        var: ExprId,
        filter: Option<ExprId>,
        transform: ExprId,
        offset: u32,
    ) -> Result<ExprId, Refusal> {
        let name = self.variable(var, "argument is not an identifier")?;
        let element = self.generated_list(vec![transform], offset)?;
        Ok(self.collect(range, (name, None), filter, element, offset)?)
    }

    /// A fold over nothing whose accumulator has the value: how CEL binds a variable.
    fn bind(&mut self, name: Arc<str>, value: ExprId, body: ExprId, offset: u32) -> Result<ExprId, Abort> {
        let range = self.generated_list(Vec::new(), offset)?;
        let condition = self.generated_literal(Literal::Bool(false), offset)?;
        let step = self.ident(&name, offset)?;
        let fold = Comprehension {
            range,
            var: Arc::from(UNUSED),
            var2: None,
            accu: name,
            init: value,
            condition,
            step,
            result: body,
        };
        self.add_generated(Expr::Comprehension(Box::new(fold)), offset)
    }

    fn opt_map(
        &mut self,
        function: &str,
        target: ExprId,
        var: ExprId,
        body: ExprId,
        offset: u32,
    ) -> Result<ExprId, Refusal> {
        let Expr::Ident(name) = self.ast.get(var).clone() else {
            let message = format!("{function}() variable name must be a simple identifier");
            return Err(self.refuse(var, &message));
        };
        let copy = self.copy(target)?;
        let member = |function: &str, target| Expr::Call {
            function: Arc::from(function),
            target: Some(target),
            args: Vec::new(),
        };
        let present = self.add_generated(member("hasValue", target), offset)?;
        let value = self.add_generated(member("value", copy), offset)?;
        let bound = self.bind(name, value, body, offset)?;
        let truthy = match function {
            "optMap" => self.generated_call("optional.of", vec![bound], offset)?,
            _ => bound,
        };
        let none = self.generated_call("optional.none", Vec::new(), offset)?;
        Ok(self.generated_call("_?_:_", vec![present, truthy, none], offset)?)
    }

    fn sort_by(&mut self, target: ExprId, var: ExprId, key: ExprId, offset: u32) -> Result<ExprId, Refusal> {
        if !matches!(
            self.ast.get(target),
            Expr::List { .. }
                | Expr::Select { .. }
                | Expr::Ident(_)
                | Expr::Comprehension(_)
                | Expr::Call { .. }
        ) {
            return Err(self.refuse(
                target,
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            ));
        }
        let range = self.ident(SORT_BY_INPUT, offset)?;
        let keys = self.map_macro(range, var, None, key, offset)?;
        let input = self.ident(SORT_BY_INPUT, offset)?;
        let sorted = self.add_generated(
            Expr::Call {
                function: Arc::from("@sortByAssociatedKeys"),
                target: Some(input),
                args: vec![keys],
            },
            offset,
        )?;
        Ok(self.bind(Arc::from(SORT_BY_INPUT), target, sorted, offset)?)
    }

    /// Copies an expression to new nodes, so that each has types of its own.
    fn copy(&mut self, id: ExprId) -> Result<ExprId, Abort> {
        let offset = self.ast.offset(id);
        let mut expr = self.ast.get(id).clone();
        match &mut expr {
            Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified => {}
            Expr::Select { operand, .. } => *operand = self.copy(*operand)?,
            Expr::Call { target, args, .. } => {
                for part in target.iter_mut().chain(args) {
                    *part = self.copy(*part)?;
                }
            }
            Expr::List { elements } => {
                for element in elements {
                    element.value = self.copy(element.value)?;
                }
            }
            Expr::Map { entries } => {
                for entry in entries {
                    entry.key = self.copy(entry.key)?;
                    entry.value = self.copy(entry.value)?;
                }
            }
            Expr::Struct { fields, .. } => {
                for field in fields {
                    field.value = self.copy(field.value)?;
                }
            }
            Expr::Comprehension(fold) => {
                for part in
                    [&mut fold.range, &mut fold.init, &mut fold.condition, &mut fold.step, &mut fold.result]
                {
                    *part = self.copy(*part)?;
                }
            }
        }
        self.add_generated(expr, offset)
    }
}

fn filter_and_transform(args: &[ExprId]) -> (Option<ExprId>, ExprId) {
    match args {
        [filter, transform] => (Some(*filter), *transform),
        _ => (None, args[0]),
    }
}
