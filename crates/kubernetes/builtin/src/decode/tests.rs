use serde_json::json;

use super::*;

fn decode(group: &str, kind: &str, text: &str) -> Result<Decoded, Undecodable> {
    from_slice(table().kind(group, "v1", kind).unwrap(), text.as_bytes())
}

fn error(group: &str, kind: &str, value: Value) -> String {
    decode(group, kind, &value.to_string()).unwrap_err().to_string()
}

fn resettle(object: &mut Value) {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (group, version, kind) = (group.to_owned(), version.to_owned(), kind.to_owned());
    settle(&group, &version, &kind, object).unwrap();
}

#[test]
fn unknown_and_duplicate_fields_are_reported_and_dropped() {
    let decoded = decode(
        "apps",
        "Deployment",
        r#"{"kind":"Deployment","foo":1,"metadata":{"name":"a","name":"b","labels":{"x":"1","x":"2"}},
            "spec":{"Replicas":3,"template":{"spec":{"containers":[{"name":"c","imagee":"i"},{"oops":{"deep":1}}]}}}}"#,
    )
    .unwrap();
    assert_eq!(
        decoded.strict.entries(),
        [
            r#"unknown field "foo""#,
            r#"duplicate field "metadata.name""#,
            r#"duplicate field "metadata.labels.x""#,
            r#"unknown field "spec.Replicas""#,
            r#"unknown field "spec.template.spec.containers[0].imagee""#,
            r#"unknown field "spec.template.spec.containers[1].oops""#,
        ]
    );
    assert_eq!(decoded.object["metadata"]["name"], "b");
    assert_eq!(
        decoded.object["spec"]["template"]["spec"]["containers"],
        json!([{"name": "c", "resources": {}}, {"name": "", "resources": {}}])
    );
}

#[test]
fn wrong_types_are_rejected_with_gos_messages() {
    for (group, kind, value, wanted) in [
        (
            "",
            "ConfigMap",
            json!({"data": "x"}),
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            "",
            "ConfigMap",
            json!({"data": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "apps",
            "Deployment",
            json!({"spec": {"replicas": "3"}}),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps",
            "Deployment",
            json!({"spec": {"replicas": 3_000_000_000_u64}}),
            "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "",
            "Pod",
            json!({"spec": {"containers": {"name": "x"}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            "",
            "Service",
            json!({"spec": {"ports": [{"protocol": 6}]}}),
            "json: cannot unmarshal number into Go struct field ServicePort.spec.ports.protocol of type v1.Protocol",
        ),
        (
            "",
            "Pod",
            json!({"spec": {"volumes": [{"emptyDir": true}]}}),
            "json: cannot unmarshal bool into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        ("", "Secret", json!({"data": {"a": "not base64"}}), "illegal base64 data at input byte 3"),
        (
            "",
            "Secret",
            json!({"data": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field Secret.data of type []uint8",
        ),
        (
            "",
            "Pod",
            json!({"metadata": {"creationTimestamp": "x"}}),
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        (
            "",
            "Pod",
            json!({"metadata": {"creationTimestamp": 5}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            "",
            "Pod",
            json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "1x"}}}]}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "",
            "Service",
            json!({"spec": {"ports": [{"targetPort": true}]}}),
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
    ] {
        assert_eq!(error(group, kind, value), wanted);
    }
}

#[test]
fn a_strategic_merge_patch_is_rejected_with_the_messages_of_gos_converter() {
    for (group, kind, value, wanted) in [
        ("", "ConfigMap", json!({"data": {"a": 1}}), "cannot convert int64 to string"),
        ("", "ConfigMap", json!({"data": {"a": 1.5}}), "unrecognized type: string"),
        ("", "ConfigMap", json!({"data": {"a": true}}), "unrecognized type: string"),
        ("", "ConfigMap", json!({"data": "x"}), "cannot restore map from string"),
        ("", "ConfigMap", json!({"metadata": 1}), "cannot restore struct from: int64"),
        (
            "",
            "Secret",
            json!({"data": {"a": "not base64"}}),
            "error decoding from json: illegal base64 data at input byte 3",
        ),
        ("", "Pod", json!({"spec": {"containers": {"name": "x"}}}), "cannot restore slice from map"),
        ("", "Service", json!({"spec": {"ports": [{"protocol": 6}]}}), "cannot convert int64 to v1.Protocol"),
        ("apps", "Deployment", json!({"spec": {"replicas": "3"}}), "unrecognized type: int32"),
        ("apps", "Deployment", json!({"spec": {"replicas": 1.5}}), "cannot convert float64 to int32"),
        (
            "",
            "Service",
            json!({"spec": {"ports": [{"targetPort": true}]}}),
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ] {
        let mut object = value;
        assert_eq!(
            settle_with(Words::Converter, group, "v1", kind, &mut object).unwrap_err().to_string(),
            wanted
        );
    }
}

#[test]
fn the_400_names_kind_and_version() {
    let error = decode("", "ConfigMap", r#"{"data":1}"#).unwrap_err();
    assert_eq!(
        bad_request(error, "v1", "ConfigMap"),
        r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"#
    );
}

#[test]
fn values_are_encoded_as_in_go() {
    for (given, wanted) in [
        (
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "creationTimestamp": null}}),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {}, "status": {}}),
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {}}, "data": {}, "binaryData": null}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
        ),
        (
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {}, "rules": []}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {}, "rules": null}),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [
                {"name": "c", "resources": {"limits": {"cpu": 1.5, "memory": "1024Mi"}}}
            ]}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}
            ]}, "status": {}}),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {}, "lastTimestamp": "2024-01-01T01:00:00.5+01:00"}),
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {},
                "source": {}, "firstTimestamp": null, "lastTimestamp": "2024-01-01T00:00:00Z", "eventTime": null,
                "reportingComponent": "", "reportingInstance": ""}),
        ),
    ] {
        let mut object = given.clone();
        resettle(&mut object);
        assert_eq!(object, wanted);
        resettle(&mut object);
        assert_eq!(object, wanted, "normalising twice changes nothing");
    }
}

#[test]
fn nested_schemas_of_a_crd_are_typed_but_not_strict() {
    let given = json!({
        "spec": {"versions": [{"schema": {"openAPIV3Schema": {
            "properties": {"a": {"items": {"typo": 1, "minimum": 1.0}, "additionalProperties": false}, "b": {"typo": 2}},
            "enum": [null, {"x": 1}], "default": null
        }}}]}
    });
    let decoded = decode("apiextensions.k8s.io", "CustomResourceDefinition", &given.to_string()).unwrap();
    assert_eq!(
        decoded.strict.entries(),
        [r#"unknown field "spec.versions[0].schema.openAPIV3Schema.properties.b.typo""#]
    );
    assert_eq!(
        decoded.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        json!({
            "properties": {"a": {"items": {"minimum": 1}, "additionalProperties": false}, "b": {}},
            "enum": [null, {"x": 1}]
        })
    );
}

#[test]
fn an_empty_list_of_managed_fields_resets_them() {
    let given = json!({"metadata": {"managedFields": [], "finalizers": []}});
    let decoded = decode("", "ConfigMap", &given.to_string()).unwrap();
    assert_eq!(decoded.object["metadata"], json!({"managedFields": [{}]}));
    let given = json!({"metadata": {"managedFields": null}});
    let decoded = decode("", "ConfigMap", &given.to_string()).unwrap();
    assert_eq!(decoded.object["metadata"], json!({}));
}
