//! Runs a plan and charges the costs of cel-go's cost tracker.
//!
//! A step costs: one for each variable and each field or index (branches of a conditional only for the latter),
//! nothing for constants and logical operators, ten for a list, thirty for a map, and [`crate::cost::actual`] for a
//! call. A call is charged even if it fails, provided that all its arguments were evaluated.

mod attribute;
mod fold;
mod meter;
mod plan;

pub(crate) use meter::Meter;
pub(crate) use plan::{Plan, plan};

use plan::{Call, Node};
use std::sync::Arc;

use crate::cost::actual;
use crate::error::EvalError;
use crate::program::ComputedVariables;
use crate::value::{Key, List, Map, OwnedMap, Text, Value};

type Evaluated<'a> = Result<Value<'a>, EvalError>;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const CONSTRUCT_COST: u64 = 40;

/// A comprehension's variable.
#[derive(Debug)]
pub(super) enum Slot<'p, 'a> {
    Empty,
    /// An accumulator that is not computed yet.
    Lazy(&'p Node),
    Value(Evaluated<'a>),
}

/// The state of one evaluation.
pub(super) struct Evaluator<'p, 'a> {
    pub(super) plan: &'p Plan,
    pub(super) variables: &'p [Option<Evaluated<'a>>],
    pub(super) computed: Option<&'p dyn ComputedVariables<'a>>,
    pub(super) slots: Vec<Slot<'p, 'a>>,
    pub(super) meter: &'p mut Meter,
}

/// Runs a plan with a value for each of its variables.
pub(crate) fn run<'p, 'a>(
    plan: &'p Plan,
    variables: &'p [Option<Evaluated<'a>>],
    computed: Option<&'p dyn ComputedVariables<'a>>,
    meter: &'p mut Meter,
) -> Evaluated<'a> {
    let slots = std::iter::repeat_with(|| Slot::Empty).take(plan.slots).collect();
    Evaluator { plan, variables, computed, slots, meter }.node(&plan.root)
}

