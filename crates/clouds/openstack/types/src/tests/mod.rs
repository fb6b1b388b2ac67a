//! Claims about the kinds.

mod admission;
mod cases;
mod conversion;

use std::sync::Arc;

use capstan_capi_types::admission::Features;
use capstan_schema::custom::{Decode, Validator, decode};
use capstan_schema::{Schema, crd};
use serde_json::{Value, json};

use crate::GROUP;
use crate::admission::rules;
use crate::definitions::definitions;

/// What an API server does with an object of a kind: defaults, schema, rules of the schema, rules of the provider.
struct Api {
    kind: &'static str,
    version: String,
    validator: Validator,
}

impl Api {
    /// A kind in its stored version.
    fn of(kind: &'static str) -> Self {
        let definitions = definitions();
        let definition = definitions.iter().find(|it| it["spec"]["names"]["kind"] == kind).unwrap();
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let version = versions.iter().find(|version| version["storage"] == true).unwrap();
        let schema = Arc::new(Schema::from_json(&version["schema"]["openAPIV3Schema"]).unwrap());
        let name = version["name"].as_str().unwrap().to_owned();
        let namespaced = definition["spec"]["scope"] == "Namespaced";
        let validator = Validator::new(GROUP, &name, kind, namespaced, schema, None);
        Self { kind, version: name, validator }
    }

    fn object(&self, spec: &Value) -> Value {
        let mut object = json!({
            "apiVersion": format!("{GROUP}/{}", self.version),
            "kind": self.kind,
            "metadata": { "name": "x", "namespace": "ns", "resourceVersion": "1" },
            "spec": spec,
        });
        decode(&mut object, self.validator.schema(), Decode::default()).unwrap();
        object
    }

    /// The stored object, or why there is none.
    fn create(&self, spec: &Value) -> Result<Value, String> {
        let mut object = self.object(spec);
        object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        self.decide(&object, self.validator.validate(&object).errors.iter().map(|it| it.to_string()), None)
    }

    fn update(&self, old: &Value, spec: &Value) -> Result<Value, String> {
        let object = self.object(spec);
        let errors = self.validator.validate_update(&object, old).errors;
        self.decide(&object, errors.iter().map(|it| it.to_string()), Some(old))
    }

    fn decide(
        &self,
        object: &Value,
        errors: impl Iterator<Item = String>,
        old: Option<&Value>,
    ) -> Result<Value, String> {
        let mut errors: Vec<String> = errors.collect();
        // An object of another shape does not come that far.
        if errors.is_empty() {
            let own = rules(GROUP, self.kind).unwrap();
            for error in (own.validate)(object, old, &Features::default()).unwrap() {
                errors.push(format!("{}: {}", error.field, error.body()));
            }
        }
        match errors.is_empty() {
            true => Ok(object.clone()),
            false => Err(errors.join("; ")),
        }
    }
}

#[test]
fn an_api_server_accepts_the_definitions() {
    for mut definition in definitions() {
        crd::default(&mut definition);
        let errors: Vec<String> = crd::validate(&definition, None).iter().map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", definition["metadata"]["name"]);
    }
}

#[test]
fn v1beta2_is_stored_and_v1beta1_served() {
    let versions = |kind: &str| {
        let definitions = definitions();
        let definition = definitions.iter().find(|it| it["spec"]["names"]["kind"] == kind).unwrap();
        let versions = definition["spec"]["versions"].as_array().unwrap().clone();
        let name = |it: &Value| {
            format!("{}{}", it["name"].as_str().unwrap(), if it["storage"] == true { "!" } else { "" })
        };
        versions.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    for kind in
        ["OpenStackCluster", "OpenStackClusterTemplate", "OpenStackMachine", "OpenStackMachineTemplate"]
    {
        assert_eq!(versions(kind), "v1beta1 v1beta2!", "{kind}");
    }
    for kind in ["OpenStackServer", "OpenStackFloatingIPPool", "OpenStackClusterIdentity"] {
        assert_eq!(versions(kind), "v1alpha1!", "{kind}");
    }
}
