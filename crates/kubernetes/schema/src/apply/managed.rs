//! `metadata.managedFields`: owners of fields, on the wire and in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::fieldpath::Set;
use crate::golang;

/// Longest manager name in bytes.
pub const MAX_MANAGER_LENGTH: usize = 128;

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry of `managedFields` as it is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// `manager`
    pub manager: String,
    /// `operation`
    pub operation: String,
    /// `apiVersion`
    pub api_version: String,
    /// `time`
    pub time: Option<String>,
    /// `fieldsType`
    pub fields_type: String,
    /// `fieldsV1`
    pub fields: Option<Value>,
    /// `subresource`
    pub subresource: String,
}

impl Entry {
    fn read(value: &Value) -> Option<Self> {
        let map = value.as_object()?;
        let text = |name: &str| match map.get(name) {
            None | Some(Value::Null) => Some(String::new()),
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => None,
        };
        let time = match map.get("time") {
            None | Some(Value::Null) => None,
            Some(Value::String(time)) => Some(time.parse::<Timestamp>().ok().map(|_| time.clone())?),
            Some(_) => return None,
        };
        Some(Self {
            manager: text("manager")?,
            operation: text("operation")?,
            api_version: text("apiVersion")?,
            time,
            fields_type: text("fieldsType")?,
            fields: map.get("fieldsV1").filter(|v| !v.is_null()).cloned(),
            subresource: text("subresource")?,
        })
    }

    fn write(self) -> Value {
        let mut map = Map::new();
        for (name, text) in [
            ("manager", self.manager),
            ("operation", self.operation),
            ("apiVersion", self.api_version),
            ("fieldsType", self.fields_type),
            ("subresource", self.subresource),
        ] {
            if !text.is_empty() {
                map.insert(name.to_owned(), Value::String(text));
            }
        }
        map.extend(self.time.map(|time| ("time".to_owned(), Value::String(time))));
        map.extend(self.fields.map(|fields| ("fieldsV1".to_owned(), fields)));
        Value::Object(map)
    }
}

/// The entries of an object. `None` if there are none or one cannot be decoded.
pub fn entries(object: &Value) -> Option<Vec<Entry>> {
    object.get("metadata")?.get("managedFields")?.as_array()?.iter().map(Entry::read).collect()
}

/// Removes the entries from an object.
pub fn clear(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Identity of a manager. Ordered by upstream's text form, which decides between entries of the same second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagerId {
    text: String,
    /// The manager's name.
    pub name: String,
    /// How it wrote.
    pub operation: Operation,
    /// API version it wrote in; empty for appliers, which are one manager across versions.
    pub api_version: String,
    /// Subresource it wrote through, or empty.
    pub subresource: String,
}

impl ManagerId {
    /// An identity. An empty name becomes `unknown`.
    pub fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        let mut text = String::from("{");
        for (key, value) in [
            ("manager", name),
            ("operation", operation.as_str()),
            ("apiVersion", api_version),
            ("subresource", subresource),
        ] {
            if !value.is_empty() {
                if text.len() > 1 {
                    text.push(',');
                }
                text.extend(["\"", key, "\":"]);
                // Names seldom have anything to escape, and every write comes by here.
                let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
                match value.bytes().all(plain) {
                    true => text.extend(["\"", value, "\""]),
                    false => text.push_str(&json!(value).to_string()),
                }
            }
        }
        text.push('}');
        Self {
            text,
            name: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The manager in a conflict message: `"kubectl" with subresource "scale" using apps/v1`.
    pub fn describe(&self) -> String {
        let mut out = golang::quote(&self.name);
        if !self.subresource.is_empty() {
            out.push_str(" with subresource ");
            out.push_str(&golang::quote(&self.subresource));
        }
        if self.operation == Operation::Update {
            out.push_str(" using ");
            out.push_str(&self.api_version);
        }
        out
    }
}

/// The fields that a manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// Paths of the fields.
    pub set: Set,
    /// API version whose schema the paths follow.
    pub api_version: String,
    /// Whether they were applied.
    pub applied: bool,
}

/// All owners of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Managed {
    /// Owned fields by manager.
    pub fields: BTreeMap<ManagerId, Owned>,
    /// Time of the last change by each manager.
    pub times: BTreeMap<ManagerId, String>,
}

impl Managed {
    /// Decodes the owners.
    ///
    /// # Errors
    /// Upstream's text about the invalid entry.
    pub fn decode(entries: &[Entry]) -> Result<Self, String> {
        let mut managed = Self::default();
        for (i, entry) in entries.iter().enumerate() {
            let operation = match entry.operation.as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            if entry.api_version.is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match entry.fields_type.as_str() {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {} in managed fields entry {i}",
                        golang::quote(other)
                    ));
                }
            }
            let set = match &entry.fields {
                Some(fields) => Set::from_fields_v1(fields)
                    .map_err(|e| format!("error decoding versioned set from {i}: error decoding set: {e}"))?,
                None => Set::new(),
            };
            let id = ManagerId::new(&entry.manager, operation, &entry.api_version, &entry.subresource);
            match &entry.time {
                Some(time) => managed.times.insert(id.clone(), time.clone()),
                None => managed.times.remove(&id),
            };
            let applied = operation == Operation::Apply;
            managed.fields.insert(id, Owned { set, api_version: entry.api_version.clone(), applied });
        }
        Ok(managed)
    }

    /// Writes the owners to an object, in upstream's order: appliers first, then by time and name.
    pub fn encode(self, object: &mut Value) {
        let Self { fields, mut times } = self;
        let mut entries: Vec<Entry> = fields
            .into_iter()
            .map(|(id, owned)| Entry {
                time: times.remove(&id),
                manager: id.name,
                operation: id.operation.as_str().to_owned(),
                api_version: owned.api_version,
                fields_type: "FieldsV1".to_owned(),
                fields: Some(owned.set.to_fields_v1()),
                subresource: id.subresource,
            })
            .collect();
        if entries.is_empty() {
            return clear(object);
        }
        entries.sort_by_cached_key(|e| {
            let time = seconds(e.time.as_deref());
            (e.operation.clone(), time, e.manager.clone(), e.api_version.clone(), e.subresource.clone())
        });
        let entries: Vec<Value> = entries.into_iter().map(Entry::write).collect();
        if let Some(object) = object.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".to_owned(), Value::Array(entries));
            }
        }
    }
}

/// Seconds since the epoch of a time, 0 for none.
pub(super) fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|time| time.parse::<Timestamp>().ok()).map_or(0, Timestamp::as_second)
}

/// Whether the entries of a request reset all owners: an empty list or one empty entry.
pub(super) fn is_reset(entries: Option<&[Entry]>) -> bool {
    match entries {
        None => false,
        Some([]) => true,
        Some([one]) => *one == Entry::default(),
        Some(_) => false,
    }
}

/// The manager name of a request: its `fieldManager`, or the user agent up to the first slash, without unprintable
/// characters and truncated to the allowed length.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let product = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in product.chars().filter(|c| golang::is_print(*c)) {
        if name.len() + c.len_utf8() > MAX_MANAGER_LENGTH {
            break;
        }
        name.push(c);
    }
    name
}
