use std::collections::HashMap;

use serde_json::{Value, json};

use super::*;
use crate::registry::{Group, Origin, ScalePaths, Subresource};

/// A definition that uses every feature of structural schemas.
pub fn widget() -> Value {
    serde_saphyr::from_str(include_str!("widget.yaml")).unwrap()
}

fn custom_resource(spec: Value) -> Arc<CustomResource> {
    Arc::new(CustomResource {
        name: "widgets.example.com".into(),
        uid: "1".into(),
        preserve_unknown: spec["preserveUnknownFields"] == true,
        spec,
        schema_epoch: 0,
        terminating: false,
    })
}

fn resources(custom: &Arc<CustomResource>) -> Vec<Resource> {
    let spec = &custom.spec;
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let subresource = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: vec!["get", "patch", "update"],
        scale: None::<ScalePaths>,
    };
    let versions = spec["versions"].as_array().unwrap().iter();
    versions
        .map(|version| {
            let (group, name, kind) =
                (text(&spec["group"]), text(&version["name"]), text(&spec["names"]["kind"]));
            let mut subresources = Vec::new();
            if version["subresources"]["status"].is_object() {
                subresources.push(subresource("status", &group, &name, &kind));
            }
            if version["subresources"]["scale"].is_object() {
                subresources.push(subresource("scale", "autoscaling", "v1", "Scale"));
            }
            Resource {
                list_kind: format!("{kind}List"),
                plural: text(&spec["names"]["plural"]),
                singular: kind.to_lowercase(),
                short_names: vec![],
                categories: vec![],
                namespaced: spec["scope"] == "Namespaced",
                verbs: vec![],
                subresources,
                schema: Arc::default(),
                columns: vec![],
                storage_version: "v1".into(),
                bucket: "example.com/widgets".into(),
                behaviour: None,
                origin: Origin::Custom(custom.clone()),
                group,
                version: name,
                kind,
            }
        })
        .collect()
}

/// All built-in kinds.
fn built_in() -> impl Iterator<Item = Resource> {
    capstan_builtin::kinds().iter().map(|kind| Resource {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        list_kind: kind.list_kind.clone(),
        plural: kind.plural.into(),
        singular: kind.singular.into(),
        short_names: vec![],
        categories: vec![],
        namespaced: kind.namespaced,
        verbs: kind.verbs.clone(),
        subresources: kind
            .subresources
            .iter()
            .map(|sub| Subresource {
                name: sub.name.into(),
                group: sub.group.into(),
                version: sub.version.into(),
                kind: sub.kind.into(),
                verbs: sub.verbs.clone(),
                scale: None,
            })
            .collect(),
        schema: Arc::default(),
        columns: vec![],
        storage_version: kind.version.into(),
        bucket: format!("{}/{}", kind.group, kind.plural).into(),
        behaviour: None,
        origin: Origin::BuiltIn,
    })
}

fn registry(definitions: &[Arc<CustomResource>]) -> Arc<Registry> {
    let mut registry = Registry::default();
    let all = definitions.iter().flat_map(resources).chain(built_in());
    for resource in all {
        let key = (resource.group.clone(), resource.version.clone());
        registry.groups.push(Group { name: key.0.clone(), versions: vec![key.1.clone()] });
        registry.resources.entry(key).or_default().push(Arc::new(resource));
    }
    Arc::new(registry)
}

fn json_of(document: &Document) -> Value {
    serde_json::from_slice(&document.body).unwrap()
}

#[test]
fn version_3_shows_all_of_a_schema() {
    let registry = registry(&[custom_resource(widget())]);
    let document = json_of(&OpenApi::default().v3(&registry, "apis/example.com/v1").unwrap());
    let schemas = &document["components"]["schemas"];
    insta::assert_json_snapshot!("v3_Widget", schemas["com.example.v1.Widget"]);
    insta::assert_json_snapshot!("v3_WidgetList", schemas["com.example.v1.WidgetList"]);
}

#[test]
fn version_3_describes_the_operations_of_a_custom_resource() {
    let registry = registry(&[custom_resource(widget())]);
    let document = json_of(&OpenApi::default().v3(&registry, "apis/example.com/v1").unwrap());
    let operations: Vec<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters");
            methods.map(move |(method, operation)| {
                format!("{method} {path} {}", operation["operationId"].as_str().unwrap())
            })
        })
        .collect();
    insta::assert_snapshot!(operations.join("\n"));
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    insta::assert_json_snapshot!("v3_patch", patch);
}

#[test]
fn every_reference_of_a_document_can_be_resolved() {
    let registry = registry(&[custom_resource(widget())]);
    let openapi = OpenApi::default();
    let index = json_of(&openapi.v3_index(&registry));
    for path in index["paths"].as_object().unwrap().keys() {
        let document = json_of(&openapi.v3(&registry, path).unwrap());
        check_references(&document, &document);
    }
    let document = json_of(&openapi.v2(&registry, Encoding::Json));
    check_references(&document, &document);
}

