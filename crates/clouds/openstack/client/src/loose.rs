//! Values that services write in several ways: null for nothing, times with and without a zone, truths as text.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value, or its default where the service writes null.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a field has its default value and is left out of a request.
pub(crate) fn is_absent<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A point in time. Services write it with `Z`, with an offset, or without either and mean UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Timestamp);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if let Ok(time) = text.parse::<Timestamp>() {
            return Ok(Self(time));
        }
        text.parse::<DateTime>()
            .ok()
            .and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok())
            .map(|time| Self(time.timestamp()))
            .ok_or_else(|| D::Error::custom("a time was expected"))
    }
}

/// A truth, or a text that is one: `"True"`, `"true"`, `""`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Truth(pub bool);

impl<'de> Deserialize<'de> for Truth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Truth;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true or false")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Truth, E> {
                Ok(Truth(value))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Truth, E> {
                Ok(Truth(text.eq_ignore_ascii_case("true")))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A number, or a text that is one. Text that is none counts as 0: flavors write `""` for no swap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Number(pub i64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number(i64::try_from(value).unwrap_or(i64::MAX)))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Number, E> {
                Ok(Number(value as i64))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                Ok(Number(text.trim().parse().unwrap_or_default()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The id inside `{"id": …}`; Compute writes `""` for the image of a server that boots from a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IdOf(pub(crate) Option<String>);

impl<'de> Deserialize<'de> for IdOf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = IdOf;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with an id, or an empty text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<IdOf, E> {
                Ok(IdOf((!text.is_empty()).then(|| text.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IdOf, A::Error> {
                let mut id = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == "id" {
                        id = map.next_value::<Option<String>>()?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(IdOf(id))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Structs of answers: a field that is missing or null has its default.
macro_rules! model {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$attribute:meta])* pub $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$attribute])*
                #[serde(deserialize_with = "crate::loose::or_default")]
                pub $field: $type,
            )*
        }
    )*};
}

/// Structs of requests: a field with its default value is left out.
macro_rules! request {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$attribute:meta])* pub $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
        pub struct $name {
            $(
                $(#[$attribute])*
                #[serde(skip_serializing_if = "crate::loose::is_absent")]
                pub $field: $type,
            )*
        }
    )*};
}

/// Words of a service. One that is not in the list is kept as it is: services grow new ones.
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$attribute:meta])* $variant:ident = $text:literal,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$attribute])* $variant,)*
            /// A word that is not in the list.
            Other(String),
        }

        impl $name {
            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: String = serde::Deserialize::deserialize(deserializer)?;
                Ok(Self::from(text.as_str()))
            }
        }
    )*};
}

pub(crate) use {model, request, words};
