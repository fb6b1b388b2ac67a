//! The static cost estimate, after cel-go's `checker/cost.go`.
//!
//! Sizes come from three sources: literals, the effect of calls on sizes, and the declared types, found by the path
//! of fields from a variable. cel-go tracks paths and sizes with some oddities (elements of a literal list are looked
//! up under the path `@items`, for example). They are kept, because the numbers are part of the API.

use std::collections::HashMap;
use std::sync::Arc;

use super::size::Range;
use super::{CostRange, REGEX_LENGTH, STRING_TRAVERSAL};
use crate::check::{Checked, Reference};
use crate::decl::{DeclType, Shape};
use crate::syntax::ast::{Comprehension, Expr, ExprId, Literal};
use crate::types::{Kind, Type};

type Path = Vec<Arc<str>>;

/// Estimates the cost of an expression. The declared type at the root of all variables bounds sizes.
pub(crate) fn estimate(checked: &Checked, root: Option<&DeclType>) -> CostRange {
    let mut estimator = Estimator {
        checked,
        root,
        paths: HashMap::new(),
        locals: Vec::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
    };
    let cost = estimator.cost(checked.ast.root);
    CostRange { min: cost.min, max: cost.max }
}

pub(super) struct Estimator<'c> {
    pub(super) checked: &'c Checked,
    root: Option<&'c DeclType>,
    paths: HashMap<ExprId, Path>,
    locals: Vec<Local>,
    sizes: HashMap<ExprId, Range>,
    entries: HashMap<ExprId, Entry>,
}

/// Sizes of the elements of a list or map.
#[derive(Debug, Clone, Copy)]
struct Entry {
    is_list: bool,
    key: Range,
    value: Range,
}

/// A comprehension variable.
struct Local {
    name: Arc<str>,
    path: Path,
    size: Option<Range>,
    entry: Option<Entry>,
}

/// An expression as seen by call estimates.
pub(super) struct NodeView<'t> {
    pub(super) path: Option<Path>,
    pub(super) t: &'t Type,
    pub(super) expr: Option<ExprId>,
    pub(super) computed: Option<Range>,
}

/// Which part of a range a variable iterates over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Single,
    Key,
    Value,
}

