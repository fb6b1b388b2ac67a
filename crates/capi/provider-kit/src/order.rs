//! Orders in the journal: the complete input of the call that creates a machine, with a format version.
//!
//! An order is complete when it is decided, and the intent of the call contains all of it. An order of another
//! release with an unknown format is read as `None`: an intent is resolved by the name or id in the call, so it never
//! depends on reading the order.
//!
//! For fields of calls: `#[serde(default, skip_serializing_if = "Option::is_none", with = "order")]`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Field of the format version in the journal.
const VERSION: &str = "v";

/// Recorded in the journal with its call. Must contain no secrets and must round-trip: the runtime compares calls
/// with the journal.
pub trait Order: Serialize + DeserializeOwned {
    /// Incremented when older orders can no longer be read.
    const VERSION: u32;
}

/// Writes an order with its version.
pub fn serialize<T: Order, S: Serializer>(order: &Option<Box<T>>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(order) = order else { return serializer.serialize_none() };
    let mut value = serde_json::to_value(order).map_err(serde::ser::Error::custom)?;
    value[VERSION] = T::VERSION.into();
    value.serialize(serializer)
}

/// Reads an order; `None` if its version differs.
pub fn deserialize<'de, T: Order, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<T>>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let known = value[VERSION] == T::VERSION;
    Ok(if known { serde_json::from_value(value).ok() } else { None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Bread {
        loaves: u32,
    }

    impl Order for Bread {
        const VERSION: u32 = 2;
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "verb", rename_all = "camelCase")]
    enum Call {
        Bake {
            name: String,
            #[serde(default, skip_serializing_if = "Option::is_none", with = "super")]
            order: Option<Box<Bread>>,
        },
    }

    fn bake(order: Option<Bread>) -> Call {
        Call::Bake { name: "b".to_owned(), order: order.map(Box::new) }
    }

    #[test]
    fn an_order_has_its_version_and_round_trips() {
        let call = bake(Some(Bread { loaves: 3 }));
        let written = serde_json::to_value(&call).expect("JSON");
        assert_eq!(written, json!({"verb": "bake", "name": "b", "order": {"v": 2, "loaves": 3}}));
        assert_eq!(serde_json::from_value::<Call>(written).expect("a call"), call);
    }

    #[test]
    fn a_call_of_another_release_is_read_without_its_order() {
        for written in [
            json!({"verb": "bake", "name": "b"}),
            json!({"verb": "bake", "name": "b", "order": {"v": 1, "loaves": 3}}),
            json!({"verb": "bake", "name": "b", "order": {"v": 3, "grain": "rye"}}),
            json!({"verb": "bake", "name": "b", "order": {"v": 2, "loaves": "many"}}),
            json!({"verb": "bake", "name": "b", "order": null}),
        ] {
            assert_eq!(
                serde_json::from_value::<Call>(written.clone()).expect("a call"),
                bake(None),
                "{written}"
            );
        }
    }
}
