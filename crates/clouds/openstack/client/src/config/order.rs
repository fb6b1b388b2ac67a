//! The order of the clouds in `clouds.yaml`: people put the one that they use first. Maps of values are sorted.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

#[derive(Default, Deserialize)]
struct Document {
    #[serde(default)]
    clouds: Keys,
}

/// The keys of a map, as they are written.
#[derive(Default)]
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// Names of the clouds of a text; none if it is not such a text, which its reader reports.
pub(super) fn of(clouds: &str) -> Vec<String> {
    serde_saphyr::from_str::<Document>(clouds).unwrap_or_default().clouds.0
}
