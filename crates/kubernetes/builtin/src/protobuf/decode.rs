//! Protobuf to JSON, by the table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_schema::memory::{self, MemoryBudget, TooLarge};
use serde_json::{Map, Value, json};

use super::wire::{Reader, Scalar};
use super::{MAGIC, MAX_DEPTH};
use crate::error::Error;
use crate::quantity::Quantity;
use crate::table::{Expr, Shape, Special, Table, TypeId};
use crate::time::{self, Layout, Moment};
use crate::zero;

/// The envelope (`runtime.Unknown`).
pub(super) struct Envelope<'a> {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) raw: &'a [u8],
}

fn malformed(message: &'static str) -> impl Fn(&'static str) -> Error {
    move |reason| Error::Malformed { message, reason }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fields of a small message with a fixed format.
fn fields<'a>(message: &'static str, bytes: &'a [u8]) -> Result<Vec<(u32, Scalar<'a>)>, Error> {
    let mut reader = Reader::new(bytes);
    let mut out = Vec::new();
    while let Some(field) = reader.field().map_err(malformed(message))? {
        // These messages have a few fields; later ones win, so earlier ones can be dropped.
        if out.len() >= 16 {
            out.remove(0);
        }
        out.push(field);
    }
    Ok(out)
}

pub(super) fn envelope(bytes: &[u8]) -> Result<Envelope<'_>, Error> {
    let mut out = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    for (number, value) in fields("Unknown", bytes)? {
        match (number, value) {
            (1, Scalar::Bytes(meta)) => {
                for (number, value) in fields("TypeMeta", meta)? {
                    match (number, value) {
                        (1, Scalar::Bytes(b)) => out.api_version = text(b),
                        (2, Scalar::Bytes(b)) => out.kind = text(b),
                        _ => {}
                    }
                }
            }
            (2, Scalar::Bytes(raw)) => out.raw = raw,
            _ => {}
        }
    }
    Ok(out)
}

