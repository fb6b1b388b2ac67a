//! The schema of `metadata`. CRDs do not declare it, but its labels, annotations, finalizers and owner references
//! merge entry by entry.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::schema::{Additional, Checks, ListType, MapType, Schema, TypeName};

static OBJECT_META: LazyLock<Schema> = LazyLock::new(build);

/// The schema of `metadata`.
pub fn schema() -> &'static Schema {
    &OBJECT_META
}

fn build() -> Schema {
    let text = || Schema::of(TypeName::String);
    let number = || Schema::of(TypeName::Integer);
    let time = || Schema {
        checks: Some(Box::new(Checks { format: Some("date-time".to_owned()), ..Checks::default() })),
        ..text()
    };
    let texts =
        || Schema { additional: Additional::Schema(Arc::new(text())), ..Schema::of(TypeName::Object) };
    let list = |list_type, items| Schema {
        items: Some(Arc::new(items)),
        list_type: Some(list_type),
        ..Schema::of(TypeName::Array)
    };
    let owner = Schema {
        map_type: Some(MapType::Atomic),
        ..object([
            ("apiVersion", text()),
            ("blockOwnerDeletion", Schema::of(TypeName::Boolean)),
            ("controller", Schema::of(TypeName::Boolean)),
            ("kind", text()),
            ("name", text()),
            ("uid", text()),
        ])
    };
    let entry = object([
        ("apiVersion", text()),
        ("fieldsType", text()),
        ("fieldsV1", Schema::of(TypeName::Object)),
        ("manager", text()),
        ("operation", text()),
        ("subresource", text()),
        ("time", time()),
    ]);
    let owners = Schema { list_map_keys: vec!["uid".to_owned()], ..list(ListType::Map, owner) };
    object([
        ("annotations", texts()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", number()),
        ("deletionTimestamp", time()),
        ("finalizers", list(ListType::Set, text())),
        ("generateName", text()),
        ("generation", number()),
        ("labels", texts()),
        ("managedFields", list(ListType::Atomic, entry)),
        ("name", text()),
        ("namespace", text()),
        ("ownerReferences", owners),
        ("resourceVersion", text()),
        ("selfLink", text()),
        ("uid", text()),
    ])
}

fn object<const N: usize>(fields: [(&str, Schema); N]) -> Schema {
    let properties: BTreeMap<String, Arc<Schema>> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), Arc::new(schema))).collect();
    Schema { properties, ..Schema::of(TypeName::Object) }
}
