//! The definitions are valid.

use capstan_capi_types::definitions::definitions;
use capstan_schema::crd;

#[test]
fn every_definition_is_structural_and_valid() {
    let definitions = definitions();
    assert_eq!(definitions.len(), 18);
    for mut definition in definitions {
        let name = definition["metadata"]["name"].clone();
        crd::default(&mut definition);
        assert_eq!(*crd::structural_errors(&definition), [], "{name}");
        assert_eq!(*crd::validate(&definition, None), [], "{name}");
    }
}

#[test]
fn every_field_is_described() {
    fn undescribed(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if property["description"].as_str().is_none_or(str::is_empty) && path != ".metadata" {
                found.push(path.clone());
            }
            undescribed(property, &path, found);
            undescribed(&property["items"], &path, found);
        }
    }
    for definition in definitions() {
        for version in definition["spec"]["versions"].as_array().expect("versions") {
            let mut found = Vec::new();
            undescribed(&version["schema"]["openAPIV3Schema"], "", &mut found);
            assert_eq!(found, Vec::<String>::new(), "{}", definition["metadata"]["name"]);
        }
    }
}
