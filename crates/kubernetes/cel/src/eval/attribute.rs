//! Variables, fields and indices.

use super::plan::{Attribute, Qualifier, QualifierKey, Root};
use super::{Evaluated, Evaluator, Slot};
use crate::error::EvalError;
use crate::value::{Value, number};

impl<'p, 'a> Evaluator<'p, 'a> {
    /// Evaluates an attribute as a step of its own, which costs one in addition to its qualifiers.
    pub(super) fn attribute(&mut self, attribute: &'p Attribute) -> Evaluated<'a> {
        let value = self.resolve(attribute);
        if matches!(&value, Err(error) if !error.is_absorbable()) {
            return value;
        }
        // A presence test refunds the unit of its own step.
        match (&attribute.root, attribute.test_only) {
            (Root::Conditional { .. }, true) => self.meter.refund(),
            (Root::Conditional { .. }, false) | (_, true) => {}
            (_, false) => self.meter.charge(1)?,
        }
        if attribute.test_only {
            return match value? {
                Value::Optional(value) => Ok(Value::Bool(value.is_some())),
                value => Ok(value),
            };
        }
        value
    }

    /// The value of an attribute.
    fn resolve(&mut self, attribute: &'p Attribute) -> Evaluated<'a> {
        let root = match &attribute.root {
            Root::Variable(index) => self.variable(*index)?,
            Root::Slot(slot) => self.slot(*slot)?,
            Root::Node(node) => self.node(node)?,
            Root::Conditional { condition, truthy, falsy } => match self.node(condition)? {
                Value::Bool(true) => self.resolve(truthy)?,
                Value::Bool(false) => self.resolve(falsy)?,
                _ => return Err(EvalError::no_such_overload()),
            },
        };
        match root {
            // The content of an optional is plain data, without its declared type.
            Value::Optional(Some(value)) => {
                let value = value.raw();
                self.qualify(value, attribute, true)
            }
            Value::Optional(None) => Ok(Value::Optional(None)),
            value if attribute.qualifiers.is_empty() => Ok(value),
            value => self.qualify(value, attribute, false),
        }
    }

    fn variable(&self, index: usize) -> Evaluated<'a> {
        match self.variables.get(index) {
            Some(Some(value)) => value.clone(),
            _ => {
                let computed = self.plan.variables.get(index).zip(self.computed);
                if let Some(value) = computed.and_then(|(name, computed)| computed.compute(name)) {
                    return value;
                }
                let name = self.plan.variables.get(index).map_or("", |name| name);
                Err(EvalError::new(format!("no such attribute(s): {name}")))
            }
        }
    }

    /// A comprehension variable. An accumulator is computed on first use.
    pub(super) fn slot(&mut self, slot: usize) -> Evaluated<'a> {
        match &self.slots[slot] {
            Slot::Value(value) => value.clone(),
            Slot::Empty => Err(EvalError::new("no such attribute(s)")),
            Slot::Lazy(init) => {
                let init = *init;
                let value = self.node(init);
                if matches!(&value, Err(error) if !error.is_absorbable()) {
                    return value;
                }
                self.slots[slot] = Slot::Value(value.clone());
                value
            }
        }
    }

    fn qualify(
        &mut self,
        mut value: Value<'a>,
        attribute: &'p Attribute,
        mut is_optional: bool,
    ) -> Evaluated<'a> {
        let last = attribute.qualifiers.len().saturating_sub(1);
        for (i, qualifier) in attribute.qualifiers.iter().enumerate() {
            is_optional = is_optional || qualifier.optional;
            let test = attribute.test_only && i == last;
            let found = self.qualified(&value, qualifier, is_optional, is_optional || test)?;
            match found {
                Some(found) if test && !is_optional => {
                    self.meter.charge(1)?;
                    drop(found);
                    return Ok(Value::Bool(true));
                }
                Some(found) => {
                    self.meter.charge(1)?;
                    value = found;
                }
                None if is_optional => return Ok(Value::Optional(None)),
                None => {
                    self.meter.charge(1)?;
                    return Ok(Value::Bool(false));
                }
            }
        }
        Ok(if is_optional { Value::some(value) } else { value })
    }

    /// One field or index; `None` if it is absent and may be.
    fn qualified(
        &mut self,
        value: &Value<'a>,
        qualifier: &'p Qualifier,
        is_optional: bool,
        may_be_absent: bool,
    ) -> Result<Option<Value<'a>>, EvalError> {
        let found = match &qualifier.key {
            QualifierKey::Constant(key) => select(value, key, may_be_absent),
            QualifierKey::Attribute(attribute) => match self.resolve(attribute) {
                Ok(key) => select_dynamic(value, &key, may_be_absent),
                Err(error) => Err(error),
            },
            QualifierKey::Node(node) => match self.node(node) {
                Ok(key) => select_dynamic(value, &key, may_be_absent),
                Err(error) => Err(error),
            },
        };
        match found {
            Err(error) if error.is_absorbable() && !is_optional => {
                self.meter.charge(1)?;
                Err(error)
            }
            found => found,
        }
    }
}

fn select_dynamic<'a>(
    value: &Value<'a>,
    key: &Value<'a>,
    may_be_absent: bool,
) -> Result<Option<Value<'a>>, EvalError> {
    match key {
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => {
            select(value, key, may_be_absent)
        }
        key => Err(EvalError::new(format!("invalid qualifier type: {}", key.go_type()))),
    }
}

fn select<'a>(
    value: &Value<'a>,
    key: &Value<'a>,
    may_be_absent: bool,
) -> Result<Option<Value<'a>>, EvalError> {
    let found = match value {
        Value::Map(map) => map.find(key)?,
        Value::List(list) => {
            let unsupported = || EvalError::new(format!("unsupported index value {key} in list"));
            let index = match key {
                Value::Int(index) => *index,
                Value::Double(double) => number::double_to_int_lossless(*double).ok_or_else(unsupported)?,
                Value::Uint(uint) => i64::try_from(*uint).map_err(|_| unsupported())?,
                key => {
                    let name = key.type_name();
                    return Err(EvalError::new(format!("unsupported index type '{name}' in list")));
                }
            };
            match u64::try_from(index).ok().and_then(|index| list.get(index)) {
                Some(element) => Some(element?),
                None if may_be_absent => None,
                None => return Err(EvalError::new(format!("index out of bounds: {key}"))),
            }
        }
        _ => None,
    };
    match found {
        Some(found) => Ok(Some(found)),
        None if may_be_absent => Ok(None),
        None => Err(EvalError::no_such_key(key)),
    }
}
