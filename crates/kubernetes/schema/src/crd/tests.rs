use serde_json::json;

use super::*;

fn crd(schema: Value) -> Value {
    let mut crd = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    default(&mut crd);
    crd
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(new: &Value, old: Option<&Value>, expected: &[&str]) {
    assert_eq!(texts(&validate(new, old)), expected);
}

/// Validates a schema of a field `f`; `@` is replaced by the field's path.
#[track_caller]
fn check_field(schema: Value, expected: &[&str]) {
    let new = crd(json!({"type": "object", "properties": {"f": schema}}));
    let at = "spec.validation.openAPIV3Schema.properties[f]";
    let expected: Vec<String> = expected.iter().map(|text| text.replace('@', at)).collect();
    assert_eq!(texts(&validate(&new, None)), expected);
}

#[test]
fn defaults_are_filled_in() {
    let mut crd = json!({"spec": {
        "names": {"plural": "widgets", "kind": "Widget"},
        "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s"}}}},
        "versions": [{"name": "v1"}, {"name": "v2", "storage": true}],
    }});
    default(&mut crd);
    assert_eq!(crd["spec"]["names"]["singular"], "widget");
    assert_eq!(crd["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"], 443);
    assert_eq!(crd["status"]["storedVersions"], json!(["v2"]));
    let mut bare = json!({"spec": {}});
    default(&mut bare);
    assert_eq!(bare["spec"]["conversion"], json!({"strategy": "None"}));
}

#[test]
fn a_plain_definition_is_valid() {
    check(&crd(json!({"type": "object"})), None, &[]);
}

