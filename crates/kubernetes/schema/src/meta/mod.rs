//! Metadata of all objects: names, labels, annotations, owners, finalizers and timestamps, validated as in
//! apimachinery.

mod decode;
mod names;
mod object;
mod time;

pub use decode::{Decoded, decode_object_meta};
pub use names::{
    NameCheck, config_map_key, dns1035_label, dns1123_label, dns1123_subdomain, label_value,
    name_is_dns_label, name_is_dns_subdomain, name_is_dns1035_label, path_segment, qualified_name,
    regex_message, too_many_characters,
};
pub use object::{
    finalizer_warnings, validate_annotations, validate_common_update, validate_field_manager,
    validate_finalizers, validate_labels, validate_managed_fields, validate_object_meta,
    validate_object_meta_update, validate_owner_references,
};
pub use time::{format_rfc3339, parse_rfc3339};

/// The message for a change of an immutable field.
pub const IMMUTABLE: &str = "field is immutable";
