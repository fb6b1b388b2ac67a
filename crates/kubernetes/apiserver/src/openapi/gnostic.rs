//! OpenAPI v2 as gnostic's protobuf, which kubectl requests. Only encodes what [`super::v2`] produces.

use serde_json::{Map, Value};

pub fn encode(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, &document["swagger"]);
    out.nested(2, |info| {
        info.text(1, &document["info"]["title"]);
        info.text(2, &document["info"]["version"]);
    });
    out.nested(8, |paths| {
        for (path, item) in entries(&document["paths"]) {
            paths.named(2, path, |value| path_item(value, item));
        }
    });
    out.nested(9, |definitions| {
        for (name, definition) in entries(&document["definitions"]) {
            definitions.named(1, name, |value| schema(value, definition));
        }
    });
    for requirement in elements(&document["security"]) {
        out.nested(12, |message| {
            for (name, scopes) in entries(requirement) {
                message.named(1, name, |value| value.texts(1, scopes));
            }
        });
    }
    out.nested(13, |definitions| {
        for (name, definition) in entries(&document["securityDefinitions"]) {
            definitions.named(1, name, |item| {
                item.nested(2, |key| {
                    for (number, field) in (1..).zip(["type", "name", "in", "description"]) {
                        key.text(number, &definition[field]);
                    }
                });
            });
        }
    });
    out.0
}

fn path_item(out: &mut Message, item: &Value) {
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if item[method].is_object() {
            out.nested(number, |message| operation(message, &item[method]));
        }
    }
    parameters(out, 9, &item["parameters"]);
}

fn operation(out: &mut Message, operation: &Value) {
    out.texts(1, &operation["tags"]);
    out.text(3, &operation["description"]);
    out.text(5, &operation["operationId"]);
    out.texts(6, &operation["produces"]);
    out.texts(7, &operation["consumes"]);
    parameters(out, 8, &operation["parameters"]);
    out.nested(9, |responses| {
        for (code, response) in entries(&operation["responses"]) {
            responses.named(1, code, |value| {
                value.nested(1, |message| {
                    message.text(1, &response["description"]);
                    if response["schema"].is_object() {
                        message.nested(2, |item| item.nested(1, |value| schema(value, &response["schema"])));
                    }
                });
            });
        }
    });
    out.texts(10, &operation["schemes"]);
    extensions(out, 13, operation);
}

fn parameters(out: &mut Message, number: u32, list: &Value) {
    for parameter in elements(list) {
        out.nested(number, |item| item.nested(1, |message| one_parameter(message, parameter)));
    }
}

fn one_parameter(out: &mut Message, parameter: &Value) {
    if parameter["in"] == "body" {
        out.nested(1, |body| {
            body.text(1, &parameter["description"]);
            body.text(2, &parameter["name"]);
            body.text(3, &parameter["in"]);
            body.flag(4, &parameter["required"]);
            body.nested(5, |value| schema(value, &parameter["schema"]));
        });
        return;
    }
    let (variant, kind, unique) = if parameter["in"] == "path" { (4, 5, 19) } else { (3, 6, 20) };
    out.nested(2, |message| {
        message.nested(variant, |sub| {
            sub.flag(1, &parameter["required"]);
            sub.text(2, &parameter["in"]);
            sub.text(3, &parameter["description"]);
            sub.text(4, &parameter["name"]);
            sub.text(kind, &parameter["type"]);
            sub.flag(unique, &parameter["uniqueItems"]);
        });
    });
}

fn schema(out: &mut Message, schema_value: &Value) {
    let of = |key: &str| &schema_value[key];
    for (number, key) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description")] {
        out.text(number, of(key));
    }
    for (number, key) in [(6, "multipleOf"), (7, "maximum")] {
        out.double(number, of(key));
    }
    out.flag(8, of("exclusiveMaximum"));
    out.double(9, of("minimum"));
    out.flag(10, of("exclusiveMinimum"));
    for (number, key) in [(11, "maxLength"), (12, "minLength")] {
        out.integer(number, of(key));
    }
    out.text(13, of("pattern"));
    for (number, key) in [(14, "maxItems"), (15, "minItems")] {
        out.integer(number, of(key));
    }
    out.flag(16, of("uniqueItems"));
    for (number, key) in [(17, "maxProperties"), (18, "minProperties")] {
        out.integer(number, of(key));
    }
    out.texts(19, of("required"));
    for value in elements(of("enum")) {
        out.nested(20, |any| any.bytes(2, value.to_string().as_bytes()));
    }
    match of("additionalProperties") {
        Value::Bool(any) => out.nested(21, |item| item.varint_field(2, u64::from(*any))),
        value @ Value::Object(_) => out.nested(21, |item| item.nested(1, |inner| schema(inner, value))),
        _ => {}
    }
    if of("type").is_string() {
        out.nested(22, |item| item.text(1, of("type")));
    }
    if of("items").is_object() {
        out.nested(23, |item| item.nested(1, |inner| schema(inner, of("items"))));
    }
    if of("properties").is_object() {
        out.nested(25, |properties| {
            for (name, property) in entries(of("properties")) {
                properties.named(1, name, |value| schema(value, property));
            }
        });
    }
    extensions(out, 31, schema_value);
}

/// `x-…` keywords. Their values are encoded as YAML text, and JSON is YAML.
fn extensions(out: &mut Message, number: u32, value: &Value) {
    for (name, extension) in entries(value).filter(|(name, _)| name.starts_with("x-")) {
        out.named(number, name, |any| any.bytes(2, extension.to_string().as_bytes()));
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter).map(|(key, value)| (key.as_str(), value))
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A protobuf message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, number: u32, wire_type: u64) {
        self.varint((u64::from(number) << 3) | wire_type);
    }

    fn varint_field(&mut self, number: u32, value: u64) {
        self.key(number, 0);
        self.varint(value);
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.key(number, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, number: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    fn texts(&mut self, number: u32, list: &Value) {
        for value in elements(list) {
            self.bytes(number, value.as_str().unwrap_or("").as_bytes());
        }
    }

    fn flag(&mut self, number: u32, value: &Value) {
        if *value == true {
            self.varint_field(number, 1);
        }
    }

    fn integer(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_i64().filter(|value| *value != 0) {
            self.varint_field(number, value as u64);
        }
    }

    fn double(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
            self.key(number, 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn nested(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(number, &inner.0);
    }

    /// An entry of a map: name and value.
    fn named(&mut self, number: u32, name: &str, write: impl FnOnce(&mut Self)) {
        self.nested(number, |entry| {
            entry.bytes(1, name.as_bytes());
            entry.nested(2, write);
        });
    }
}
