//! Orders in the journal: everything that the call which makes a machine needs, with the version of their form.
//!
//! An order is complete when it is decided, and the intent of the call holds all of it. What was written by another
//! release reads as `None` if its form is not known here: an intent is resolved by looking up the name or id that the
//! call carries beside its order, so it never depends on reading the order.
//!
//! For fields of calls: `#[serde(default, skip_serializing_if = "Option::is_none", with = "order")]`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Names the form of an order in the journal.
const VERSION: &str = "v";

/// What is put into the journal with the call that carries it out. Must hold no secrets and read back as it was
/// written: the runtime compares calls with what the journal says.
pub trait Order: Serialize + DeserializeOwned {
    /// Changes when a release can no longer read what the one before it wrote.
    const VERSION: u32;
}

/// Writes an order with its version.
pub fn serialize<T: Order, S: Serializer>(order: &Option<Box<T>>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(order) = order else { return serializer.serialize_none() };
    let mut value = serde_json::to_value(order).map_err(serde::ser::Error::custom)?;
    value[VERSION] = T::VERSION.into();
    value.serialize(serializer)
}

/// Reads an order; `None` if its version is another.
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
    fn an_order_carries_its_version_and_reads_back_as_it_was_written() {
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
