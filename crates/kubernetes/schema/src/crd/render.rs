//! Parts of a CRD as upstream shows them in messages. Its internal types have no JSON names, so every field appears
//! under its Go name, set or not.

use serde_json::Value;

use super::props::Props;
use crate::field::BadValue;
use crate::golang;

#[derive(Clone, Copy)]
enum Field {
    Text,
    /// A pointer to a scalar.
    Pointer,
    Flag,
    /// A list of plain values.
    List,
    Schema,
    SchemaList,
    SchemaMap,
    SchemaOrFlag,
    SchemaOrList,
    ExternalDocs,
    Rules,
}

const SCHEMA: [(&str, &str, Field); 43] = [
    ("ID", "id", Field::Text),
    ("Schema", "$schema", Field::Text),
    ("Ref", "$ref", Field::Pointer),
    ("Description", "description", Field::Text),
    ("Type", "type", Field::Text),
    ("Nullable", "nullable", Field::Flag),
    ("Format", "format", Field::Text),
    ("Title", "title", Field::Text),
    ("Default", "default", Field::Pointer),
    ("Maximum", "maximum", Field::Pointer),
    ("ExclusiveMaximum", "exclusiveMaximum", Field::Flag),
    ("Minimum", "minimum", Field::Pointer),
    ("ExclusiveMinimum", "exclusiveMinimum", Field::Flag),
    ("MaxLength", "maxLength", Field::Pointer),
    ("MinLength", "minLength", Field::Pointer),
    ("Pattern", "pattern", Field::Text),
    ("MaxItems", "maxItems", Field::Pointer),
    ("MinItems", "minItems", Field::Pointer),
    ("UniqueItems", "uniqueItems", Field::Flag),
    ("MultipleOf", "multipleOf", Field::Pointer),
    ("Enum", "enum", Field::List),
    ("MaxProperties", "maxProperties", Field::Pointer),
    ("MinProperties", "minProperties", Field::Pointer),
    ("Required", "required", Field::List),
    ("Items", "items", Field::SchemaOrList),
    ("AllOf", "allOf", Field::SchemaList),
    ("OneOf", "oneOf", Field::SchemaList),
    ("AnyOf", "anyOf", Field::SchemaList),
    ("Not", "not", Field::Schema),
    ("Properties", "properties", Field::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Field::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Field::SchemaMap),
    ("Dependencies", "dependencies", Field::SchemaMap),
    ("AdditionalItems", "additionalItems", Field::SchemaOrFlag),
    ("Definitions", "definitions", Field::SchemaMap),
    ("ExternalDocs", "externalDocs", Field::ExternalDocs),
    ("Example", "example", Field::Pointer),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Field::Pointer),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Field::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Field::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Field::List),
    ("XListType", "x-kubernetes-list-type", Field::Pointer),
    ("XMapType", "x-kubernetes-map-type", Field::Pointer),
];

