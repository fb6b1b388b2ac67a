//! Filters as query strings.

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;

pub(crate) type Pairs = Vec<(String, String)>;

/// The fields of a filter as pairs: lists repeat their name, null is left out.
pub(crate) fn pairs(filter: &impl Serialize) -> Result<Pairs, serde_json::Error> {
    let mut pairs = Pairs::new();
    let Value::Object(fields) = serde_json::to_value(filter)? else {
        return Ok(pairs);
    };
    for (name, value) in fields {
        match value {
            Value::Array(values) => {
                for value in values {
                    pairs.extend(text(value)?.map(|text| (name.clone(), text)));
                }
            }
            value => pairs.extend(text(value)?.map(|text| (name, text))),
        }
    }
    Ok(pairs)
}

fn text(value: Value) -> Result<Option<String>, serde_json::Error> {
    Ok(match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(_) | Value::Object(_) => {
            return Err(serde_json::Error::custom("a filter holds texts, truths and numbers"));
        }
    })
}

/// Tags as Neutron filters by them: one value, commas between tags. A tag with a comma would be two.
pub(crate) fn comma_list<S: Serializer>(tags: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(tag) = tags.iter().find(|tag| tag.contains(',')) {
        return Err(S::Error::custom(format_args!("the tag {tag:?} holds a comma")));
    }
    serializer.serialize_str(&tags.join(","))
}
