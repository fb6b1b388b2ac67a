//! `intstr.IntOrString`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An integer, or a percentage as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    Int(i32),
    /// A percentage such as `25%`.
    String(String),
}

impl JsonSchema for IntOrString {
    fn schema_name() -> Cow<'static, str> {
        "IntOrString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer" }, { "type": "string" }], "x-kubernetes-int-or-string": true })
    }
}

impl IntOrString {
    /// The count, with a percentage of `total` rounded up or down; `None` if the text is not a percentage.
    pub fn scaled(&self, total: i32, round_up: bool) -> Option<i32> {
        match self {
            Self::Int(count) => Some(*count),
            Self::String(text) => {
                let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
                let product = percent.checked_mul(total.into())?;
                let scaled = if round_up { (product + 99).div_euclid(100) } else { product.div_euclid(100) };
                i32::try_from(scaled).ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_requested() {
        let quarter = IntOrString::String("25%".to_owned());
        assert_eq!((quarter.scaled(3, true), quarter.scaled(3, false)), (Some(1), Some(0)));
        assert_eq!(IntOrString::Int(4).scaled(3, true), Some(4));
        assert_eq!(IntOrString::String("4".to_owned()).scaled(3, true), None);
    }
}
