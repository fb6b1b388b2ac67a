//! Tables (`meta.k8s.io` `Table`) for lists, single objects and watch events, and `PartialObjectMetadata`.
//!
//! The server, not kubectl, decides the columns: custom resources use their `additionalPrinterColumns`, built-in
//! kinds have code in [`builtin`], everything else shows its name and creation time.

mod builtin;
mod column;
mod custom;
mod human;
mod partial;
mod read;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use partial::{check_shape, metadata, metadata_list};

use crate::negotiation::MetaVersion;
use crate::registry::Resource;
use crate::status::Status;

/// `includeObject`: what a table row contains of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Include {
    None,
    /// `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The complete object.
    Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub version: MetaVersion,
    pub include: Include,
}

impl Options {
    /// Parses the `includeObject` query parameter.
    pub fn new(version: MetaVersion, include_object: Option<&str>) -> Result<Self, Status> {
        let include = match include_object.unwrap_or("") {
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            "None" => Include::None,
            other => {
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                     must be 'Metadata', 'Object', 'None', or empty"
                )));
            }
        };
        Ok(Self { version, include })
    }
}

/// Converts objects of one kind to table rows.
#[derive(Debug)]
pub struct Printer {
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Custom(custom::Columns),
    BuiltIn(&'static builtin::Kind),
}

impl Printer {
    pub fn new(resource: &Resource) -> Self {
        let rows = match resource.custom() {
            Some(_) => Rows::Custom(custom::Columns::new(&resource.columns)),
            None => Rows::BuiltIn(builtin::kind(&resource.group, &resource.kind)),
        };
        Self { rows }
    }

    pub fn scale(resource: &Resource) -> Self {
        let rows = match resource.custom() {
            Some(_) => Rows::Custom(custom::Columns::scale()),
            None => Rows::BuiltIn(builtin::kind("autoscaling", "Scale")),
        };
        Self { rows }
    }

    pub fn row(&self, object: &Value, options: &Options, now: Timestamp) -> Value {
        let mut row = Map::new();
        let cells = match &self.rows {
            Rows::Custom(columns) => columns.cells(object, now),
            Rows::BuiltIn(kind) => {
                if let Some(conditions) = (kind.conditions)(object) {
                    row.insert("conditions".into(), conditions);
                }
                (kind.cells)(object, now)
            }
        };
        row.insert("cells".into(), cells.into());
        // The bookmark that ends the initial events keeps its annotation, whatever was requested.
        let carried = match options.include {
            Include::Object => object.clone(),
            Include::Metadata => metadata(object, options.version),
            Include::None if ends_initial_events(object) => metadata(object, options.version),
            Include::None => Value::Null,
        };
        row.insert("object".into(), carried);
        row.into()
    }

    /// A table with rows; `list_metadata` is the `metadata` of their list. Watches send the column definitions with
    /// their first event only.
    pub fn table(&self, list_metadata: Value, rows: Vec<Value>, headers: bool, options: &Options) -> Value {
        let definitions = match &self.rows {
            _ if !headers => Value::Null,
            Rows::Custom(columns) => columns.definitions().to_vec().into(),
            Rows::BuiltIn(kind) => kind.headers.iter().map(|header| header.to_json()).collect(),
        };
        json!({
            "kind": "Table",
            "apiVersion": options.version.api_version(),
            "metadata": list_metadata,
            "columnDefinitions": definitions,
            "rows": rows,
        })
    }

    /// A table of one object, for a get or a watch event.
    pub fn object_table(&self, object: &Value, headers: bool, options: &Options, now: Timestamp) -> Value {
        let mut list_metadata = Map::new();
        if let Some(version) = object.pointer("/metadata/resourceVersion") {
            list_metadata.insert("resourceVersion".into(), version.clone());
        }
        self.table(list_metadata.into(), vec![self.row(object, options, now)], headers, options)
    }

    pub fn list_table(&self, list: &Value, options: &Options, now: Timestamp) -> Value {
        let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        let rows = items.iter().map(|item| self.row(item, options, now)).collect();
        self.table(partial::list_metadata(list), rows, true, options)
    }
}

fn ends_initial_events(object: &Value) -> bool {
    object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

#[cfg(test)]
mod tests;