impl<'p, 'a> Evaluator<'p, 'a> {
    pub(super) fn node(&mut self, node: &'p Node) -> Evaluated<'a> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::And(sides) => self.logical(sides, false),
            Node::Or(sides) => self.logical(sides, true),
            Node::Equal { sides, negated } => self.equal(sides, *negated),
            Node::NotStrictlyFalse(arg) => {
                let value = self.node(arg);
                self.meter.charge(1)?;
                match value {
                    Ok(Value::Bool(b)) => Ok(Value::Bool(b)),
                    Err(error) if !error.is_absorbable() => Err(error),
                    _ => Ok(Value::Bool(true)),
                }
            }
            Node::Call(call) => self.call(call),
            Node::InConstants { value, constants } => {
                let value = self.node(value)?;
                Ok(Value::Bool(Key::of(&value).is_some_and(|key| constants.contains(&key))))
            }
            Node::OptionalOr { sides, unwrap } => match self.node(&sides[0])? {
                Value::Optional(Some(value)) if *unwrap => Ok((*value).clone()),
                Value::Optional(None) => self.node(&sides[1]),
                other => Ok(other),
            },
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Construct { name, fields } => self.construct(name, fields),
            Node::Fold(fold) => self.fold(fold),
            Node::Accumulate(step) => self.accumulate(step),
        }
    }

    /// `&&` and `||`: the deciding value wins over errors, whichever side it is on.
    fn logical(&mut self, sides: &'p [Box<Node>; 2], deciding: bool) -> Evaluated<'a> {
        let mut first_error = None;
        for side in sides {
            match self.node(side) {
                Ok(Value::Bool(b)) if b == deciding => return Ok(Value::Bool(deciding)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => first_error = first_error.or(Some(EvalError::no_such_overload())),
                Err(error) if !error.is_absorbable() => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    fn equal(&mut self, sides: &'p [Box<Node>; 2], negated: bool) -> Evaluated<'a> {
        let left = self.absorbing(&sides[0])?;
        let right = self.absorbing(&sides[1])?;
        let size = |value: &Evaluated<'a>| value.as_ref().map_or(1, actual::size);
        let cost = match &left {
            Ok(left) if !negated && actual::has_unit_equality(left) => 1,
            _ => actual::traversal(size(&left).min(size(&right))),
        };
        self.meter.charge(cost)?;
        let (left, right) = (left?, right?);
        match left.equals(&right, self.meter) {
            Ok(equal) => Ok(Value::Bool(equal != negated)),
            // `!=` is true if the comparison fails.
            Err(error) if negated && error.is_absorbable() => Ok(Value::Bool(true)),
            Err(error) => Err(error),
        }
    }

    /// A value, or an error that another part of the expression may absorb.
    fn absorbing(&mut self, node: &'p Node) -> Result<Evaluated<'a>, EvalError> {
        match self.node(node) {
            Err(error) if !error.is_absorbable() => Err(error),
            result => Ok(result),
        }
    }

    fn call(&mut self, call: &'p Call) -> Evaluated<'a> {
        let eager = evaluates_all_arguments(call);
        let mut args = Vec::with_capacity(call.args.len());
        let mut failed = None;
        for (i, arg) in call.args.iter().enumerate() {
            match self.absorbing(arg)? {
                Ok(value) => args.push(value),
                Err(error) => {
                    if !eager && i + 1 < call.args.len() {
                        return Err(error);
                    }
                    failed = failed.or(Some(error));
                    args.push(Value::Null);
                }
            }
        }
        if let Some(error) = failed {
            let cost = actual::call_cost(call.function.name, overload_id(call), &args, None, self.meter)?;
            self.meter.charge(cost)?;
            return Err(error);
        }
        if actual::depends_on_result(call.function.name, overload_id(call)) {
            let result = run_function(call, self.meter, &args);
            let cost = actual::call_cost(
                call.function.name,
                overload_id(call),
                &args,
                result.as_ref().ok(),
                self.meter,
            )?;
            self.meter.charge(cost)?;
            return result;
        }
        // Charging first prevents calls beyond the limit from running at all.
        let cost = actual::call_cost(call.function.name, overload_id(call), &args, None, self.meter)?;
        self.meter.charge(cost)?;
        run_function(call, self.meter, &args)
    }

    fn list(&mut self, elements: &'p [(Node, bool)]) -> Evaluated<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements {
            let value = match self.absorbing(element)? {
                Ok(value) => value,
                Err(error) => {
                    self.meter.charge(LIST_COST)?;
                    return Err(error);
                }
            };
            match value {
                Value::Optional(value) if *optional => values.extend(value.map(|value| (*value).clone())),
                value if *optional => {
                    self.meter.charge(LIST_COST)?;
                    return Err(EvalError::new(format!(
                        "cannot initialize optional list element from non-optional value {value}"
                    )));
                }
                value => values.push(value),
            }
        }
        self.meter.charge(LIST_COST)?;
        Ok(Value::List(List::owned(values)))
    }

    fn map(&mut self, entries: &'p [(Node, Node, bool)]) -> Evaluated<'a> {
        let mut map = OwnedMap::new();
        for (key, value, optional) in entries {
            let entry = match self.absorbing(key)? {
                Ok(key) => self.absorbing(value)?.map(|value| (key, value)),
                Err(error) => Err(error),
            };
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.meter.charge(MAP_COST)?;
                    return Err(error);
                }
            };
            let Some(map_key) = Key::of(&key) else {
                return Err(EvalError::new(format!("unsupported key type: {}", key.type_name())));
            };
            match value {
                Value::Optional(Some(value)) if *optional => {
                    map.insert(map_key, (*value).clone());
                }
                Value::Optional(None) if *optional => {
                    map.remove(&map_key);
                }
                value if *optional => {
                    self.meter.charge(MAP_COST)?;
                    return Err(EvalError::new(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {value}"
                    )));
                }
                value => {
                    map.insert(map_key, value);
                }
            }
        }
        self.meter.charge(MAP_COST)?;
        Ok(Value::Map(Map::owned(map)))
    }
}

impl<'p, 'a> Evaluator<'p, 'a> {
    fn construct(&mut self, name: &Arc<str>, fields: &'p [(Arc<str>, Node, bool)]) -> Evaluated<'a> {
        let mut map = OwnedMap::new();
        for (field, value, optional) in fields {
            let value = match self.absorbing(value)? {
                Ok(value) => value,
                Err(error) => {
                    self.meter.charge(CONSTRUCT_COST)?;
                    return Err(error);
                }
            };
            let value = match value {
                Value::Optional(None) if *optional => continue,
                Value::Optional(Some(value)) if *optional => (*value).clone(),
                value if *optional => {
                    self.meter.charge(CONSTRUCT_COST)?;
                    return Err(EvalError::new(format!(
                        "cannot initialize optional entry '{field}' from non-optional value {value}"
                    )));
                }
                value => value,
            };
            map.insert(Key::String(Text::Shared(field.clone())), value);
        }
        self.meter.charge(CONSTRUCT_COST)?;
        Ok(Value::Map(Map::constructed(name.clone(), map)))
    }
}

fn overload_id(call: &Call) -> &'static str {
    call.overload.map_or("", |index| call.function.overloads[index].id)
}

/// Whether all arguments are evaluated even if one fails. That is so for calls of up to two arguments, unless the
/// overload is resolved at run time.
fn evaluates_all_arguments(call: &Call) -> bool {
    call.args.len() <= 2
        && call.function.name != "format"
        && call.regex.is_none()
        && (call.function.shared.is_some() || call.overload.is_some() || call.function.overloads.len() == 1)
}

/// Runs the implementation that matches the arguments.
pub(super) fn run_function<'a>(call: &Call, meter: &mut Meter, args: &[Value<'a>]) -> Evaluated<'a> {
    if let Some((function, regex)) = &call.regex {
        return function.run(meter, regex, args);
    }
    let function = call.function;
    if let Some(shared) = &function.shared {
        return match args.first() {
            Some(first) if (shared.accepts)(first) => (shared.run)(meter, args),
            // These types report an unknown function themselves.
            Some(Value::String(_) | Value::Duration(_) | Value::Timestamp(_)) => {
                Err(EvalError::no_such_overload())
            }
            _ => Err(EvalError::new(format!("no such overload: {}", function.name))),
        };
    }
    if let Some(index) = call.overload
        && let Some(run) = function.overloads[index].run
    {
        if !function.guarded || function.overloads[index].accepts(args) {
            return run(meter, args);
        }
        return Err(unknown_overload(function.name, args));
    }
    for overload in &function.overloads {
        if let Some(run) = overload.run
            && overload.args.len() == args.len()
            && (!function.guarded || overload.accepts(args))
        {
            return run(meter, args);
        }
    }
    Err(unknown_overload(function.name, args))
}

fn unknown_overload(name: &str, args: &[Value<'_>]) -> EvalError {
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    EvalError::new(format!("no such overload: {name}({})", types.join(", ")))
}
