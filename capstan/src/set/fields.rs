//! `FIELD=VALUE` arguments: changes of one field of a spec each.

use std::str::FromStr;

use serde_json::{Map, Value};

/// A change of a field. The path is relative to the spec that is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    path: Vec<String>,
    /// `None` removes the field.
    value: Option<Value>,
}

impl FromStr for Field {
    type Err = String;

    /// `template.name=ubuntu`, `cpus=4`, `failureDomains.fd-1.zone.name=zone-1`; `vpc=` removes the field.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not FIELD=VALUE, such as template.name=ubuntu-2404; FIELD= removes it");
        let (path, value) = text.split_once('=').ok_or_else(wrong)?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(wrong());
        }
        let value = match value {
            "" => None,
            _ => {
                // A fraction is a version, such as 1.35, more often than a number.
                let json: Option<Value> = serde_json::from_str(value).ok();
                Some(json.filter(|json| !json.is_f64()).unwrap_or_else(|| value.into()))
            }
        };
        Ok(Self { path, value })
    }
}

impl Field {
    /// Changes a spec. The error names the part of the path that does not fit.
    pub fn apply(&self, spec: &mut Value) -> Result<(), String> {
        set(spec, &self.path, self.value.as_ref()).map_err(|why| format!("{}: {why}", self.path.join(".")))
    }

    /// Such as `template.name=ubuntu-2404`.
    pub fn shown(&self) -> String {
        let value = match &self.value {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        format!("{}={value}", self.path.join("."))
    }
}

fn set(at: &mut Value, path: &[String], value: Option<&Value>) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    if at.is_null() {
        *at = Value::Object(Map::new());
    }
    match at {
        Value::Object(fields) if rest.is_empty() => {
            match value {
                Some(value) => fields.insert(first.clone(), value.clone()),
                None => fields.remove(first),
            };
            Ok(())
        }
        Value::Object(fields) => set(fields.entry(first.as_str()).or_insert(Value::Null), rest, value),
        Value::Array(entries) => {
            let named = entries.iter().position(|entry| entry["name"] == first.as_str());
            let index = named.or_else(|| first.parse().ok().filter(|index| *index < entries.len()));
            let Some(index) = index else {
                return Err(format!("the list has no entry {first:?}; use an entry's name or its position"));
            };
            match (rest.is_empty(), value) {
                (false, _) => set(&mut entries[index], rest, value),
                (true, Some(value)) => {
                    entries[index] = value.clone();
                    Ok(())
                }
                (true, None) => {
                    entries.remove(index);
                    Ok(())
                }
            }
        }
        _ => Err(format!("it has no field {first:?}: its value is not an object")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(mut spec: Value, fields: &[&str]) -> Result<Value, String> {
        for field in fields {
            field.parse::<Field>()?.apply(&mut spec)?;
        }
        Ok(spec)
    }

    #[test]
    fn fields_are_set_removed_and_made() {
        let spec = json!({"template": {"name": "old"}, "list": [{"name": "a", "zone": {}}, {"name": "b"}]});
        for (fields, expected) in [
            (&["template.name=new"][..], Ok(json!({"template": {"name": "new"}, "list": spec["list"]}))),
            (
                &["template.name=", "template.id=7-x"],
                Ok(json!({"template": {"id": "7-x"}, "list": spec["list"]})),
            ),
            (&["list.a.zone.name=z", "list=[]"], Ok(json!({"template": {"name": "old"}, "list": []}))),
            (&["template=", "list.b="], Ok(json!({"list": [{"name": "a", "zone": {}}]}))),
            (
                &["list=", "disk.sizeGiB=20"],
                Ok(json!({"template": {"name": "old"}, "disk": {"sizeGiB": 20}})),
            ),
            (&["list.1.id=x", "list.a=", "template="], Ok(json!({"list": [{"name": "b", "id": "x"}]}))),
            (&["list.c.id=x"], Err("list.c.id: the list has no entry \"c\"")),
            (&["template.name.first=x"], Err("template.name.first: it has no field \"first\"")),
            (&["template"], Err("is not FIELD=VALUE")),
            (&["template..name=x"], Err("is not FIELD=VALUE")),
        ] {
            match (changed(spec.clone(), fields), expected) {
                (Ok(spec), Ok(expected)) => assert_eq!(spec, expected, "{fields:?}"),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{fields:?}: {error}"),
                (found, expected) => panic!("{fields:?}: {found:?}, not {expected:?}"),
            }
        }
    }
}
