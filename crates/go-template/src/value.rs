//! Values of templates: what Go's `interface{}` is there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A map that `set` changes in place, as Go's are.
pub type Map = Rc<RefCell<BTreeMap<String, Value>>>;

#[derive(Debug, Clone)]
pub enum Value {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    List(Rc<Vec<Value>>),
    Map(Map),
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Self::Nil,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Float(number.as_f64().unwrap_or_default()),
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::from).collect()),
            Json::Object(fields) => {
                Self::map(fields.iter().map(|(key, value)| (key.clone(), Self::from(value))).collect())
            }
        }
    }
}

/// Nesting of values that are printed or written as JSON.
pub const DEEPEST: usize = 100;

impl Value {
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    pub fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    pub fn map(fields: BTreeMap<String, Self>) -> Self {
        Self::Map(Rc::new(RefCell::new(fields)))
    }

    /// Go's truth: not the zero value.
    pub fn holds(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Map(fields) => !fields.borrow().is_empty(),
        }
    }

    /// Name of the kind, as `kindOf` has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
        }
    }

    /// Deep equality.
    pub fn same(&self, other: &Self) -> bool {
        self.same_within(other, DEEPEST)
    }

    fn same_within(&self, other: &Self, depth: usize) -> bool {
        if depth == 0 {
            return false;
        }
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same_within(b, depth - 1))
            }
            (Self::Map(a), Self::Map(b)) => {
                let (a, b) = (a.borrow(), b.borrow());
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && a.same_within(b, depth - 1))
            }
            _ => false,
        }
    }

    /// As JSON; numbers without a fraction are integers.
    pub fn to_json(&self) -> Result<serde_json::Value, String> {
        self.to_json_within(DEEPEST)
    }

    fn to_json_within(&self, depth: usize) -> Result<serde_json::Value, String> {
        use serde_json::Value as Json;
        let depth = depth.checked_sub(1).ok_or("a value is nested too deeply")?;
        Ok(match self {
            Self::Nil => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(number) => (*number).into(),
            Self::Float(number) => json_number(*number),
            Self::Text(text) => Json::String(text.to_string()),
            Self::List(items) => {
                items.iter().map(|item| item.to_json_within(depth)).collect::<Result<_, _>>()?
            }
            Self::Map(fields) => {
                let fields = fields.borrow();
                let fields =
                    fields.iter().map(|(key, value)| Ok((key.clone(), value.to_json_within(depth)?)));
                Json::Object(fields.collect::<Result<_, String>>()?)
            }
        })
    }
}

/// Go writes a float64 without a fraction as an integer.
fn json_number(number: f64) -> serde_json::Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
        let whole = number as i64;
        return whole.into();
    }
    serde_json::Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
}
