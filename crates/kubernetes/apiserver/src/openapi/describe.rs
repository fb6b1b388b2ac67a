//! Descriptions of the common parts of objects for `kubectl explain`. Other built-in types have no descriptions.

/// Fields of types of `meta/v1`: `type.field`, text. Upstream's tests look for the first words of some.
const FIELDS: &[(&str, &str)] = &[
    (
        "ObjectMeta.annotations",
        "Annotations are texts by key that tools keep with the object; not queryable.",
    ),
    (
        "ObjectMeta.creationTimestamp",
        "CreationTimestamp is a timestamp of when the server stored the object first. Read-only.",
    ),
    (
        "ObjectMeta.deletionGracePeriodSeconds",
        "Seconds the object has to end by itself once it is deleted. Read-only.",
    ),
    (
        "ObjectMeta.deletionTimestamp",
        "DeletionTimestamp is when the object is to be gone; set by the server when deletion is asked for. Read-only.",
    ),
    (
        "ObjectMeta.finalizers",
        "Names of who must act before a deleted object goes away; it stays until the list is empty.",
    ),
    ("ObjectMeta.generateName", "Beginning of a name that the server completes, used if name is empty."),
    ("ObjectMeta.generation", "Number of the wanted state, raised by every change of it. Read-only."),
    ("ObjectMeta.labels", "Labels are texts by key that select and group objects."),
    ("ObjectMeta.managedFields", "Who set which fields, kept for server-side apply."),
    ("ObjectMeta.name", "Name of the object, unique for its kind in its namespace. Cannot be changed."),
    (
        "ObjectMeta.namespace",
        "Namespace the object lives in; empty for objects of the whole cluster. Cannot be changed.",
    ),
    (
        "ObjectMeta.ownerReferences",
        "Objects this one depends on; when all are gone it is collected. At most one is the controller.",
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
    ("ManagedFieldsEntry.manager", "Who manages the fields."),
    ("ManagedFieldsEntry.operation", "How they came to be managed: Apply or Update."),
    ("ManagedFieldsEntry.subresource", "Subresource the fields were set through."),
    ("ManagedFieldsEntry.time", "When the set of fields changed last."),
    ("ListMeta.continue", "Token to ask for the next page with."),
    ("ListMeta.remainingItemCount", "Objects after this page, if known."),
    ("ListMeta.resourceVersion", "Version of the store the list shows."),
    ("ListMeta.selfLink", "Deprecated and no longer set."),
    ("ListMeta.shardInfo", "Which shard the list shows."),
    ("Status.code", "HTTP status code."),
    ("Status.details", "More about the reason."),
    ("Status.message", "What happened, for people."),
    ("Status.reason", "What happened, for programs."),
    ("Status.status", "Success or Failure."),
    ("LabelSelector.matchExpressions", "Requirements that must all hold."),
    ("LabelSelector.matchLabels", "Labels and values that must all be there."),
    ("LabelSelectorRequirement.key", "Key of the label."),
    ("LabelSelectorRequirement.operator", "In, NotIn, Exists or DoesNotExist."),
    ("LabelSelectorRequirement.values", "Values for In and NotIn."),
    ("Condition.lastTransitionTime", "When the status changed last."),
    ("Condition.message", "Why, for people."),
    ("Condition.observedGeneration", "Generation of the object the condition was seen at."),
    ("Condition.reason", "Why, in a word, for programs."),
    ("Condition.status", "True, False or Unknown."),
    ("Condition.type", "What the condition is about."),
];

/// Types of `meta/v1`.
const TYPES: &[(&str, &str)] = &[
    ("ObjectMeta", "ObjectMeta is what every stored object says about itself."),
    ("ListMeta", "ListMeta is what a list says about itself."),
    ("OwnerReference", "OwnerReference names an object that owns this one."),
    ("ManagedFieldsEntry", "ManagedFieldsEntry says which fields one manager set."),
    ("FieldsV1", "FieldsV1 is a set of fields as a tree of their names."),
    ("Time", "Time is a moment in whole seconds, in RFC 3339."),
    ("MicroTime", "MicroTime is a moment in microseconds, in RFC 3339."),
    ("Status", "Status is the answer of calls that return no object."),
    ("StatusCause", "StatusCause is one reason of a failure."),
    ("StatusDetails", "StatusDetails says what a status is about."),
    ("DeleteOptions", "DeleteOptions say how to delete."),
    ("Preconditions", "Preconditions must hold for a deletion to happen."),
    ("LabelSelector", "LabelSelector selects objects by their labels; an empty one selects all."),
    ("Condition", "Condition is one aspect of an object's state."),
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
