//! Compares a recorded response with ours: names and types of fields, order of lists, and the values of fields that
//! do not depend on time and place of the recording. Texts need not match.

use std::collections::BTreeMap;

use serde_json::Value;

/// Fields whose values are compared too.
const VALUES: &[&str] = &[
    "state",
    "name",
    "type",
    "protocol",
    "startport",
    "endport",
    "publicport",
    "privateport",
    "jobstatus",
    "jobresultcode",
    "jobprocstatus",
    "jobinstancetype",
    "cmd",
    "issourcenat",
    "algorithm",
    "key",
    "value",
    "cidrlist",
    "traffictype",
    "errorcode",
    "cserrorcode",
    "success",
    "resourcetype",
    "resourcetypename",
    "max",
    "count",
    "displayname",
    "allocationstate",
    "resourcestate",
    "isfeatured",
    "ispublic",
    "vmstate",
    "size",
    "deviceid",
];

/// Maps ids and addresses of the recording to ours.
#[derive(Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    pub fn bind(&mut self, theirs: &str, ours: &str) {
        self.0.insert(theirs.to_owned(), ours.to_owned());
    }

    /// Whether a recorded id is mapped.
    pub fn knows(&self, theirs: &str) -> bool {
        self.0.contains_key(theirs)
    }

    /// Replaces every recorded id in a text.
    pub fn ours(&self, text: &str) -> String {
        let one = |part: &str| self.0.get(part).cloned().unwrap_or_else(|| part.to_owned());
        text.split(',').map(one).collect::<Vec<_>>().join(",")
    }

    /// Whether our value corresponds to theirs. An unknown id is added to the map.
    fn agree(&mut self, theirs: &str, ours: &str) -> bool {
        match self.0.get(theirs) {
            Some(known) => known == ours,
            None => {
                self.bind(theirs, ours);
                true
            }
        }
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// Collects differences between two responses.
pub struct Comparison<'a> {
    pub names: &'a mut Names,
    /// Lists were shortened when they were recorded.
    pub cut: bool,
    pub differences: Vec<String>,
}

impl Comparison<'_> {
    pub fn differ(&mut self, path: &str, what: impl std::fmt::Display) {
        self.differences.push(format!("{path}: {what}"));
    }

    pub fn values(&mut self, path: &str, theirs: &Value, ours: &Value) {
        match (theirs, ours) {
            (Value::Object(theirs), Value::Object(ours)) => {
                for name in theirs.keys().filter(|name| !ours.contains_key(*name)) {
                    self.differ(&format!("{path}/{name}"), "missing in ours");
                }
                for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
                    self.differ(&format!("{path}/{name}"), "not in the recording");
                }
                for (name, theirs) in theirs {
                    if let Some(ours) = ours.get(name) {
                        self.field(&format!("{path}/{name}"), name, theirs, ours);
                    }
                }
            }
            (Value::Array(theirs), Value::Array(ours)) => {
                if theirs.len() != ours.len() && !(self.cut && ours.len() > theirs.len()) {
                    self.differ(path, format!("recorded {} entries, ours {}", theirs.len(), ours.len()));
                }
                let (theirs, ours) = (in_order(path, theirs), in_order(path, ours));
                for (at, (theirs, ours)) in theirs.into_iter().zip(ours).enumerate() {
                    self.values(&format!("{path}/{at}"), theirs, ours);
                }
            }
            _ if kind(theirs) != kind(ours) => {
                self.differ(path, format!("recorded a {}, ours a {}", kind(theirs), kind(ours)));
            }
            _ => {}
        }
    }

    fn field(&mut self, path: &str, name: &str, theirs: &Value, ours: &Value) {
        match (theirs, ours) {
            (Value::String(their_text), Value::String(our_text)) if is_uuid(their_text) => {
                // Ids must correspond: the same object in the same position.
                if !is_uuid(our_text) || !self.names.agree(their_text, our_text) {
                    self.differ(path, format!("{our_text} does not correspond to {their_text}"));
                }
            }
            (Value::String(their_text), Value::String(our_text))
                if matches!(name, "ipaddress" | "publicip")
                    && their_text.parse::<std::net::Ipv4Addr>().is_ok() =>
            {
                self.names.bind(their_text, our_text);
            }
            _ => {
                if VALUES.contains(&name) && !theirs.is_array() && !theirs.is_object() && theirs != ours {
                    let named_after_id =
                        theirs.as_str().is_some_and(|text| text.starts_with("VM-") || is_uuid(text))
                            || ["ROOT-", "DATA-", "SimulatedAgent"]
                                .iter()
                                .any(|start| theirs.as_str().is_some_and(|text| text.starts_with(start)));
                    if !named_after_id {
                        self.differ(path, format!("recorded {theirs}, ours {ours}"));
                    }
                }
                self.values(path, theirs, ours);
            }
        }
    }
}

/// Entries as they are compared. Services and their capabilities come in the order of a hash set, which differs between
/// the recording's own replies.
fn in_order<'a>(path: &str, list: &'a [Value]) -> Vec<&'a Value> {
    let mut list: Vec<&Value> = list.iter().collect();
    if path.ends_with("/service") || path.ends_with("/capability") {
        list.sort_by_key(|entry| (entry["name"].as_str(), entry["value"].as_str()));
    }
    list
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}
