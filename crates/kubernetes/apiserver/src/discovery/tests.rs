use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::*;
use crate::registry::{CustomResource, Origin, Subresource};

/// A registry of one built-in and two custom groups.
pub fn registry() -> Arc<Registry> {
    let mut resources: BTreeMap<(String, String), Vec<Arc<Resource>>> = BTreeMap::new();
    let mut add = |resource: Resource| {
        let key = (resource.group.clone(), resource.version.clone());
        resources.entry(key).or_default().push(Arc::new(resource));
    };
    add(Resource {
        short_names: vec!["po".into()],
        categories: vec!["all".into()],
        subresources: vec![
            subresource("status", "", "v1", "Pod"),
            subresource("eviction", "policy", "v1", "Eviction"),
        ],
        ..resource("", "v1", "Pod", "pods")
    });
    add(Resource { verbs: vec!["create"], ..resource("", "v1", "Binding", "bindings") });
    add(Resource { bucket: "/events".into(), ..resource("events.k8s.io", "v1", "Event", "events") });
    for version in ["v1", "v1beta1"] {
        let widget = resource("example.com", version, "Widget", "widgets");
        add(Resource {
            subresources: vec![
                subresource("scale", "autoscaling", "v1", "Scale"),
                subresource("status", "example.com", version, "Widget"),
            ],
            namespaced: false,
            origin: custom(),
            ..widget
        });
    }
    add(Resource { origin: custom(), ..resource("a.example.org", "v2alpha1", "Apple", "apples") });
    let group = |name: &str, versions: &[&str]| Group {
        name: name.into(),
        versions: versions.iter().map(|v| (*v).to_owned()).collect(),
    };
    Arc::new(Registry {
        groups: vec![
            group("", &["v1"]),
            group("a.example.org", &["v2alpha1"]),
            group("example.com", &["v1", "v1beta1"]),
            group("events.k8s.io", &["v1"]),
        ],
        resources,
        by_plural: HashMap::new(),
        generation: 1,
    })
}

fn custom() -> Origin {
    Origin::Custom(Arc::new(CustomResource {
        name: String::new(),
        uid: String::new(),
        spec: Value::Null,
        preserve_unknown: false,
        schema_epoch: 0,
        terminating: false,
    }))
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: vec![],
        categories: vec![],
        namespaced: true,
        verbs: vec!["get", "watch"],
        subresources: vec![],
        schema: Arc::default(),
        columns: vec![],
        storage_version: "v1".into(),
        bucket: format!("{group}/{plural}").into(),
        behaviour: None,
        origin: Origin::BuiltIn,
    }
}

fn subresource(name: &str, group: &str, version: &str, kind: &str) -> Subresource {
    Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: vec!["get"],
        scale: None,
    }
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn api_names_the_address_to_come_back_to() {
    insta::assert_json_snapshot!(json(&Pages::new(registry()).core_versions("127.0.0.1:6443")));
}

#[test]
fn apis_lists_built_in_groups_first_and_custom_ones_by_version_then_name() {
    insta::assert_json_snapshot!(json(&Pages::new(registry()).groups()));
}

#[test]
fn a_group_prefers_its_first_version() {
    let pages = Pages::new(registry());
    insta::assert_json_snapshot!(json(&pages.group("example.com").unwrap()));
    assert_eq!(pages.group("nobody.example"), None);
    assert_eq!(pages.group(""), None);
}

#[test]
fn core_resources_are_listed_with_their_subresources() {
    let pages = Pages::new(registry());
    insta::assert_json_snapshot!(json(&pages.resources("", "v1").unwrap()));
    assert_eq!(pages.resources("", "v2"), None);
}

#[test]
fn custom_resources_are_listed_with_status_before_scale() {
    insta::assert_json_snapshot!(json(&Pages::new(registry()).resources("example.com", "v1").unwrap()));
}

#[test]
fn storage_version_hashes_are_those_of_upstream() {
    let pages = Pages::new(registry());
    let hash = |group: &str, version: &str| {
        let list = json(&pages.resources(group, version).unwrap());
        list["resources"][0]["storageVersionHash"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash("", "v1"), "xPOwRZ+Yhw8=");
    assert_eq!(hash("events.k8s.io", "v1"), "r2yiGXH7wu8=");
    assert_eq!(hash("example.com", "v1beta1"), "gIwvi5rymmg=");
}

#[test]
fn aggregated_discovery_lists_everything_in_one_document() {
    let pages = Pages::new(registry());
    insta::assert_json_snapshot!("aggregated_core", json(&pages.aggregated_core().body));
    insta::assert_json_snapshot!("aggregated_groups", json(&pages.aggregated_groups().body));
}

#[test]
fn documents_are_rendered_again_only_for_another_registry() {
    let discovery = Discovery::default();
    let (one, other) = (registry(), registry());
    let first = discovery.pages(&one);
    assert!(Arc::ptr_eq(&first, &discovery.pages(&one)));
    let second = discovery.pages(&other);
    assert!(!Arc::ptr_eq(&first, &second));
    assert!(Arc::ptr_eq(&first.aggregated_groups(), &second.aggregated_groups()), "equal bytes are shared");
}
