//! The decoder: one visitor per value, by its type in the table.

use std::collections::HashSet;
use std::fmt;

use capstan_schema::bounded::{Texts, cut};
use capstan_schema::golang;
use capstan_schema::memory::{self, Counted, MemoryBudget};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

use super::{Words, base64_text};
use crate::quantity::Quantity;
use crate::table::{Expr, Shape, Special, Table, TypeId};
use crate::time::{self, Layout};
use crate::zero;

/// The actual type of a mismatched value.
struct Found {
    /// Name in Go's JSON decoder.
    json: String,
    /// Kind of the Go value in a map.
    kind: &'static str,
}

impl Found {
    fn bool() -> Self {
        Self { json: "bool".to_owned(), kind: "bool" }
    }

    fn string() -> Self {
        Self { json: "string".to_owned(), kind: "string" }
    }

    fn array() -> Self {
        Self { json: "array".to_owned(), kind: "slice" }
    }

    fn object() -> Self {
        Self { json: "object".to_owned(), kind: "map" }
    }

    fn number(number: &Number, json: String) -> Self {
        Self { json, kind: if number.is_f64() { "float64" } else { "int64" } }
    }
}

/// State of the decoder.
#[derive(Debug, Default)]
pub(super) struct Context {
    words: Words,
    /// The first error, or the one that ended decoding.
    pub(super) error: Option<String>,
    pub(super) strict: Texts,
    /// Remaining memory budget of the decoded object.
    pub(super) budget: MemoryBudget,
    seen: HashSet<String>,
    /// Path of JSON names with indexes, for strict errors.
    path: String,
    /// JSON names from the root, without indexes and map keys, for type errors.
    stack: Vec<&'static str>,
    /// Innermost struct.
    owner: &'static str,
    /// Inside of a type with its own decoder: no strict errors, and the owner stays.
    nested: usize,
}

impl Context {
    pub(super) fn new(words: Words) -> Self {
        Self { words, ..Self::default() }
    }

    fn mismatch(&self, found: &str, go_type: &str) -> String {
        if self.stack.is_empty() || self.words == Words::Converter {
            return format!("json: cannot unmarshal {found} into Go value of type {go_type}");
        }
        let (owner, field) = (self.owner, self.stack.join("."));
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{field} of type {go_type}")
    }

    fn object_to(&mut self, what: &str, key: &str) {
        if self.nested > 0 {
            return;
        }
        if self.strict.is_full() {
            self.strict.push(what);
            return;
        }
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = cut(format_args!("{}{dot}{key}", self.path), Texts::MAX_ENTRY);
        let message = format!("{what} {}", golang::quote(&path));
        if self.seen.insert(message.clone()) {
            self.strict.push(message);
        }
    }

    /// Charges the memory of a decoded value to the budget.
    fn spend<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        self.budget.spend(bytes).map_err(E::custom)
    }
}

/// Decodes one value of a type. `None` is Go's nil.
pub(super) struct Seed<'a, 'c> {
    pub(super) table: &'static Table,
    pub(super) expr: &'a Expr,
    pub(super) context: &'c mut Context,
}

impl Seed<'_, '_> {
    /// The type without pointers and aliases.
    fn shape(&self) -> &Expr {
        let mut expr = self.table.resolve(self.expr);
        while let Expr::Pointer(inner) = expr {
            expr = self.table.resolve(inner);
        }
        expr
    }

    fn go_name(&self) -> String {
        let mut expr = self.expr;
        while let Expr::Pointer(inner) = expr {
            expr = inner;
        }
        self.table.go_name(expr)
    }

    fn special(&self) -> Option<Special> {
        match self.shape() {
            Expr::Named(id) => match self.table.get(*id).shape {
                Shape::Special(special) => Some(special),
                _ => None,
            },
            _ => None,
        }
    }

