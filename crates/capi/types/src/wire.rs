//! Serialization of Cluster API's structs and enums, here and in provider crates.

/// Whether a field has its default value and is omitted.
pub fn is_absent<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// API structs: camel case, every field optional, defaults are not written.
#[doc(hidden)]
#[macro_export]
macro_rules! wire {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[$attribute:meta])*
                pub $field:ident: $type:ty,
            )*
        }
    )*) => {$(
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        $(#[$meta])*
        pub struct $name {
            $(
                $(#[$attribute])*
                #[serde(skip_serializing_if = "capstan_capi_types::wire::is_absent")]
                pub $field: $type,
            )*
        }
    )*};
}

/// Structs of the API in camel case. Required fields are written even when empty, because the schema wants them there;
/// optional ones are left out then. Reading never fails for a missing field.
#[doc(hidden)]
#[macro_export]
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(required { $($(#[$required:meta])* pub $field:ident: $type:ty,)* })?
            $(optional { $($(#[$optional:meta])* pub $other:ident: $kind:ty,)* })?
        }
    )*) => {$(
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        $(#[$meta])*
        pub struct $name {
            $($(
                $(#[$required])*
                #[schemars(extend("x-required" = true))]
                pub $field: $type,
            )*)?
            $($(
                $(#[$optional])*
                #[serde(skip_serializing_if = "capstan_capi_types::wire::is_absent")]
                pub $other: $kind,
            )*)?
        }
    )*};
}

/// API enums: one of a few strings.
#[doc(hidden)]
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$attribute:meta])*
                $variant:ident = $text:literal,
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(
                $(#[$attribute])*
                #[serde(rename = $text)]
                $variant,
            )*
        }

        impl $name {
            /// The string on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($text),*] })
            }
        }
    };
}

pub use {choice, record, wire};