/// Go names of the keywords that a schema sets, in the order of the Go type.
pub fn set_fields(props: Props<'_>) -> impl Iterator<Item = &'static str> {
    let set = move |(_, key, kind): &&(&str, &str, Field)| match (props.get(key), kind) {
        (None, _) => false,
        (Some(Value::String(text)), Field::Text) => !text.is_empty(),
        (Some(Value::Bool(flag)), Field::Flag) => *flag,
        (Some(_), _) => true,
    };
    let rules = props.get("x-kubernetes-validations").map(|_| "XValidations");
    SCHEMA.iter().filter(set).map(|(name, ..)| *name).chain(rules)
}

fn object(fields: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    golang::json(&text.into())
}

/// A complete schema.
pub fn schema(props: Props<'_>) -> String {
    let fields = SCHEMA.iter().map(|(name, key, kind)| (*name, field(props, key, *kind)));
    object(fields.chain([("XValidations", field(props, "x-kubernetes-validations", Field::Rules))]))
}

fn field(props: Props<'_>, key: &str, kind: Field) -> String {
    let Some(value) = props.get(key) else {
        return match kind {
            Field::Text => "\"\"".into(),
            Field::Flag => "false".into(),
            _ => "null".into(),
        };
    };
    match kind {
        Field::Text | Field::Pointer | Field::Flag | Field::List => golang::json(value),
        Field::Schema => Props::of(value).map_or_else(|| "null".into(), schema),
        Field::SchemaList => list(props.list(key).map(schema)),
        Field::SchemaMap => {
            let entries: Vec<String> =
                props.map(key).map(|(name, props)| format!("{}:{}", quoted(name), schema(props))).collect();
            format!("{{{}}}", entries.join(","))
        }
        Field::SchemaOrFlag => object([
            ("Allows", (value.is_object() || *value == Value::Bool(true)).to_string()),
            ("Schema", Props::of(value).map_or_else(|| "null".into(), schema)),
        ]),
        Field::SchemaOrList => schema_or_list(value),
        Field::ExternalDocs => {
            let docs = |key: &str| quoted(value.get(key).and_then(Value::as_str).unwrap_or_default());
            object([("Description", docs("description")), ("URL", docs("url"))])
        }
        Field::Rules => list(props.rules().map(rule)),
    }
}

/// A complete `items`.
pub fn schema_or_list(value: &Value) -> String {
    let schemas = value.as_array().map(|items| list(items.iter().filter_map(Props::of).map(schema)));
    object([
        ("Schema", Props::of(value).map_or_else(|| "null".into(), schema)),
        ("JSONSchemas", schemas.unwrap_or_else(|| "null".into())),
    ])
}

/// A complete validation rule.
pub fn rule(rule: Props<'_>) -> String {
    let text = |key: &str| quoted(rule.text(key));
    let pointer = |key: &str| rule.get(key).map_or_else(|| "null".into(), golang::json);
    object([
        ("Rule", text("rule")),
        ("Message", text("message")),
        ("MessageExpression", text("messageExpression")),
        ("Reason", pointer("reason")),
        ("FieldPath", text("fieldPath")),
        ("OptionalOldSelf", pointer("optionalOldSelf")),
    ])
}

/// The versions of a CRD without what all of them share, which upstream keeps once.
pub fn versions(versions: &[super::view::Version<'_>]) -> BadValue {
    let version = |version: &super::view::Version<'_>| {
        let props = version.props;
        let pointer = |value: Option<String>| value.unwrap_or_else(|| "null".into());
        object([
            ("Name", quoted(props.text("name"))),
            ("Served", props.flag("served").to_string()),
            ("Storage", props.flag("storage").to_string()),
            ("Deprecated", props.flag("deprecated").to_string()),
            ("DeprecationWarning", pointer(props.get("deprecationWarning").map(golang::json))),
            (
                "Schema",
                pointer(version.schema.map(|validation| {
                    object([("OpenAPIV3Schema", pointer(validation.schema("openAPIV3Schema").map(schema)))])
                })),
            ),
            ("Subresources", pointer(version.subresources.map(subresources))),
            (
                "AdditionalPrinterColumns",
                pointer(version.columns.map(|c| list(c.iter().filter_map(Props::of).map(column)))),
            ),
            (
                "SelectableFields",
                pointer(version.selectable_fields.map(|fields| {
                    list(
                        fields
                            .iter()
                            .filter_map(Props::of)
                            .map(|f| object([("JSONPath", quoted(f.text("jsonPath")))])),
                    )
                })),
            ),
        ])
    };
    BadValue::Text(list(versions.iter().map(version)))
}

fn subresources(props: Props<'_>) -> String {
    let scale = props.schema("scale").map(|scale| {
        object([
            ("SpecReplicasPath", quoted(scale.text("specReplicasPath"))),
            ("StatusReplicasPath", quoted(scale.text("statusReplicasPath"))),
            ("LabelSelectorPath", scale.get("labelSelectorPath").map_or_else(|| "null".into(), golang::json)),
        ])
    });
    object([
        ("Status", props.get("status").map_or_else(|| "null".into(), |_| "{}".into())),
        ("Scale", scale.unwrap_or_else(|| "null".into())),
    ])
}

fn column(props: Props<'_>) -> String {
    object([
        ("Name", quoted(props.text("name"))),
        ("Type", quoted(props.text("type"))),
        ("Format", quoted(props.text("format"))),
        ("Description", quoted(props.text("description"))),
        ("Priority", props.integer("priority").unwrap_or_default().to_string()),
        ("JSONPath", quoted(props.text("jsonPath"))),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_show_every_field() {
        let value = json!({"rule": "self > 1", "reason": "FieldValueInvalid"});
        assert_eq!(
            rule(Props::of(&value).expect("object")),
            r#"{"Rule":"self \u003e 1","Message":"","MessageExpression":"","Reason":"FieldValueInvalid","FieldPath":"","OptionalOldSelf":null}"#
        );
    }

    #[test]
    fn schemas_show_every_field() {
        let value = json!({"type": "object", "maximum": 5, "additionalProperties": true});
        let text = schema(Props::of(&value).expect("object"));
        assert!(text.starts_with(
            r#"{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false"#
        ));
        assert!(
            text.contains(r#""Maximum":5,"#)
                && text.contains(r#""AdditionalProperties":{"Allows":true,"Schema":null}"#)
        );
        assert!(text.ends_with(r#""XMapType":null,"XValidations":null}"#));
    }
}