    fn mismatch<T>(self, found: &Found) -> Option<T> {
        if self.context.error.is_none() {
            let message = match (self.context.words, self.special()) {
                (_, Some(Special::Time | Special::MicroTime)) => self.context.mismatch(&found.json, "string"),
                (_, Some(Special::IntOrString)) => self.context.mismatch(&found.json, "int32"),
                (Words::Converter, None) => self.unconverted(found.kind),
                _ => self.context.mismatch(&found.json, &self.go_name()),
            };
            self.context.error = Some(message);
        }
        None
    }

    /// The error of Go's converter from maps. It tries only conversions that Go has: integers to strings, as code
    /// points.
    fn unconverted(&self, found: &'static str) -> String {
        let (kind, convertible) = match self.shape() {
            Expr::Map(..) => return format!("cannot restore map from {found}"),
            Expr::List(_) | Expr::Bytes => return format!("cannot restore slice from {found}"),
            Expr::Named(_) => return format!("cannot restore struct from: {found}"),
            Expr::String => ("string", found == "int64"),
            // Upstream wraps an integer that is too large; here it is rejected.
            Expr::Int32 => ("int32", found == "float64" || found == "int64"),
            Expr::Int64 => ("int64", found == "float64"),
            Expr::Float64 => ("float64", false),
            Expr::Bool => ("bool", false),
            Expr::Any | Expr::Pointer(_) => ("interface", false),
        };
        if convertible {
            format!("cannot convert {found} to {}", self.go_name())
        } else {
            format!("unrecognized type: {kind}")
        }
    }

