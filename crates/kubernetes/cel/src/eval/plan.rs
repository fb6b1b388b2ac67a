//! A checked expression as executable steps: names resolved to slots, constants folded, patterns compiled.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;

use super::meter::Meter;
use crate::check::{Checked, Reference};
use crate::functions::Function;
use crate::library::regex::{self as patterns, RegexFunction};
use crate::syntax::ACCUMULATOR;
use crate::syntax::ast::{Comprehension, Expr, ExprId, Literal};
use crate::types::Kind;
use crate::value::{Key, List, Map, OwnedMap, Text, Value};

/// A step and what it takes.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Value<'static>),
    Attribute(Box<Attribute>),
    And([Box<Node>; 2]),
    Or([Box<Node>; 2]),
    Equal {
        sides: [Box<Node>; 2],
        negated: bool,
    },
    NotStrictlyFalse(Box<Node>),
    Call(Box<Call>),
    /// `x in [constants]`
    InConstants {
        value: Box<Node>,
        constants: BTreeSet<Key<'static>>,
    },
    OptionalOr {
        sides: [Box<Node>; 2],
        unwrap: bool,
    },
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    /// An object of a patch.
    Construct {
        name: Arc<str>,
        fields: Vec<(Arc<str>, Node, bool)>,
    },
    Fold(Box<Fold>),
    /// A step of a fold that extends its own accumulator in place.
    Accumulate(Box<Accumulate>),
}

/// A value and the fields and indices selected from it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Only tests whether the last qualifier is present.
    pub(crate) test_only: bool,
}

#[derive(Debug)]
pub(crate) enum Root {
    /// A declared variable, by its index among those that the program uses.
    Variable(usize),
    /// A variable of a comprehension.
    Slot(usize),
    Node(Node),
    Conditional {
        condition: Node,
        truthy: Box<Attribute>,
        falsy: Box<Attribute>,
    },
}

#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum QualifierKey {
    Constant(Value<'static>),
    Attribute(Box<Attribute>),
    Node(Box<Node>),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static Function,
    /// The only matching overload, if the checker could determine it.
    pub(crate) overload: Option<usize>,
    pub(crate) args: Vec<Node>,
    pub(crate) regex: Option<(RegexFunction, Arc<Regex>)>,
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) accu: usize,
    pub(crate) var: usize,
    pub(crate) var2: Option<usize>,
    pub(crate) init: Node,
    /// `None` if it is always true.
    pub(crate) condition: Option<Node>,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

#[derive(Debug)]
pub(crate) enum Accumulate {
    Append { slot: usize, addend: Node },
    Insert { slot: usize, args: Vec<Node> },
}

/// The steps of a program and the slots they need.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    pub(crate) variables: Vec<Arc<str>>,
    pub(crate) slots: usize,
}

/// Plans a checked expression. The error describes a constant that cannot be computed.
pub(crate) fn plan(checked: &Checked) -> Result<Plan, String> {
    let mut planner = Planner { checked, variables: Vec::new(), scope: Vec::new(), slots: 0 };
    let root = planner.node(checked.ast.root)?;
    Ok(Plan { root, variables: planner.variables, slots: planner.slots })
}

struct Planner<'c> {
    checked: &'c Checked,
    variables: Vec<Arc<str>>,
    /// Comprehension variables. The index of a name is its slot.
    scope: Vec<Arc<str>>,
    slots: usize,
}

impl Node {
    /// The attribute that this step evaluates, or one with the step as its root.
    fn into_attribute(self) -> Attribute {
        match self {
            Self::Attribute(attribute) => *attribute,
            node => Attribute { root: Root::Node(node), qualifiers: Vec::new(), test_only: false },
        }
    }
}

fn attribute(root: Root) -> Node {
    Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new(), test_only: false }))
}

