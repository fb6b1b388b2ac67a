use serde_json::{Value, json};
use std::io::{BufRead, Write};
fn main() {
    let stdin = std::io::stdin();
    let mut out = std::io::stdout().lock();
    for line in stdin.lock().lines() {
        let mut case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let result = match case["op"].as_str().unwrap() {
            "crd" => {
                let mut old = case["old"].take();
                let mut new = case["new"].take();
                capstan_schema::crd::default(&mut new);
                if !old.is_null() {
                    capstan_schema::crd::default(&mut old);
                }
                let errors = capstan_schema::crd::validate(&new, (!old.is_null()).then_some(&old));
                json!(
                    errors
                        .iter()
                        .map(|e| json!({"reason": e.kind.reason(), "field": e.field, "message": e.body()}))
                        .collect::<Vec<_>>()
                )
            }
            _ => Value::Null,
        };
        writeln!(out, "{result}").unwrap();
    }
}
