//! Comprehensions.

use super::plan::{Accumulate, Fold};
use super::{Evaluated, Evaluator, Slot};
use crate::error::EvalError;
use crate::value::Value;

impl<'p, 'a> Evaluator<'p, 'a> {
    pub(super) fn fold(&mut self, fold: &'p Fold) -> Evaluated<'a> {
        let range = self.node(&fold.range)?;
        self.slots[fold.accu] = Slot::Lazy(&fold.init);
        match (&range, fold.var2) {
            (Value::List(list), None) => {
                for item in list.iter() {
                    self.slots[fold.var] = Slot::Value(item);
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (Value::List(list), Some(var2)) => {
                for (index, item) in list.iter().enumerate() {
                    self.slots[fold.var] = Slot::Value(Ok(Value::Int(index as i64)));
                    self.slots[var2] = Slot::Value(item);
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (Value::Map(map), var2) => {
                for key in map.keys() {
                    if let Some(var2) = var2 {
                        let value = map
                            .find(&key)
                            .and_then(|value| value.ok_or_else(|| EvalError::no_such_key(&key)));
                        self.slots[var2] = Slot::Value(value);
                    }
                    self.slots[fold.var] = Slot::Value(Ok(key));
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (other, None) => {
                let name = other.go_type();
                return Err(EvalError::new(format!("got '{name}', expected iterable type")));
            }
            (other, Some(_)) => {
                let name = other.go_type();
                return Err(EvalError::new(format!("unsupported comprehension range type: {name}")));
            }
        }
        let result = self.node(&fold.result);
        self.slots[fold.accu] = Slot::Empty;
        result
    }

    /// One iteration; false if the condition ends the fold. An error of the step becomes the accumulated value.
    fn iterate(&mut self, fold: &'p Fold) -> Result<bool, EvalError> {
        // An iteration can have no cost, e.g. in `exists_one(x, false)`.
        self.meter.work(1)?;
        if let Some(condition) = &fold.condition
            && let Ok(Value::Bool(false)) = self.absorbing(condition)?
        {
            return Ok(false);
        }
        let value = self.absorbing(&fold.step)?;
        self.slots[fold.accu] = Slot::Value(value);
        Ok(true)
    }

    /// Extends the accumulator in place: nothing else holds it while its step runs.
    pub(super) fn accumulate(&mut self, step: &'p Accumulate) -> Evaluated<'a> {
        match step {
            Accumulate::Append { slot, addend } => {
                let accumulated = self.taken(*slot)?;
                let addend = self.absorbing(addend)?;
                self.meter.charge(1)?;
                let (mut accumulated, addend) = (accumulated?, addend?);
                match (&mut accumulated, addend) {
                    (Value::List(list), Value::List(addend)) => {
                        for item in addend.iter() {
                            if let Err(item) = list.push(item?) {
                                let single = crate::value::List::owned(vec![item]);
                                *list = list.add(&single, self.meter)?;
                            }
                        }
                        Ok(accumulated)
                    }
                    _ => Err(EvalError::no_such_overload()),
                }
            }
            Accumulate::Insert { slot, args } => {
                let accumulated = self.taken(*slot)?;
                let mut accumulated = accumulated?;
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.absorbing(arg)?);
                }
                self.meter.charge(1)?;
                let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
                let Value::Map(map) = accumulated else { return Err(EvalError::no_such_overload()) };
                accumulated = Value::Map(match values.as_slice() {
                    [key, value] => map.insert(key, value.clone())?,
                    [Value::Map(other)] => {
                        let mut map = map;
                        for key in other.keys() {
                            if let Some(value) = other.find(&key)? {
                                map = map.insert(&key, value)?;
                            }
                        }
                        map
                    }
                    _ => return Err(EvalError::no_such_overload()),
                });
                Ok(accumulated)
            }
        }
    }

    /// Takes the accumulator out of its slot. Charged like an attribute.
    fn taken(&mut self, slot: usize) -> Result<Evaluated<'a>, EvalError> {
        let current = self.slot(slot);
        self.slots[slot] = Slot::Empty;
        if let Err(error) = &current
            && !error.is_absorbable()
        {
            return Err(error.clone());
        }
        self.meter.charge(1)?;
        Ok(current)
    }
}
