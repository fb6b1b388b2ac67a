//! JSON to protobuf, in the layout of Go's generated code: fields by number, non-pointer values always present, map
//! keys sorted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::wire::{put_bytes, put_double, put_integer, put_length};
use crate::table::{Expr, Shape, Special, Table, TypeId};
use crate::time::{self, Layout};

pub(super) fn envelope_start(out: &mut Vec<u8>, api_version: &str, kind: &str, length: usize) {
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, api_version.as_bytes());
    put_bytes(&mut meta, 2, kind.as_bytes());
    put_bytes(out, 1, &meta);
    put_length(out, 2, length);
}

pub(super) fn message(
    table: &Table,
    id: TypeId,
    object: &Map<String, Value>,
    out: &mut Vec<u8>,
) -> Option<()> {
    for field in table.get(id).wire_fields() {
        if let (true, Expr::Named(inner)) = (field.inline, &field.expr) {
            let mut nested = Vec::new();
            message(table, *inner, object, &mut nested)?;
            put_bytes(out, field.number, &nested);
            continue;
        }
        let value = object.get(field.json).unwrap_or(&Value::Null);
        match table.resolve_wire(&field.expr) {
            Expr::List(item) => {
                for entry in value.as_array().into_iter().flatten() {
                    put(table, item, field.number, entry, out)?;
                }
            }
            Expr::Map(_, item) => {
                for (key, entry) in value.as_object().into_iter().flatten() {
                    let mut nested = Vec::new();
                    put_bytes(&mut nested, 1, key.as_bytes());
                    put(table, item, 2, entry, &mut nested)?;
                    put_bytes(out, field.number, &nested);
                }
            }
            Expr::Pointer(_) | Expr::Bytes if value.is_null() => {}
            expr => put(table, expr, field.number, value, out)?,
        }
    }
    Some(())
}

fn put(table: &Table, expr: &Expr, number: u32, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match table.resolve_wire(expr) {
        Expr::Pointer(inner) => put(table, inner, number, value, out)?,
        Expr::Bool => put_integer(out, number, u64::from(value.as_bool().unwrap_or(false))),
        Expr::Int32 | Expr::Int64 => {
            let integer = if value.is_null() { 0 } else { value.as_i64()? };
            // Negative numbers are sign-extended to 64 bits.
            put_integer(out, number, integer as u64);
        }
        Expr::Float64 => put_double(out, number, value.as_f64().unwrap_or(0.0)),
        Expr::String => {
            let text = if value.is_null() { "" } else { value.as_str()? };
            put_bytes(out, number, text.as_bytes());
        }
        Expr::Bytes => {
            let text = if value.is_null() { "" } else { value.as_str()? };
            put_bytes(out, number, &STANDARD.decode(text).ok()?);
        }
        Expr::Named(id) => {
            let mut nested = Vec::new();
            named(table, *id, value, &mut nested)?;
            put_bytes(out, number, &nested);
        }
        Expr::List(_) | Expr::Map(..) | Expr::Any => return None,
    }
    Some(())
}

fn named(table: &Table, id: TypeId, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    let empty = Map::new();
    match &table.get(id).shape {
        Shape::Struct => {
            let object = if value.is_null() { &empty } else { value.as_object()? };
            message(table, id, object, out)
        }
        Shape::Alias { under, .. } => {
            let Expr::List(item) = under else { return None };
            for entry in value.as_array().into_iter().flatten() {
                put(table, item, 1, entry, out)?;
            }
            Some(())
        }
        Shape::Special(special) => self::special(table, *special, id, value, out),
    }
}

fn special(table: &Table, special: Special, id: TypeId, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match special {
        Special::Time | Special::MicroTime => {
            let Some(text) = value.as_str() else { return Some(()) };
            let layout = if special == Special::Time { Layout::Seconds } else { Layout::Micros };
            let moment = time::parse(text, layout).ok()?;
            put_integer(out, 1, moment.seconds as u64);
            put_integer(out, 2, if layout == Layout::Micros { u64::from(moment.nanos) } else { 0 });
        }
        Special::Quantity => put_bytes(out, 1, value.as_str().unwrap_or("0").as_bytes()),
        Special::IntOrString => {
            let text = value.as_str();
            put_integer(out, 1, u64::from(text.is_some()));
            put_integer(out, 2, value.as_i64().unwrap_or(0) as u64);
            put_bytes(out, 3, text.unwrap_or("").as_bytes());
        }
        Special::RawExtension | Special::FieldsV1 | Special::Json => {
            if !value.is_null() || special == Special::Json {
                put_bytes(out, 1, value.to_string().as_bytes());
            }
        }
        Special::Unknown => return None,
        Special::SchemaOrArray | Special::SchemaOrBool | Special::SchemaOrStringArray => {
            let mut fields = Map::new();
            match value {
                Value::Bool(_) => fields.insert("Allows".to_owned(), value.clone()),
                Value::Array(_) if special == Special::SchemaOrArray => {
                    fields.insert("JSONSchemas".to_owned(), value.clone())
                }
                Value::Array(_) => fields.insert("Property".to_owned(), value.clone()),
                Value::Object(_) => {
                    // Upstream also writes whether a schema is allowed.
                    fields.insert("Allows".to_owned(), Value::Bool(true));
                    fields.insert("Schema".to_owned(), value.clone())
                }
                _ => None,
            };
            message(table, id, &fields, out)?;
        }
    }
    Some(())
}