pub(super) struct Decoder<'a> {
    table: &'a Table,
    depth: usize,
    budget: MemoryBudget,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        Self { table, depth: 0, budget: MemoryBudget::default() }
    }

    fn string(&self, text: String) -> Result<Value, Error> {
        self.budget.spend(memory::text(&text))?;
        Ok(Value::String(text))
    }

    /// A struct, with Go's zero values.
    pub(super) fn object(&mut self, id: TypeId, bytes: &[u8]) -> Result<Map<String, Value>, Error> {
        let mut object = Map::new();
        self.merge(id, bytes, &mut object)?;
        self.budget.spend(zero::complete(self.table, id, &mut object))?;
        Ok(object)
    }

    /// Reads fields into an object, without zero values; also used for inlined structs.
    fn merge(&mut self, id: TypeId, bytes: &[u8], object: &mut Map<String, Value>) -> Result<(), Error> {
        let ty = self.table.get(id);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.field().map_err(malformed(ty.name))? {
            let Some(field) = ty.numbered(number) else { continue };
            if field.inline {
                if let (Expr::Named(inner), Scalar::Bytes(bytes)) = (&field.expr, value) {
                    self.merge(*inner, bytes, object)?;
                }
                continue;
            }
            let wrong = malformed(ty.name);
            if !object.contains_key(field.json) {
                self.budget.spend(memory::map_entry(object.len(), field.json))?;
            }
            match self.table.resolve_wire(&field.expr) {
                Expr::List(item) => {
                    let slot = object.entry(field.json).or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(items) = slot {
                        self.items(item, value, items, ty.name)?;
                    }
                }
                Expr::Map(_, item) => {
                    let Scalar::Bytes(bytes) = value else { return Err(wrong("wrong wireType")) };
                    let slot = object.entry(field.json).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(entries) = slot {
                        let (key, value) = self.entry(item, bytes, ty.name)?;
                        self.budget.spend(memory::map_entry(entries.len(), &key))?;
                        entries.insert(key, value);
                    }
                }
                expr => {
                    let value = self.value(expr, value, ty.name)?;
                    object.insert(field.json.to_owned(), value);
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// One item of a repeated field; numbers may be packed.
    fn items(
        &mut self,
        item: &Expr,
        value: Scalar<'_>,
        out: &mut Vec<Value>,
        message: &'static str,
    ) -> Result<(), Error> {
        let number = matches!(self.table.resolve(item), Expr::Int32 | Expr::Int64 | Expr::Bool);
        match value {
            Scalar::Bytes(packed) if number => {
                let mut reader = Reader::new(packed);
                while !reader.is_empty() {
                    self.budget.spend(memory::list_entry(out.len()))?;
                    let number = reader.varint().map_err(malformed(message))?;
                    out.push(self.value(item, Scalar::Varint(number), message)?);
                }
            }
            _ => {
                self.budget.spend(memory::list_entry(out.len()))?;
                out.push(self.value(item, value, message)?);
            }
        }
        Ok(())
    }

    fn entry(&mut self, item: &Expr, bytes: &[u8], message: &'static str) -> Result<(String, Value), Error> {
        let mut key = String::new();
        let mut value = None;
        for (number, field) in fields(message, bytes)? {
            match (number, field) {
                (1, Scalar::Bytes(b)) => key = text(b),
                (2, field) => value = Some(self.value(item, field, message)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None if matches!(self.table.resolve_wire(item), Expr::Bytes) => json!(""),
            None => {
                let zero = zero::zero(self.table, item);
                self.budget.spend(memory::tree(&zero))?;
                zero
            }
        };
        Ok((key, value))
    }

    fn value(&mut self, expr: &Expr, value: Scalar<'_>, message: &'static str) -> Result<Value, Error> {
        let wrong = || Error::Malformed { message, reason: "wrong wireType" };
        match (self.table.resolve_wire(expr), value) {
            (Expr::Pointer(inner), value) => self.value(inner, value, message),
            (Expr::Bool, Scalar::Varint(v)) => Ok(json!(v != 0)),
            // Go keeps the low 32 bits.
            (Expr::Int32, Scalar::Varint(v)) => Ok(json!(v as i32)),
            (Expr::Int64, Scalar::Varint(v)) => Ok(json!(v as i64)),
            (Expr::Float64, Scalar::Fixed64(v)) => Ok(zero::float(f64::from_bits(v))),
            (Expr::String, Scalar::Bytes(b)) => self.string(text(b)),
            (Expr::Bytes, Scalar::Bytes(b)) => self.string(STANDARD.encode(b)),
            (Expr::Named(id), Scalar::Bytes(bytes)) => self.named(*id, bytes),
            _ => Err(wrong()),
        }
    }

    fn named(&mut self, id: TypeId, bytes: &[u8]) -> Result<Value, Error> {
        let ty = self.table.get(id);
        match &ty.shape {
            Shape::Struct => Ok(Value::Object(self.object(id, bytes)?)),
            Shape::Special(special) => self.special(*special, id, bytes),
            // A list wrapped in a message: `repeated items = 1`.
            Shape::Alias { under, .. } => {
                let Expr::List(item) = under else {
                    return Err(Error::Malformed { message: ty.name, reason: "wrong wireType" });
                };
                let mut items = Vec::new();
                let mut reader = Reader::new(bytes);
                while let Some((number, value)) = reader.field().map_err(malformed(ty.name))? {
                    if number == 1 {
                        self.budget.spend(memory::list_entry(items.len()))?;
                        items.push(self.value(item, value, ty.name)?);
                    }
                }
                Ok(Value::Array(items))
            }
        }
    }

    fn special(&mut self, special: Special, id: TypeId, bytes: &[u8]) -> Result<Value, Error> {
        let name = self.table.get(id).name;
        match special {
            Special::Time => timestamp(bytes, Layout::Seconds),
            Special::MicroTime => timestamp(bytes, Layout::Micros),
            Special::Quantity => {
                let mut out = zero::special_zero(special);
                for (number, value) in fields(name, bytes)? {
                    if let (1, Scalar::Bytes(b)) = (number, value) {
                        out = json!(Quantity::parse(&text(b))?.to_string());
                    }
                }
                Ok(out)
            }
            Special::IntOrString => {
                let (mut is_text, mut number, mut words) = (false, 0i32, String::new());
                for field in fields(name, bytes)? {
                    match field {
                        (1, Scalar::Varint(v)) => is_text = v == 1,
                        (2, Scalar::Varint(v)) => number = v as i32,
                        (3, Scalar::Bytes(b)) => words = text(b),
                        _ => {}
                    }
                }
                Ok(if is_text { json!(words) } else { json!(number) })
            }
            Special::RawExtension | Special::FieldsV1 | Special::Json | Special::Unknown => {
                let number = if special == Special::Unknown { 2 } else { 1 };
                self.raw(bytes, number, name)
            }
            Special::SchemaOrArray | Special::SchemaOrBool | Special::SchemaOrStringArray => {
                let mut fields = Map::new();
                self.merge(id, bytes, &mut fields)?;
                Ok(schema_or(special, &mut fields))
            }
        }
    }

    /// Embedded JSON, or an object in another envelope.
    fn raw(&mut self, bytes: &[u8], wanted: u32, name: &'static str) -> Result<Value, Error> {
        let mut raw: &[u8] = &[];
        for field in fields(name, bytes)? {
            if let (number, Scalar::Bytes(b)) = field
                && number == wanted
            {
                raw = b;
            }
        }
        if raw.is_empty() {
            return Ok(Value::Null);
        }
        if let Some(payload) = raw.strip_prefix(&MAGIC) {
            let inner = envelope(payload)?;
            let (group, version) = inner.api_version.split_once('/').unwrap_or(("", &inner.api_version));
            let Some(id) = self.table.kind(group, version, &inner.kind) else {
                return Err(Error::UnknownKind { api_version: inner.api_version, kind: inner.kind });
            };
            let mut object = self.object(id, inner.raw)?;
            object.insert("apiVersion".to_owned(), Value::String(inner.api_version));
            object.insert("kind".to_owned(), Value::String(inner.kind));
            return Ok(Value::Object(object));
        }
        memory::from_slice(raw, &self.budget).map_err(|e| match self.budget.is_exceeded() {
            true => Error::TooLarge(TooLarge),
            false => Error::EmbeddedJson { message: name, reason: e.to_string() },
        })
    }
}

fn timestamp(bytes: &[u8], layout: Layout) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0i64, 0i32);
    for field in fields("Timestamp", bytes)? {
        match field {
            (1, Scalar::Varint(v)) => seconds = v as i64,
            (2, Scalar::Varint(v)) => nanos = v as i32,
            _ => {}
        }
    }
    let nanos = match layout {
        Layout::Seconds => 0,
        Layout::Micros => u32::try_from(nanos).unwrap_or(0).min(999_999_999),
    };
    let moment = Moment { seconds, nanos };
    if moment == time::ZERO {
        return Ok(Value::Null);
    }
    time::format(moment, layout)
        .map(Value::String)
        .ok_or(Error::Malformed { message: "Timestamp", reason: "year outside of range [0,9999]" })
}

/// The JSON of `JSONSchemaPropsOr…`, from its fields.
fn schema_or(special: Special, fields: &mut Map<String, Value>) -> Value {
    for list in ["JSONSchemas", "Property"] {
        if let Some(Value::Array(items)) = fields.get_mut(list)
            && !items.is_empty()
        {
            return Value::Array(std::mem::take(items));
        }
    }
    match (fields.remove("Schema"), fields.remove("Allows")) {
        (Some(schema), _) => schema,
        (None, Some(allows)) => allows,
        (None, None) => zero::special_zero(special),
    }
}
