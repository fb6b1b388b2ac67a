//! Descriptions of the common parts of objects for `kubectl explain`. Other built-in types have no descriptions.

/// Fields of types of `meta/v1`: `type.field`, text. Upstream's tests look for the first words of some.
const FIELDS: &[(&str, &str)] = &[
    (
        "ObjectMeta.annotations",
        "Annotations are key-value pairs that tools attach to the object; not queryable.",
    ),
    (
        "ObjectMeta.creationTimestamp",
        "CreationTimestamp is a timestamp of when the server created the object. Read-only.",
    ),
    (
        "ObjectMeta.deletionGracePeriodSeconds",
        "Seconds of graceful termination once the object is deleted. Read-only.",
    ),
    (
        "ObjectMeta.deletionTimestamp",
        "DeletionTimestamp is the time after which the object is removed; set by the server on a graceful deletion. Read-only.",
    ),
    (
        "ObjectMeta.finalizers",
        "Keys that must be removed before a deleted object is removed; each belongs to one controller.",
    ),
    ("ObjectMeta.generateName", "Prefix of a name that the server generates if name is empty."),
    (
        "ObjectMeta.generation",
        "Sequence number of the desired state, incremented by every change of it. Read-only.",
    ),
    ("ObjectMeta.labels", "Labels are key-value pairs that select and group objects."),
    ("ObjectMeta.managedFields", "Fields by the manager that set them, for server-side apply."),
    ("ObjectMeta.name", "Name of the object, unique for its kind in its namespace. Cannot be changed."),
    ("ObjectMeta.namespace", "Namespace of the object; empty for cluster-scoped objects. Cannot be changed."),
    (
        "ObjectMeta.ownerReferences",
        "Objects this one depends on; when all are deleted it is garbage-collected. At most one is the controller.",
    ),
    (
        "ObjectMeta.resourceVersion",
        "Opaque version of the stored object, for optimistic concurrency and watches. Read-only.",
    ),
    ("ObjectMeta.selfLink", "Deprecated and no longer set."),
    (
        "ObjectMeta.uid",
        "Unique in time and space; another object of the same name has another uid. Read-only.",
    ),
    ("OwnerReference.apiVersion", "Group and version of the owner."),
    ("OwnerReference.blockOwnerDeletion", "Whether foreground deletion of the owner waits for this object."),
    ("OwnerReference.controller", "Whether the owner is the managing controller."),
    ("OwnerReference.kind", "Kind of the owner."),
    ("OwnerReference.name", "Name of the owner."),
    ("OwnerReference.uid", "Uid of the owner."),
    ("ManagedFieldsEntry.apiVersion", "Version of the object the fields are written in."),
    ("ManagedFieldsEntry.fieldsType", "Format of the fields; only FieldsV1."),
    ("ManagedFieldsEntry.fieldsV1", "The fields, as a tree of their names."),
    ("ManagedFieldsEntry.manager", "Name of the field manager."),
    ("ManagedFieldsEntry.operation", "Operation that set the fields: Apply or Update."),
    ("ManagedFieldsEntry.subresource", "Subresource the fields were set through."),
    ("ManagedFieldsEntry.time", "When the set of fields changed last."),
    ("ListMeta.continue", "Token for the next page."),
    ("ListMeta.remainingItemCount", "Number of objects after this page, if known."),
    ("ListMeta.resourceVersion", "Resource version at which the list was read."),
    ("ListMeta.selfLink", "Deprecated and no longer set."),
    ("ListMeta.shardInfo", "Shard that the list contains."),
    ("Status.code", "HTTP status code."),
    ("Status.details", "Additional data about the reason."),
    ("Status.message", "Human-readable description of the status."),
    ("Status.reason", "Machine-readable reason of the status."),
    ("Status.status", "Success or Failure."),
    ("LabelSelector.matchExpressions", "Requirements that must all hold."),
    ("LabelSelector.matchLabels", "Labels and values that must all be there."),
    ("LabelSelectorRequirement.key", "Key of the label."),
    ("LabelSelectorRequirement.operator", "In, NotIn, Exists or DoesNotExist."),
    ("LabelSelectorRequirement.values", "Values for In and NotIn."),
    ("Condition.lastTransitionTime", "When the status changed last."),
    ("Condition.message", "Human-readable details of the transition."),
    ("Condition.observedGeneration", "Generation of the object that the condition is based on."),
    ("Condition.reason", "Machine-readable reason of the last transition."),
    ("Condition.status", "True, False or Unknown."),
    ("Condition.type", "Type of the condition."),
];

/// Types of `meta/v1`.
const TYPES: &[(&str, &str)] = &[
    ("ObjectMeta", "ObjectMeta is metadata that every persisted object has."),
    ("ListMeta", "ListMeta is metadata of a list."),
    ("OwnerReference", "OwnerReference names an object that owns this one."),
    ("ManagedFieldsEntry", "ManagedFieldsEntry says which fields one manager set."),
    ("FieldsV1", "FieldsV1 is a set of fields as a tree of their names."),
    ("Time", "Time is a timestamp in whole seconds, in RFC 3339."),
    ("MicroTime", "MicroTime is a timestamp in microseconds, in RFC 3339."),
    ("Status", "Status is the result of calls that return no object."),
    ("StatusCause", "StatusCause is one cause of a failure."),
    ("StatusDetails", "StatusDetails is additional data about a failure."),
    ("DeleteOptions", "DeleteOptions are options of a deletion."),
    ("Preconditions", "Preconditions must hold for a deletion to happen."),
    ("LabelSelector", "LabelSelector selects objects by their labels; an empty one selects all."),
    ("Condition", "Condition is one aspect of the current state of an object."),
];

/// The description of a type.
pub fn ty(name: &str) -> Option<&'static str> {
    let short = name.strip_prefix("meta/v1.")?;
    TYPES.iter().find(|(known, _)| *known == short).map(|(_, text)| *text)
}

/// The description of a field. `object` is whether the type is a kind.
pub fn field(of: &str, object: bool, field: &str) -> Option<&'static str> {
    let known = of.strip_prefix("meta/v1.").and_then(|short| {
        let full = format!("{short}.{field}");
        FIELDS.iter().find(|(known, _)| *known == full).map(|(_, text)| *text)
    });
    known.or(match field {
        "metadata" if of.ends_with("List") || of == "meta/v1.Status" => Some(super::custom::LIST_METADATA),
        "metadata" => Some(super::custom::METADATA),
        "apiVersion" if object => Some(super::custom::API_VERSION),
        "kind" if object => Some(super::custom::KIND),
        _ => None,
    })
}