fn check_references(root: &Value, value: &Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(root.pointer(pointer).is_some_and(Value::is_object), "{reference}");
            }
            map.values().for_each(|value| check_references(root, value));
        }
        Value::Array(list) => list.iter().for_each(|value| check_references(root, value)),
        _ => {}
    }
}

#[test]
fn version_2_leaves_out_what_its_clients_cannot_read() {
    let registry = registry(&[custom_resource(widget())]);
    let document = json_of(&OpenApi::default().v2(&registry, Encoding::Json));
    insta::assert_json_snapshot!("v2_Widget", document["definitions"]["com.example.v1.Widget"]);
    let unknown = &document["definitions"]["com.example.v1beta1.Widget"];
    assert_eq!(
        *unknown,
        json!({
            "type": "object",
            "x-kubernetes-group-version-kind":
                [{"group": "example.com", "version": "v1beta1", "kind": "Widget"}],
        })
    );
}

#[test]
fn only_what_changed_is_rendered_again() {
    let openapi = OpenApi::default();
    let apple = custom_resource({
        let mut spec = widget();
        spec["group"] = "example.org".into();
        spec
    });
    let before = registry(&[custom_resource(widget()), apple.clone()]);
    let mut changed = widget();
    changed["versions"][1]["schema"]["openAPIV3Schema"]["description"] = "changed".into();
    let after = registry(&[custom_resource(changed), apple]);
    let documents = |registry: &Arc<Registry>| -> HashMap<&str, Arc<Document>> {
        ["api/v1", "apis/example.com/v1", "apis/example.org/v1"]
            .into_iter()
            .map(|path| (path, openapi.v3(registry, path).unwrap()))
            .collect()
    };
    let (index, v2) = (openapi.v3_index(&before), openapi.v2(&before, Encoding::Json));
    let (old, new) = (documents(&before), documents(&after));
    assert!(Arc::ptr_eq(&old["api/v1"], &new["api/v1"]));
    assert!(Arc::ptr_eq(&old["apis/example.org/v1"], &new["apis/example.org/v1"]));
    assert_ne!(old["apis/example.com/v1"].hash, new["apis/example.com/v1"].hash);
    assert_ne!(index.hash, openapi.v3_index(&after).hash);
    assert_ne!(v2.hash, openapi.v2(&after, Encoding::Json).hash);
}

#[test]
fn the_index_names_each_document_by_its_hash() {
    let registry = registry(&[custom_resource(widget())]);
    let openapi = OpenApi::default();
    let index = json_of(&openapi.v3_index(&registry));
    assert!(index["paths"]["api/v1"].is_object());
    let hash = &openapi.v3(&registry, "apis/example.com/v1").unwrap().hash;
    assert_eq!(
        index["paths"]["apis/example.com/v1"]["serverRelativeURL"],
        format!("/openapi/v3/apis/example.com/v1?hash={hash}")
    );
    assert!(openapi.v3(&registry, "apis/example.com/v7").is_none());
}

#[test]
fn descriptions_of_metadata_have_the_words_upstreams_tests_look_for() {
    let registry = registry(&[custom_resource(widget())]);
    let document = json_of(&OpenApi::default().v3(&registry, "apis/example.com/v1").unwrap());
    let schemas = &document["components"]["schemas"];
    let of = |value: &Value| value["description"].as_str().unwrap().to_owned();
    let widget = &schemas["com.example.v1.Widget"]["properties"];
    assert!(of(&widget["apiVersion"]).starts_with("APIVersion defines"));
    assert!(of(&widget["metadata"]).starts_with("Standard object's metadata"));
    let meta = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    assert!(of(&meta["creationTimestamp"]).starts_with("CreationTimestamp is a timestamp"));
}

#[test]
fn the_protobuf_form_begins_with_the_version() {
    let registry = registry(&[custom_resource(widget())]);
    let document = OpenApi::default().v2(&registry, Encoding::Protobuf);
    assert!(document.body.starts_with(b"\x0a\x032.0\x12"));
}

#[test]
fn clients_get_the_encoding_they_ask_for() {
    let kubectl = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    assert_eq!(accept_v2(Some(kubectl)), Some(Encoding::Protobuf));
    assert_eq!(accept_v2(Some("application/json")), Some(Encoding::Json));
    assert_eq!(accept_v2(None), Some(Encoding::Json));
    assert_eq!(accept_v2(Some("text/html")), None);
    assert!(accepts_v3(Some("application/json, */*")));
    assert!(!accepts_v3(Some("application/com.github.proto-openapi.spec.v3.v1.0+protobuf")));
}