impl Planner<'_> {
    fn node(&mut self, id: ExprId) -> Result<Node, String> {
        match self.checked.ast.get(id) {
            Expr::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Expr::Ident(_) => self.name(id),
            Expr::Select { operand, field, test_only } => {
                let mut selected = self.node(*operand)?.into_attribute();
                let key = QualifierKey::Constant(Value::String(Text::Shared(field.clone())));
                selected.qualifiers.push(Qualifier { key, optional: false });
                selected.test_only = *test_only;
                Ok(Node::Attribute(Box::new(selected)))
            }
            Expr::Call { function, target, args } => {
                let parts: Vec<ExprId> = target.iter().chain(args).copied().collect();
                self.call(id, function, &parts)
            }
            Expr::List { elements } => {
                let mut nodes = Vec::with_capacity(elements.len());
                for element in elements {
                    nodes.push((self.node(element.value)?, element.optional));
                }
                Ok(fold_list(nodes))
            }
            Expr::Map { entries } => {
                let mut nodes = Vec::with_capacity(entries.len());
                for entry in entries {
                    nodes.push((self.node(entry.key)?, self.node(entry.value)?, entry.optional));
                }
                Ok(fold_map(nodes))
            }
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::Struct { name, fields } => {
                let name = name.strip_prefix('.').map_or_else(|| name.clone(), Arc::from);
                let mut nodes = Vec::with_capacity(fields.len());
                for field in fields {
                    nodes.push((field.name.clone(), self.node(field.value)?, field.optional));
                }
                Ok(Node::Construct { name, fields: nodes })
            }
            Expr::Unspecified => Err("unsupported expr".to_owned()),
        }
    }

    fn name(&mut self, id: ExprId) -> Result<Node, String> {
        Ok(match self.checked.reference(id) {
            Reference::Type(name) if matches!(&**name, "duration" | "timestamp") => {
                return Err(format!("reference to undefined type: {name}"));
            }
            Reference::Type(name) => Node::Constant(Value::Type(Text::Shared(name.clone()))),
            // cel-go treats every name whose type is a type as a type name.
            Reference::Variable(name) if matches!(self.checked.type_of(id).0, Kind::Type(_)) => {
                return Err(format!("reference to undefined type: {name}"));
            }
            Reference::Variable(name) => match self.scope.iter().rposition(|known| known == name) {
                Some(slot) => attribute(Root::Slot(slot)),
                None => attribute(Root::Variable(self.variable(name))),
            },
            _ => attribute(Root::Variable(usize::MAX)),
        })
    }

    fn variable(&mut self, name: &Arc<str>) -> usize {
        match self.variables.iter().position(|known| known == name) {
            Some(index) => index,
            None => {
                self.variables.push(name.clone());
                self.variables.len() - 1
            }
        }
    }

    fn pair(&mut self, parts: &[ExprId]) -> Result<[Box<Node>; 2], String> {
        Ok([Box::new(self.node(parts[0])?), Box::new(self.node(parts[1])?)])
    }

    fn call(&mut self, id: ExprId, name: &str, parts: &[ExprId]) -> Result<Node, String> {
        match name {
            "_&&_" => return Ok(Node::And(self.pair(parts)?)),
            "_||_" => return Ok(Node::Or(self.pair(parts)?)),
            "_==_" => return Ok(Node::Equal { sides: self.pair(parts)?, negated: false }),
            "_!=_" => return Ok(Node::Equal { sides: self.pair(parts)?, negated: true }),
            "_?_:_" => {
                let condition = self.node(parts[0])?;
                let truthy = Box::new(self.node(parts[1])?.into_attribute());
                let falsy = Box::new(self.node(parts[2])?.into_attribute());
                return Ok(attribute(Root::Conditional { condition, truthy, falsy }));
            }
            "_[_]" => return self.index(parts, false),
            "_[?_]" | "_?._" => return self.index(parts, true),
            "@not_strictly_false" => {
                return Ok(Node::NotStrictlyFalse(Box::new(self.node(parts[0])?)));
            }
            "or" | "orValue" if parts.len() == 2 => {
                return Ok(Node::OptionalOr { sides: self.pair(parts)?, unwrap: name == "orValue" });
            }
            _ => {}
        }
        let Reference::Overloads { function, indices } = self.checked.reference(id) else {
            return Err(format!("no such overload: {name}"));
        };
        let overload = match indices.as_slice() {
            [index] => Some(*index),
            _ => None,
        };
        let mut args = Vec::with_capacity(parts.len());
        for part in parts {
            args.push(self.node(*part)?);
        }
        self.optimize(Call { function, overload, args, regex: None })
    }

    /// Precomputes conversions of constants, membership in constants and constant patterns.
    fn optimize(&self, mut call: Call) -> Result<Node, String> {
        let overload = call.overload.map_or("", |index| call.function.overloads[index].id);
        if overload == "in_list"
            && let Node::Constant(Value::List(list)) = &call.args[1]
            && let Some(constants) = primitive_set(list)
        {
            if constants.is_empty() {
                return Ok(Node::Constant(Value::Bool(false)));
            }
            let value = Box::new(call.args.swap_remove(0));
            return Ok(Node::InConstants { value, constants });
        }
        let converts = matches!(
            call.function.name,
            "bool"
                | "bytes"
                | "double"
                | "duration"
                | "dyn"
                | "int"
                | "string"
                | "timestamp"
                | "type"
                | "uint"
        );
        if converts && let [Node::Constant(value)] = call.args.as_slice() {
            let value = super::run_function(&call, &mut Meter::default(), std::slice::from_ref(value))
                .map_err(|error| error.to_string())?;
            return Ok(Node::Constant(value));
        }
        if let Some(function) = RegexFunction::named(call.function.name)
            && let Some(Node::Constant(Value::String(pattern))) = call.args.get(1)
        {
            call.regex = Some((function, patterns::compile(pattern)?));
        }
        Ok(Node::Call(Box::new(call)))
    }

    fn index(&mut self, parts: &[ExprId], optional: bool) -> Result<Node, String> {
        let mut indexed = self.node(parts[0])?.into_attribute();
        let key = match self.node(parts[1])? {
            Node::Constant(
                value @ (Value::String(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Bool(_)
                | Value::Double(_)),
            ) => QualifierKey::Constant(value),
            Node::Constant(value) => return Err(format!("invalid qualifier type: {}", value.go_type())),
            Node::Attribute(attribute) => QualifierKey::Attribute(attribute),
            node => QualifierKey::Node(Box::new(node)),
        };
        indexed.qualifiers.push(Qualifier { key, optional });
        Ok(Node::Attribute(Box::new(indexed)))
    }

    fn fold(&mut self, fold: &Comprehension) -> Result<Node, String> {
        let init = self.node(fold.init)?;
        let range = self.node(fold.range)?;
        let accu = self.scope.len();
        self.scope.push(fold.accu.clone());
        let var = self.scope.len();
        self.scope.push(fold.var.clone());
        let var2 = fold.var2.as_ref().map(|name| {
            self.scope.push(name.clone());
            self.scope.len() - 1
        });
        self.slots = self.slots.max(self.scope.len());
        let condition = match self.node(fold.condition)? {
            Node::Constant(Value::Bool(true)) => None,
            condition => Some(condition),
        };
        let step = self.step(fold, accu)?;
        self.scope.truncate(accu + 1);
        let result = self.node(fold.result)?;
        self.scope.truncate(accu);
        Ok(Node::Fold(Box::new(Fold { range, accu, var, var2, init, condition, step, result })))
    }

    /// The step of a fold. What macros append to the accumulator is appended in place.
    fn step(&mut self, fold: &Comprehension, slot: usize) -> Result<Node, String> {
        if &*fold.accu != ACCUMULATOR {
            return self.node(fold.step);
        }
        if let Expr::Call { function, target: None, args } = self.checked.ast.get(fold.step)
            && &**function == "_?_:_"
            && let Some(truthy) = self.accumulate(args[1], slot)?
        {
            let condition = self.node(args[0])?;
            let falsy = Box::new(self.node(args[2])?.into_attribute());
            let truthy = Box::new(truthy.into_attribute());
            return Ok(attribute(Root::Conditional { condition, truthy, falsy }));
        }
        match self.accumulate(fold.step, slot)? {
            Some(step) => Ok(step),
            None => self.node(fold.step),
        }
    }

    fn accumulate(&mut self, id: ExprId, slot: usize) -> Result<Option<Node>, String> {
        let Expr::Call { function, target: None, args } = self.checked.ast.get(id) else { return Ok(None) };
        let grows_accumulator = |first: &ExprId| matches!(self.checked.ast.get(*first), Expr::Ident(name) if &**name == ACCUMULATOR);
        match (&**function, args.as_slice()) {
            ("_+_", [first, addend])
                if grows_accumulator(first) && matches!(self.checked.ast.get(*addend), Expr::List { .. }) =>
            {
                let addend = self.node(*addend)?;
                Ok(Some(Node::Accumulate(Box::new(Accumulate::Append { slot, addend }))))
            }
            ("cel.@mapInsert", [first, rest @ ..]) if grows_accumulator(first) => {
                let args = rest.iter().map(|arg| self.node(*arg)).collect::<Result<Vec<_>, _>>()?;
                Ok(Some(Node::Accumulate(Box::new(Accumulate::Insert { slot, args }))))
            }
            _ => Ok(None),
        }
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(i) => Value::Int(*i),
        Literal::Uint(u) => Value::Uint(*u),
        Literal::Double(d) => Value::Double(*d),
        Literal::String(s) => Value::String(Text::Shared(s.clone())),
        Literal::Bytes(b) => Value::Bytes(b.clone()),
    }
}

