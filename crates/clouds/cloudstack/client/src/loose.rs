//! Values whose type on the wire depends on the command: numbers and truths in quotes, numbers with a fraction of
//! zero, times in two notations.

use std::fmt;
use std::marker::PhantomData;

use jiff::Timestamp;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// How CloudStack writes times.
const TIME: &str = "%Y-%m-%dT%H:%M:%S%z";

/// A number, or a text that is one. An empty text is none.
pub(crate) fn number<'de, D: Deserializer<'de>, T: TryFrom<i128>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct Number<T>(PhantomData<T>);

    impl<T: TryFrom<i128>> Number<T> {
        fn fit<E: de::Error>(number: i128) -> Result<Option<T>, E> {
            T::try_from(number).map(Some).map_err(|_| E::custom(format_args!("{number} is out of range")))
        }
    }

    impl<'de, T: TryFrom<i128>> Visitor<'de> for Number<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
            Self::fit(number.into())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
            Self::fit(number.into())
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
            match number.fract() == 0.0 && number.abs() < 9e15 {
                true => Self::fit(number as i128),
                false => Err(E::custom(format_args!("{number} is not a whole number"))),
            }
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            match text.trim() {
                "" => Ok(None),
                text => match text.parse::<i128>() {
                    Ok(number) => Self::fit(number),
                    Err(_) => Err(E::custom(format_args!("{text:?} is not a number"))),
                },
            }
        }
    }

    deserializer.deserialize_any(Number(PhantomData))
}

/// A truth, or a text that is one; absent is false.
pub(crate) fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    maybe_truth(deserializer).map(Option::unwrap_or_default)
}

/// A truth, or a text that is one.
pub(crate) fn maybe_truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    struct Truth;

    impl<'de> Visitor<'de> for Truth {
        type Value = Option<bool>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("true or false")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Self::Value, E> {
            Ok(Some(truth))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            match text {
                "" => Ok(None),
                _ if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
                _ if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
                _ => Err(E::custom(format_args!("{text:?} is neither true nor false"))),
            }
        }
    }

    deserializer.deserialize_any(Truth)
}

/// Times, as `2026-11-15T02:24:40+0000`.
pub(crate) mod time {
    use super::{Deserialize, Deserializer, Serialize, Serializer, TIME, Timestamp, de};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.strftime(TIME).to_string()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        match Option::<String>::deserialize(deserializer)?.as_deref() {
            None | Some("") => Ok(None),
            Some(text) => Timestamp::strptime(TIME, text)
                .or_else(|_| text.parse())
                .map(Some)
                .map_err(|_| de::Error::custom(format_args!("{text:?} is not a time"))),
        }
    }
}

/// How much of something there is or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Limited(i64),
    /// Without bound.
    Unlimited,
}

impl Amount {
    /// Whether so many fit.
    pub fn allows(self, wanted: i64) -> bool {
        match self {
            Self::Limited(most) => wanted <= most,
            Self::Unlimited => true,
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limited(most) => serializer.collect_str(most),
            Self::Unlimited => serializer.serialize_str("Unlimited"),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Most;

        impl<'de> Visitor<'de> for Most {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or Unlimited")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(if number < 0 { Amount::Unlimited } else { Amount::Limited(number) })
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount::Limited(i64::try_from(number).unwrap_or(i64::MAX)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                if text.eq_ignore_ascii_case("unlimited") {
                    return Ok(Amount::Unlimited);
                }
                // More used than allowed shows as a negative rest.
                text.parse()
                    .map(Amount::Limited)
                    .map_err(|_| E::custom(format_args!("{text:?} is not an amount")))
            }
        }

        deserializer.deserialize_any(Most)
    }
}
