//! How structs with required fields are written.

/// Structs of the API in camel case. Required fields are written even when empty, because the schema wants them there;
/// optional ones are left out then. Reading never fails for a missing field.
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

pub(crate) use record;