    fn number<E: serde::de::Error>(self, number: Number) -> Result<Option<Value>, E> {
        let found = || Found::number(&number, format!("number {number}"));
        let plain = || Found::number(&number, "number".to_owned());
        match self.shape() {
            Expr::Int64 if number.is_i64() => Ok(Some(Value::Number(number))),
            Expr::Int32 if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
                Ok(Some(Value::Number(number)))
            }
            Expr::Int64 | Expr::Int32 => Ok(self.mismatch(&found())),
            Expr::Float64 => Ok(Some(zero::float(number.as_f64().unwrap_or_default()))),
            Expr::Any => Ok(Some(Value::Number(number))),
            _ => match self.special() {
                Some(Special::IntOrString) => match number.as_i64().filter(|n| i32::try_from(*n).is_ok()) {
                    Some(n) => Ok(Some(json!(n))),
                    None => {
                        self.mismatch::<()>(&found());
                        Err(E::custom("stopped"))
                    }
                },
                Some(Special::Json | Special::RawExtension | Special::FieldsV1) => {
                    Ok(Some(Value::Number(number)))
                }
                Some(Special::SchemaOrArray | Special::SchemaOrStringArray) => Ok(None),
                Some(_) => self.refuse(&plain()),
                None => Ok(self.mismatch(&plain())),
            },
        }
    }

    /// Types with their own decoder end decoding with their own error.
    fn refuse<E: serde::de::Error>(self, found: &Found) -> Result<Option<Value>, E> {
        match self.special() {
            Some(Special::SchemaOrBool) => {
                self.context.error = Some("boolean or JSON schema expected".to_owned());
            }
            _ => {
                self.mismatch::<()>(found);
            }
        }
        Err(E::custom("stopped"))
    }

    fn stop<E: serde::de::Error>(self, message: String) -> Result<Option<Value>, E> {
        self.context.error = Some(message);
        Err(E::custom("stopped"))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.special() {
            // The text of a number matters: 1e3 is not 1000.
            Some(Special::Quantity) => {
                let raw = Box::<RawValue>::deserialize(deserializer)?;
                let text = raw.get().trim();
                if text == "null" {
                    return Ok(None);
                }
                let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
                match Quantity::parse(text.trim()) {
                    Ok(quantity) => Ok(Some(Value::String(quantity.to_string()))),
                    Err(error) => self.stop(error.to_string()),
                }
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
        match (self.shape(), self.special()) {
            (Expr::Bool | Expr::Any, _)
            | (_, Some(Special::Json | Special::RawExtension | Special::FieldsV1 | Special::SchemaOrBool)) => {
                Ok(Some(Value::Bool(value)))
            }
            (_, Some(Special::SchemaOrArray | Special::SchemaOrStringArray)) => Ok(None),
            (_, Some(_)) => self.refuse(&Found::bool()),
            _ => Ok(self.mismatch(&Found::bool())),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
        self.number(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        self.number(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
        match Number::from_f64(value) {
            Some(number) => self.number(number),
            None => Ok(self.mismatch(&Found { json: "number".to_owned(), kind: "float64" })),
        }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Self::Value, E> {
        self.context.spend(memory::text(&value))?;
        match (self.shape(), self.special()) {
            (Expr::String | Expr::Any, _)
            | (_, Some(Special::Json | Special::RawExtension | Special::FieldsV1 | Special::IntOrString)) => {
                Ok(Some(Value::String(value)))
            }
            (Expr::Bytes, _) => match base64_text::canonical(&value) {
                Ok(text) => Ok(Some(Value::String(text))),
                Err(offset) => {
                    let prefix = match self.context.words {
                        Words::Decoder => "",
                        Words::Converter => "error decoding from json: ",
                    };
                    let message = format!("{prefix}illegal base64 data at input byte {offset}");
                    self.context.error.get_or_insert(message);
                    Ok(None)
                }
            },
            (_, Some(special @ (Special::Time | Special::MicroTime))) => {
                let layout = if special == Special::Time { Layout::Seconds } else { Layout::Micros };
                match time::canonical(&value, layout) {
                    Ok(text) => Ok(text.map(Value::String)),
                    Err(message) => self.stop(message),
                }
            }
            (_, Some(Special::SchemaOrArray | Special::SchemaOrStringArray)) => Ok(None),
            (_, Some(_)) => self.refuse(&Found::string()),
            _ => Ok(self.mismatch(&Found::string())),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let item = match (self.shape(), self.special()) {
            (Expr::List(item), _) => (**item).clone(),
            (_, Some(special @ (Special::SchemaOrArray | Special::SchemaOrStringArray))) => {
                return self.schema_list(special, list);
            }
            (Expr::Any, _) | (_, Some(Special::Json | Special::RawExtension | Special::FieldsV1)) => {
                return Counted(&self.context.budget).visit_seq(list).map(Some);
            }
            (_, special) => {
                if special.is_some() {
                    return self.refuse(&Found::array());
                }
                while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                return Ok(self.mismatch(&Found::array()));
            }
        };
        let mut items = Vec::new();
        loop {
            let length = self.context.path.len();
            self.context.path.push_str(&format!("[{}]", items.len()));
            let seed = Seed { table: self.table, expr: &item, context: self.context };
            let next = list.next_element_seed(seed)?;
            self.context.path.truncate(length);
            let value = match next {
                Some(Some(value)) => value,
                Some(None) => {
                    let zero = zero::zero(self.table, &item);
                    self.context.spend(memory::tree(&zero))?;
                    zero
                }
                None => break,
            };
            self.context.spend(memory::list_entry(items.len()))?;
            items.push(value);
        }
        if items.is_empty() && self.lists_owners(&item) {
            // The one list whose emptiness has a meaning: all field owners are reset, as by one empty entry.
            return Ok(Some(json!([{}])));
        }
        Ok((!items.is_empty()).then_some(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        match (self.shape().clone(), self.special()) {
            (Expr::Map(_, item), _) => self.entries(&item, object),
            (Expr::Named(id), None) => {
                let mut out = Map::new();
                self.fields(id, &mut object, &mut out)?;
                Ok(Some(Value::Object(out)))
            }
            (_, Some(Special::SchemaOrArray | Special::SchemaOrBool | Special::SchemaOrStringArray)) => {
                self.schema(object)
            }
            (Expr::Any, _) | (_, Some(Special::Json | Special::RawExtension | Special::FieldsV1)) => {
                Counted(&self.context.budget).visit_map(object).map(Some)
            }
            (_, special) => {
                if special.is_some() {
                    return self.refuse(&Found::object());
                }
                while object.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
                Ok(self.mismatch(&Found::object()))
            }
        }
    }
}

impl Seed<'_, '_> {
    /// Whether these are the items of `metadata.managedFields`.
    fn lists_owners(&self, item: &Expr) -> bool {
        matches!(item, Expr::Named(id) if self.table.get(*id).short_name() == "ManagedFieldsEntry")
    }

    fn entries<'de, A: MapAccess<'de>>(self, item: &Expr, mut object: A) -> Result<Option<Value>, A::Error> {
        let mut out = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            if out.contains_key(&key) {
                self.context.object_to("duplicate field", &key);
            }
            let length = enter(&mut self.context.path, &key);
            let value =
                object.next_value_seed(Seed { table: self.table, expr: item, context: self.context })?;
            self.context.path.truncate(length);
            let value = match (value, self.table.resolve(item)) {
                (Some(value), _) => value,
                (None, Expr::Bytes) => json!(""),
                (None, _) => {
                    let zero = zero::zero(self.table, item);
                    self.context.spend(memory::tree(&zero))?;
                    zero
                }
            };
            self.context.spend(memory::map_entry(out.len(), &key))?;
            out.insert(key, value);
        }
        Ok((!out.is_empty()).then_some(Value::Object(out)))
    }

    fn fields<'de, A: MapAccess<'de>>(
        self,
        id: TypeId,
        object: &mut A,
        out: &mut Map<String, Value>,
    ) -> Result<(), A::Error> {
        let outer = self.context.owner;
        let mut seen: Vec<&'static str> = Vec::new();
        while let Some(key) = object.next_key::<String>()? {
            let Some((through, field)) = self.table.locate(id, &key) else {
                self.context.object_to("unknown field", &key);
                object.next_value::<serde::de::IgnoredAny>()?;
                continue;
            };
            if seen.contains(&field.json) {
                self.context.object_to("duplicate field", &key);
            } else {
                seen.push(field.json);
            }
            let length = enter(&mut self.context.path, field.json);
            let depth = self.context.stack.len();
            self.context.stack.extend(through);
            self.context.stack.push(field.json);
            if self.context.nested == 0 {
                self.context.owner = self.table.get(id).short_name();
            }
            let value = object.next_value_seed(Seed {
                table: self.table,
                expr: &field.expr,
                context: self.context,
            })?;
            self.context.owner = outer;
            self.context.stack.truncate(depth);
            self.context.path.truncate(length);
            match value {
                Some(value) => {
                    self.context.spend(memory::map_entry(out.len(), field.json))?;
                    out.insert(field.json.to_owned(), value);
                }
                None => _ = out.remove(field.json),
            }
        }
        self.context.spend(zero::complete(self.table, id, out))
    }

    /// A schema inside of `JSONSchemaPropsOr…`.
    fn schema<'de, A: MapAccess<'de>>(self, object: A) -> Result<Option<Value>, A::Error> {
        let Some(id) = self.table.find("apiextensions/v1.JSONSchemaProps") else { return Ok(None) };
        self.context.nested += 1;
        let expr = Expr::Named(id);
        let seed = Seed { table: self.table, expr: &expr, context: self.context };
        let out = seed.visit_map(object);
        self.context.nested -= 1;
        out
    }

    fn schema_list<'de, A: SeqAccess<'de>>(
        self,
        special: Special,
        list: A,
    ) -> Result<Option<Value>, A::Error> {
        let item = match special {
            Special::SchemaOrStringArray => Expr::String,
            _ => self.table.find("apiextensions/v1.JSONSchemaProps").map_or(Expr::Any, Expr::Named),
        };
        self.context.nested += 1;
        let expr = Expr::List(Box::new(item));
        let seed = Seed { table: self.table, expr: &expr, context: self.context };
        let out = seed.visit_seq(list);
        self.context.nested -= 1;
        out
    }
}

/// Extends a dotted path and returns the old length.
fn enter(path: &mut String, key: &str) -> usize {
    let length = path.len();
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
    length
}