impl<'c> Estimator<'c> {
    fn cost(&mut self, id: ExprId) -> Range {
        match self.checked.ast.get(id) {
            Expr::Literal(_) | Expr::Unspecified => Range::ZERO,
            Expr::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![name.clone()],
                };
                self.paths.insert(id, path);
                Range::ONE
            }
            Expr::Select { operand, field, test_only } => {
                let mut sum = self.cost(*operand);
                if *test_only {
                    return sum;
                }
                if matches!(self.checked.type_of(*operand).0, Kind::Map(_) | Kind::Struct(_) | Kind::Var(_)) {
                    sum = sum.add(Range::ONE);
                }
                let mut path = self.path(*operand);
                path.push(field.clone());
                self.paths.insert(id, path);
                sum
            }
            Expr::Call { .. } => self.call(id),
            Expr::List { elements } => {
                let mut sum = Range::ZERO;
                let mut items = empty_range(elements.is_empty());
                for element in elements {
                    sum = sum.add(self.cost(element.value));
                    items = items.union(self.size_or_unknown(element.value));
                }
                self.entries.insert(id, Entry { is_list: true, key: Range::ONE, value: items });
                sum.add(Range::fixed(10))
            }
            Expr::Map { entries } => {
                let mut sum = Range::ZERO;
                let mut keys = empty_range(entries.is_empty());
                let mut values = keys;
                for entry in entries {
                    sum = sum.add(self.cost(entry.key)).add(self.cost(entry.value));
                    keys = keys.union(self.size_or_unknown(entry.key));
                    values = values.union(self.size_or_unknown(entry.value));
                }
                self.entries.insert(id, Entry { is_list: false, key: keys, value: values });
                sum.add(Range::fixed(30))
            }
            Expr::Struct { fields, .. } => {
                let mut sum = Range::fixed(40);
                for field in fields {
                    sum = sum.add(self.cost(field.value));
                }
                sum
            }
            Expr::Comprehension(fold) => {
                if self.is_bind(fold) {
                    self.bind(id, fold)
                } else {
                    self.comprehension(id, fold)
                }
            }
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    fn path(&self, id: ExprId) -> Path {
        if let Expr::Ident(name) = self.checked.ast.get(id)
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&id).cloned().unwrap_or_default()
    }

    fn view(&mut self, id: ExprId) -> NodeView<'c> {
        let path = self.path(id);
        let hidden = path.first().is_some_and(|first| matches!(&**first, "@result" | "__result__"));
        let computed = self.size(id);
        let checked = self.checked;
        NodeView {
            path: (!path.is_empty() && !hidden).then_some(path),
            t: checked.type_of(id),
            expr: Some(id),
            computed,
        }
    }

    /// The size of the value at a path, from the declared types.
    fn declared_size(&self, path: &[Arc<str>]) -> Option<Range> {
        if path.is_empty() {
            return None;
        }
        let mut node = self.root?;
        let mut key = false;
        for name in &path[1..] {
            if key {
                return None;
            }
            match (&**name, node.shape()) {
                ("@items" | "@values", Shape::List { elem, .. }) => node = elem,
                ("@items" | "@values", Shape::Map { value }) => node = value,
                // Map keys are strings without a bound of their own.
                ("@keys", Shape::Map { .. }) => key = true,
                ("@items" | "@values" | "@keys", _) => return None,
                (field, Shape::Object(object)) => node = object.exactly(field)?.decl(),
                _ => return None,
            }
        }
        Some(Range { min: 0, max: if key { 0 } else { node.max_elements() } })
    }

    pub(super) fn size_of(&self, node: &NodeView<'_>) -> Range {
        node.computed
            .or_else(|| self.declared_size(node.path.as_deref().unwrap_or_default()))
            .unwrap_or(Range::UNKNOWN)
    }

    fn size_or_unknown(&mut self, id: ExprId) -> Range {
        self.size(id).unwrap_or(Range::UNKNOWN)
    }

    fn size(&mut self, id: ExprId) -> Option<Range> {
        if let Some(size) = self.sizes.get(&id) {
            return Some(*size);
        }
        if let Some(size) = self.literal_size(id) {
            return Some(size);
        }
        let path = self.path(id);
        if let Some(size) = self.declared_size(&path) {
            self.sizes.insert(id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(id)) {
            return Some(Range::ONE);
        }
        match self.checked.ast.get(id) {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn literal_size(&self, id: ExprId) -> Option<Range> {
        Some(Range::fixed(match self.checked.ast.get(id) {
            Expr::Literal(Literal::String(s)) => s.chars().count() as u64,
            Expr::Literal(Literal::Bytes(b)) => b.len() as u64,
            Expr::Literal(_) => 1,
            Expr::List { elements } => elements.len() as u64,
            Expr::Map { entries } => entries.len() as u64,
            _ => return None,
        }))
    }

    fn set_size(&mut self, id: ExprId, size: Option<Range>) {
        if let Some(size) = size {
            self.sizes.insert(id, size);
        }
    }

    fn entry(&self, id: ExprId) -> Option<Entry> {
        if let Some(entry) = self.entries.get(&id) {
            return Some(*entry);
        }
        match self.checked.ast.get(id) {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    fn set_entry(&mut self, id: ExprId, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.entries.insert(id, entry);
        }
    }

    fn union_entries(&self, a: ExprId, b: ExprId) -> Option<Entry> {
        let (a, b) = (self.entry(a)?, self.entry(b)?);
        Some(Entry { is_list: a.is_list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }

    fn call(&mut self, id: ExprId) -> Range {
        let checked = self.checked;
        let Expr::Call { function, target, args } = checked.ast.get(id) else { return Range::ZERO };
        if &**function == "dyn" {
            let cost = self.cost(args[0]);
            let size = self.size(args[0]);
            self.set_size(id, size);
            self.set_entry(id, self.entry(args[0]));
            return cost.add(Range::ONE);
        }
        let mut costs = Vec::with_capacity(args.len());
        let mut views = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(*arg));
            views.push(self.view(*arg));
        }
        let overloads: Vec<&'static str> = match checked.reference(id) {
            Reference::Overloads { function, indices } => {
                indices.iter().map(|index| function.overloads[*index].id).collect()
            }
            Reference::OptionalSelect => vec!["select_optional_field"],
            _ => return Range::ZERO,
        };
        let mut sum = Range::ZERO;
        let target = target.map(|target| {
            sum = sum.add(self.cost(target));
            self.view(target)
        });
        // The range covers all overloads that the call may resolve to.
        let mut total = Range { min: u64::MAX, max: 0 };
        let mut result: Option<Range> = None;
        for overload in overloads {
            let (cost, size) = self.overload_cost(id, function, overload, target.as_ref(), &views, &costs);
            total = total.union(cost);
            if let Some(size) = size {
                result = Some(result.map_or(size, |result| result.union(size)));
            }
            let part = match overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let Some(part) = part {
                result = self.entry(args[0]).map(|entry| entry.value);
                let mut path = self.path(args[0]);
                path.push(part.into());
                self.paths.insert(id, path);
            }
            if result.is_none() {
                result = self.size(id);
            }
        }
        self.set_size(id, result);
        sum.add(total)
    }

    fn overload_cost(
        &mut self,
        id: ExprId,
        function: &str,
        overload: &str,
        target: Option<&NodeView<'_>>,
        args: &[NodeView<'_>],
        costs: &[Range],
    ) -> (Range, Option<Range>) {
        let arguments = costs.iter().copied().fold(Range::ZERO, Range::add);
        let library = self
            .extension_call(overload, target, args)
            .or_else(|| self.library_call(function, overload, target, args));
        if let Some(call) = library {
            return (call.cost.add(arguments), call.result);
        }
        let size = |node: &NodeView<'_>| node.computed.unwrap_or(Range::UNKNOWN);
        let traversed = |size: Range| size.scale(STRING_TRAVERSAL);
        let (cost, result) = match (overload, target, args) {
            ("string_format", Some(target), _) => (traversed(size(target)), None),
            ("string_to_bytes", _, [arg]) => {
                let size = size(arg);
                (traversed(size), Some(Range { min: size.min, max: size.max.wrapping_mul(4) }))
            }
            ("bytes_to_string", _, [arg]) => {
                let size = size(arg);
                (traversed(size), Some(Range { min: size.min / 4, max: size.max }))
            }
            ("strings_quote", _, [arg]) => {
                let size = size(arg);
                let max = size.max.wrapping_mul(2).wrapping_add(2);
                (traversed(size), Some(Range { min: size.min.wrapping_add(2), max }))
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => (traversed(size(arg)), None),
            ("in_list", _, [_, list]) => (size(list).scale(1.0), None),
            ("matches_string", Some(target), [pattern]) => {
                let text = traversed(size(target).add(Range::ONE));
                (text.multiply(size(pattern).scale(REGEX_LENGTH)), None)
            }
            ("contains_string", Some(target), [part]) => {
                (traversed(size(target)).multiply(traversed(size(part))), None)
            }
            ("logical_or" | "logical_and", _, [_, _]) => {
                // The left side alone may decide.
                let cost = Range { min: costs[0].min, max: costs[0].add(costs[1]).max };
                return (cost, None);
            }
            ("conditional", _, [_, truthy, falsy]) => {
                let result = size(truthy).union(size(falsy));
                if let (Some(truthy), Some(falsy)) = (truthy.expr, falsy.expr) {
                    let entry = self.union_entries(truthy, falsy);
                    self.set_entry(id, entry);
                }
                return (costs[0].add(costs[1].union(costs[2])), Some(result));
            }
            ("add_string" | "add_bytes" | "add_list", _, [a, b]) => {
                let result = size(a).add(size(b));
                if let (Some(a), Some(b)) = (a.expr, b.expr) {
                    let entry = self.union_entries(a, b);
                    self.set_entry(id, entry);
                }
                let cost = if overload == "add_list" { Range::ONE } else { traversed(result) };
                (cost, Some(result))
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [a, b],
            ) => {
                let max = size(a).max.min(size(b).max);
                (traversed(Range { min: u64::from(max > 0), max }), None)
            }
            _ => (Range::ONE, None),
        };
        (cost.add(arguments), result)
    }

    fn push_local(&mut self, name: &Arc<str>, path: Path, size: Option<Range>, entry: Option<Entry>) {
        self.locals.push(Local { name: name.clone(), path, size, entry });
    }

    fn push_accumulator(&mut self, name: &Arc<str>, init: ExprId) {
        let path = self.path(init);
        let size = self.size(init);
        let entry = self.entry(init);
        self.push_local(name, path, size, entry);
    }

    fn push_variable(&mut self, name: &Arc<str>, range: ExprId, part: Part) {
        let entry = self.entry(range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.checked.type_of(range).0, Kind::List(_)),
        };
        let (step, takes_value) = match (part, is_list) {
            (Part::Single, true) => ("@items", true),
            (Part::Single | Part::Key, false) => ("@keys", false),
            (Part::Key, true) => ("@indices", false),
            (Part::Value, true) => ("@items", true),
            (Part::Value, false) => ("@values", true),
        };
        let size = entry.map(|entry| if takes_value { entry.value } else { entry.key });
        let mut path = self.path(range);
        path.push(step.into());
        self.push_local(name, path, size, None);
    }

    fn comprehension(&mut self, id: ExprId, fold: &Comprehension) -> Range {
        let mut sum = self.cost(fold.range).add(self.cost(fold.init));
        self.push_accumulator(&fold.accu, fold.init);
        match &fold.var2 {
            Some(var2) => {
                self.push_variable(&fold.var, fold.range, Part::Key);
                self.push_variable(var2, fold.range, Part::Value);
            }
            None => self.push_variable(&fold.var, fold.range, Part::Single),
        }
        let condition = self.cost(fold.condition);
        let step = self.cost(fold.step);
        self.locals.pop();
        if fold.var2.is_some() {
            self.locals.pop();
        }
        sum = sum.add(self.cost(fold.result));
        self.locals.pop();
        let count = self.size_or_unknown(fold.range);
        sum = sum.add(count.multiply(step.add(condition)));
        match self.checked.ast.get(fold.init) {
            Expr::Literal(_) => {
                let size = self.size(fold.init);
                self.set_size(id, size);
            }
            Expr::List { .. } | Expr::Map { .. } => {
                self.set_size(id, Some(count));
                self.set_entry(id, self.entry(fold.step));
            }
            _ => {}
        }
        sum
    }

    fn is_bind(&self, fold: &Comprehension) -> bool {
        matches!(self.checked.ast.get(fold.range), Expr::List { elements } if elements.is_empty())
            && self.checked.ast.literal(fold.condition) == Some(&Literal::Bool(false))
    }

    fn bind(&mut self, id: ExprId, fold: &Comprehension) -> Range {
        let mut sum = self.cost(fold.range).add(self.cost(fold.init));
        self.push_accumulator(&fold.accu, fold.init);
        sum = sum.add(self.cost(fold.result));
        self.locals.pop();
        let size = self.size(fold.result);
        self.set_size(id, size);
        self.set_entry(id, self.entry(fold.result));
        sum
    }
}

/// The union of no sizes, the neutral element of union.
fn empty_range(is_empty: bool) -> Range {
    Range { min: if is_empty { 0 } else { u64::MAX }, max: 0 }
}

fn is_scalar(t: &Type) -> bool {
    match &t.0 {
        Kind::Bool | Kind::Double | Kind::Duration | Kind::Int | Kind::Timestamp | Kind::Uint => true,
        _ => t.unwrap_optional().is_some_and(is_scalar),
    }
}
