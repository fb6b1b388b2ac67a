//! Real output with `-o json` against the documented JSON Schema.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Server, succeeded};
use crate::sample::{create, example, of_kind, simulated};
use crate::verbs::on;

pub fn schema() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas/output.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Where a value does not fit a schema. Knows the keywords that the documented one uses, and refuses others.
fn misfits(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return misfits(root, target, value, at);
    }
    let mut found = Vec::new();
    for (keyword, expected) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "description" | "format" => {}
            "type" => {
                let kinds: Vec<&str> = match expected {
                    Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                    one => vec![one.as_str().unwrap()],
                };
                if !kinds.iter().any(|kind| is(value, kind)) {
                    found.push(format!("{at}: {value} is not {kinds:?}"));
                }
            }
            "enum" if !expected.as_array().unwrap().contains(value) => {
                found.push(format!("{at}: {value} is not one of {expected}"))
            }
            "enum" => {}
            "required" => {
                let missing =
                    |field: &&Value| value.is_object() && value.get(field.as_str().unwrap()).is_none();
                let missing = expected.as_array().unwrap().iter().filter(missing);
                found.extend(missing.map(|field| format!("{at}: {field} is missing")));
            }
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = expected.get(name) {
                        found.extend(misfits(root, schema, inner, &format!("{at}.{name}")));
                    }
                }
            }
            "additionalProperties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if schema["properties"].get(name).is_some() {
                        continue;
                    }
                    match expected {
                        Value::Bool(false) => found.push(format!("{at}.{name} is not documented")),
                        schema => found.extend(misfits(root, schema, inner, &format!("{at}.{name}"))),
                    }
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(misfits(root, expected, item, &format!("{at}[{number}]")));
                }
            }
            other => panic!("the test does not know the keyword {other}"),
        }
    }
    found
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    }
}

pub fn check(schema: &Value, server: &Server, definition: &str, arguments: &[&str]) {
    let output = on(server, &[arguments, &["-o", "json"]].concat());
    // `plan` and `orphans` exit with 2 if there are differences.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{arguments:?}: {output:?}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong = misfits(schema, &schema["$defs"][definition], &value, definition);
    assert!(wrong.is_empty(), "{arguments:?}: {wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn real_output_fits_the_documented_schema() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    create(&server, &example("cni.yaml")).await;
    create(&server, &example("sim-cluster.yaml")).await;
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));
    let schema = schema();
    for (definition, arguments) in [
        ("why", &["why", "quick"][..]),
        ("describe", &["describe", "quick"]),
        ("list", &["get", "clusters"]),
        ("list", &["events", "quick"]),
        ("doctor", &["doctor"]),
        ("orphans", &["orphans"]),
        ("version", &["version"]),
        ("top", &["top"]),
        ("plan", &["plan", "--delete", "machinedeployment/quick-workers"]),
        ("actions", &["scale", "quick", "--workers", "workers=2", "--dry-run"]),
        ("actions", &["pause", "quick"]),
        ("why", &["why", "quick"]),
        ("actions", &["resume", "quick"]),
        ("actions", &["delete", "quick", "--dry-run"]),
    ] {
        check(&schema, &server, definition, arguments);
    }
    drop(server);

    // A cluster with a failure.
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    let mut objects = example("sim-cluster.yaml");
    of_kind(&mut objects, "SimMachineTemplate")["spec"]["template"]["spec"]["faults"] =
        json!([{"type": "DiskFull"}]);
    create(&server, &objects).await;
    crate::why::why(&server, "quick", "console ends with");
    check(&schema, &server, "why", &["why", "quick"]);
    check(&schema, &server, "describe", &["describe", "quick"]);
}

#[test]
fn what_does_not_fit_is_found() {
    let schema = schema();
    let fits = |value: Value| misfits(&schema, &schema["$defs"]["doctor"], &value, "doctor");
    assert!(fits(json!([{"health": "fine", "what": "x"}])).is_empty());
    assert_eq!(fits(json!([{"health": "ill", "whom": 1}])).len(), 3);
}