fn fold_list(nodes: Vec<(Node, bool)>) -> Node {
    let constant = nodes.iter().all(|(node, optional)| matches!(node, Node::Constant(_)) && !optional);
    if !constant {
        return Node::List(nodes);
    }
    let values = nodes
        .into_iter()
        .filter_map(|(node, _)| match node {
            Node::Constant(value) => Some(value),
            _ => None,
        })
        .collect();
    Node::Constant(Value::List(List::owned(values)))
}

fn fold_map(nodes: Vec<(Node, Node, bool)>) -> Node {
    let constant = nodes.iter().all(|(key, value, optional)| {
        matches!(key, Node::Constant(key) if Key::of(key).is_some())
            && matches!(value, Node::Constant(_))
            && !optional
    });
    if !constant {
        return Node::Map(nodes);
    }
    let mut entries = OwnedMap::new();
    for (key, value, _) in nodes {
        if let (Node::Constant(key), Node::Constant(value)) = (key, value)
            && let Some(key) = Key::of(&key)
        {
            entries.insert(key, value);
        }
    }
    Node::Constant(Value::Map(Map::owned(entries)))
}

/// The elements as a set, if all are primitive. A number is included in every type that represents it exactly.
fn primitive_set(list: &List<'static>) -> Option<BTreeSet<Key<'static>>> {
    let mut set = BTreeSet::new();
    for value in list.as_slice()? {
        match value {
            Value::Double(d) => {
                set.extend(crate::value::number::double_to_int_lossless(*d).map(Key::Int));
                set.extend(crate::value::number::double_to_uint_lossless(*d).map(Key::Uint));
            }
            Value::Int(i) => {
                set.extend(Key::of(&Value::Double(*i as f64)));
                set.extend(u64::try_from(*i).ok().map(Key::Uint));
            }
            Value::Uint(u) => {
                set.extend(Key::of(&Value::Double(*u as f64)));
                set.extend(i64::try_from(*u).ok().map(Key::Int));
            }
            Value::Bool(_) | Value::String(_) => {}
            _ => return None,
        }
        set.insert(Key::of(value)?);
    }
    Some(set)
}