#[test]
fn names_and_scope_are_required() {
    let mut empty = json!({"metadata": {"name": "x"}, "spec": {}});
    default(&mut empty);
    check(
        &empty,
        None,
        &[
            r#"metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group"#,
            "spec.group: Required value",
            "spec.scope: Required value",
            "spec.versions: Invalid value: []: must have exactly one version marked as storage version",
            "spec.names.plural: Required value",
            "spec.names.singular: Required value",
            "spec.names.kind: Required value",
            "spec.names.listKind: Required value",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
}

#[test]
fn versions_are_shown_with_the_fields_of_the_internal_type() {
    let mut new = crd(json!({"type": "object"}));
    let second = new["spec"]["versions"][0].clone();
    new["spec"]["versions"].as_array_mut().expect("list").push(second);
    let version = r#"{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}"#;
    check(
        &new,
        None,
        &[
            &format!(
                "spec.versions: Invalid value: [{version},{version}]: must contain unique version names"
            ),
            &format!(
                "spec.versions: Invalid value: [{version},{version}]: must have exactly one version marked as storage version"
            ),
            r#"status.storedVersions: Invalid value: ["v1"]: must have the storage version v1"#,
        ],
    );
}

#[test]
fn schemas_must_be_structural() {
    check_field(json!({}), &["@.type: Required value: must not be empty for specified object fields"]);
    check_field(json!({"type": "array"}), &["@.items: Required value: must be specified"]);
    check_field(
        json!({"type": "array", "items": {}}),
        &["@.items.type: Required value: must not be empty for specified array items"],
    );
    check_field(
        json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}]}),
        &[
            "@.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
            "spec.validation.openAPIV3Schema.properties[f].properties[a]: Required value: because it is defined in spec.validation.openAPIV3Schema.properties[f].anyOf[0].properties[a]",
        ][..1],
    );
    check_field(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        &[],
    );
    check_field(
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        &[
            "@.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    );
    check_field(json!({"type": "string", "$ref": "x"}), &["@.$ref: Forbidden: $ref is not supported"]);
    check_field(
        json!({"type": "strange"}),
        &[
            r#"@.type: Unsupported value: "strange": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    );
}

#[test]
fn extensions_fit_together() {
    check_field(
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
        &["@.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"],
    );
    check_field(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
            "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
        &[
            r#"@.x-kubernetes-list-map-keys: Invalid value: ["a","b"]: entries must all be names of item properties"#,
            "@.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    check_field(
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
        &[
            "@.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ],
    );
    check_field(
        json!({"type": "string", "x-kubernetes-list-type": "odd", "x-kubernetes-map-type": "odd"}),
        &[
            r#"@.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified"#,
            r#"@.x-kubernetes-map-type: Unsupported value: "odd": supported values: "atomic", "granular""#,
            r#"@.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#,
            r#"@.x-kubernetes-list-type: Unsupported value: "odd": supported values: "atomic", "set", "map""#,
        ],
    );
}

#[test]
fn defaults_must_be_valid_and_pruned() {
    check_field(
        json!({"type": "string", "default": 5}),
        &[r#"@.default: Invalid value: "integer": @.default in body must be of type string: "integer""#]
            .map(|text| text.replace("@.default in body", " in body"))
            .each_ref()
            .map(String::as_str),
    );
    check_field(
        json!({"type": "object", "default": {"x": 1}}),
        &[r#"@.default: Invalid value: {"x":1}: must not have unknown fields"#],
    );
    let mut new = crd(json!({"type": "object", "properties": {"kind": {"type": "string", "default": "x"}}}));
    check(
        &new,
        None,
        &[
            "spec.validation.openAPIV3Schema.properties[kind].default: Forbidden: must not be set in top-level kind",
        ],
    );
    new["spec"]["preserveUnknownFields"] = true.into();
    assert!(texts(&validate(&new, None)).iter().any(|e| e
        == "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema"));
}

#[test]
fn subresources_and_columns_are_checked() {
    let mut new = crd(json!({"type": "object"}));
    new["spec"]["versions"][0]["subresources"] =
        json!({"scale": {"specReplicasPath": ".status.x", "labelSelectorPath": "x"}});
    new["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"type": "odd", "format": "odd"}]);
    check(
        &new,
        None,
        &[
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec"#,
            "spec.subresources.scale.statusReplicasPath: Required value",
            r#"spec.subresources.scale.labelSelectorPath: Invalid value: "x": must be a simple json path starting with ."#,
            "spec.additionalPrinterColumns[0].name: Required value",
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "odd": must be one of boolean,date,integer,number,string"#,
            r#"spec.additionalPrinterColumns[0].format: Invalid value: "odd": must be one of byte,date,date-time,double,float,int32,int64,password"#,
            "spec.additionalPrinterColumns[0].JSONPath: Required value",
        ],
    );
}

#[test]
fn selectable_fields_point_to_scalars() {
    let mut new = crd(json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        "spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}));
    new["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}, {"jsonPath": ".spec"}, {"jsonPath": ".x"}, {"jsonPath": ".metadata.name"}]);
    check(
        &new,
        None,
        &[
            r#"spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a""#,
            r#"spec.selectableFields[2].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."#,
            r#"spec.selectableFields[3].jsonPath: Invalid value: ".x": is an invalid path: does not refer to a valid field"#,
            r#"spec.selectableFields[4].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata"#,
        ],
    );
}

#[test]
fn webhook_conversion_needs_a_target_and_versions() {
    let mut new = crd(json!({"type": "object"}));
    new["spec"]["conversion"] = json!({"strategy": "Webhook"});
    check(
        &new,
        None,
        &[
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ],
    );
    new["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "http://u@h/p?q#f"}, "conversionReviewVersions": ["v9"]}});
    check(
        &new,
        None,
        &[
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#,
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "u": user information is not permitted in the URL"#,
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "f": fragments are not permitted in the URL"#,
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "q": query parameters are not permitted in the URL"#,
            r#"spec.conversion.conversionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1"#,
        ],
    );
}

#[test]
fn identity_is_immutable() {
    let mut old = crd(json!({"type": "object"}));
    old["metadata"]["resourceVersion"] = "1".into();
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    new["spec"]["names"]["kind"] = "Gadget".into();
    new["spec"]["names"]["plural"] = "gadgets".into();
    new["spec"]["versions"][0]["name"] = "v2".into();
    check(
        &new,
        Some(&old),
        &[
            r#"spec.scope: Invalid value: "Cluster": field is immutable"#,
            r#"spec.names.kind: Invalid value: "Gadget": field is immutable"#,
            r#"spec.names.plural: Invalid value: "gadgets": field is immutable"#,
            r#"status.storedVersions: Invalid value: ["v1"]: must have the storage version v2"#,
            r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#,
        ],
    );
}

#[test]
fn community_groups_need_an_approval() {
    let mut new = crd(json!({"type": "object"}));
    new["metadata"]["name"] = "widgets.x.k8s.io".into();
    new["spec"]["group"] = "x.k8s.io".into();
    let required = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
    check(
        &new,
        None,
        &[&format!(
            "metadata.annotations[api-approved.kubernetes.io]: Required value: {required}, see https://github.com/kubernetes/enhancements/pull/1111"
        )],
    );
    for good in ["unapproved, experimental", "https://example.com/pr"] {
        new["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": good});
        check(&new, None, &[]);
    }
}

#[test]
fn the_root_of_a_schema_with_status_allows_few_keywords() {
    let mut new = crd(json!({"type": "object", "anyOf": [{"required": ["a"]}]}));
    check(&new, None, &[]);
    new["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let errors = texts(&validate(&new, None));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].ends_with("XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"));
}

#[test]
fn existing_problems_do_not_reject_an_update() {
    let mut old =
        crd(json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object"}}}}));
    old["metadata"]["resourceVersion"] = "1".into();
    assert_eq!(validate(&old, None).len(), 1);
    check(&old, Some(&old), &[]);
}

#[test]
fn stored_defaults_are_pruned_before_they_are_used() {
    let mut schema = Schema::from_json(&json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {"x": 1, "y": 2}, "properties": {"x": {"type": "integer"}}}}}))
    .expect("valid");
    prune_defaults(&mut schema);
    assert_eq!(schema.properties["a"].default, Some(json!({"x": 1})));
}

#[test]
fn deep_schemas_are_refused_without_recursion() {
    let mut schema = json!({"type": "string"});
    for _ in 0..200 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    assert_eq!(validate(&crd(schema), None).len(), 1);
}

#[test]
fn rules_must_compile() {
    check_field(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [{"rule": "self.b"}]}),
        &[concat!(
            r#"@.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.b","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'b'"#,
            "\n | self.b\n | ....^"
        )],
    );
    check_field(
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self", "message": "m"}]}),
        &[
            r#"@.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self","Message":"m","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool"#,
        ],
    );
    check_field(
        json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self == oldSelf"}, {"rule": "self != ''", "optionalOldSelf": true}]}, "maxItems": 5}),
        &[
            r#"@.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within @"#,
            "@.items.x-kubernetes-validations[1].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
        ],
    );
    check_field(
        json!({"type": "string", "x-kubernetes-validations": [{"rule": " "}, {"rule": "true", "reason": "odd", "fieldPath": ".x"}]}),
        &[
            "@.x-kubernetes-validations[0].rule: Required value: rule is not specified",
            r#"@.x-kubernetes-validations[1].reason: Unsupported value: "odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#,
            r#"@.x-kubernetes-validations[1].fieldPath: Invalid value: ".x": must be a valid path"#,
        ],
    );
}

#[test]
fn rules_must_not_cost_too_much() {
    let expensive = json!({"type": "array", "items": {"type": "array", "items": {"type": "string",
        "x-kubernetes-validations": [{"rule": "self.contains('x')"}]}}});
    let new = crd(json!({"type": "object", "properties": {"f": expensive}}));
    let errors = texts(&validate(&new, None));
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].ends_with(
        "estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    ));
    assert!(errors[1].ends_with(
        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    ));
    assert!(errors[2].starts_with(
        "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total"
    ));
}

#[test]
fn unknown_formats_are_warned_about_once() {
    let old = crd(json!({"type": "object", "properties": {"a": {"type": "string", "format": "odd"}}}));
    let new = crd(json!({"type": "object", "properties": {
        "a": {"type": "string", "format": "odd"}, "b": {"type": "integer", "format": "uint8"},
        "c": {"type": "string", "format": "date-time"}, "d": {"type": "boolean", "format": "int32"}}}));
    assert_eq!(warnings(&old, None), [r#"unrecognized format "odd""#]);
    assert_eq!(
        warnings(&new, Some(&old)),
        [r#"unrecognized format "uint8""#, r#"unrecognized format "int32""#]
    );
}
