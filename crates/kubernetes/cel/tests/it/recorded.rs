//! Recorded results of cel-go 0.26 with the environment of Kubernetes 1.36, one per line:
//!
//! - `issues` or `program`: the expression does not compile, with this text;
//! - `type`, `min`, `max`: its static type and estimated cost;
//! - `result` or `err`: the formatted value or the error; `cost`: the actual cost.
//!
//! `expressions.jsonl` has expressions without data, `typed.jsonl` (first line: a schema and objects) expressions
//! over `self` and `oldSelf`, `costs.jsonl` the numbers of Kubernetes' own cost tests.

use capstan_cel::{Activation, Budget, CompileError, DeclType, Env};
use serde_json::Value as Json;

use crate::schema::decl;
use crate::show::show;

struct RecordedCases<'a> {
    decl: &'a DeclType,
    objects: &'a [Json],
}

impl RecordedCases<'_> {
    /// Differences between a recorded result and ours.
    fn differences(&self, case: &Json) -> Vec<String> {
        let mut answer = serde_json::Map::new();
        let optional = case["optional"] == true;
        let old_decl = if optional { self.decl.clone().optional() } else { self.decl.clone() };
        let env =
            Env::kubernetes().with_variable("self", self.decl.clone()).with_variable("oldSelf", old_decl);
        match env.compile(case["expr"].as_str().unwrap()) {
            Err(CompileError::Issues(text)) => {
                answer.insert("issues".to_owned(), text.into());
            }
            Err(CompileError::Program(text)) => {
                answer.insert("program".to_owned(), text.into());
            }
            Ok(program) => {
                let object = |key: &str| case[key].as_u64().map(|index| &self.objects[index as usize]);
                let mut variables = Activation::new();
                if let Some(object) = object("self") {
                    variables = variables.bind("self", object, self.decl);
                }
                if optional {
                    variables = variables.bind_optional("oldSelf", object("old"), self.decl);
                } else if let Some(object) = object("old") {
                    variables = variables.bind("oldSelf", object, self.decl);
                }
                let mut budget = Budget::new(i64::MAX);
                match program.evaluate(&variables, &mut budget) {
                    Ok(value) => answer.insert("result".to_owned(), show(&value).into()),
                    Err(error) => answer.insert("err".to_owned(), error.to_string().into()),
                };
                answer.insert("type".to_owned(), program.output().to_string().into());
                answer.insert("min".to_owned(), program.cost_estimate().min.into());
                answer.insert("max".to_owned(), program.cost_estimate().max.into());
                answer.insert("cost".to_owned(), budget.last_cost().into());
            }
        }
        ["issues", "program", "type", "min", "max", "result", "err", "cost"]
            .into_iter()
            .filter(|key| answer.get(*key).unwrap_or(&Json::Null) != &case[*key])
            .map(|key| format!("{key}: {} instead of {}", answer.get(key).unwrap_or(&Json::Null), case[key]))
            .collect()
    }

    fn check<'f>(&self, cases: impl Iterator<Item = &'f str>) {
        let mut wrong = Vec::new();
        for line in cases {
            let case: Json = serde_json::from_str(line).unwrap();
            let differences = self.differences(&case);
            if !differences.is_empty() {
                wrong.push(format!("{}\n    {}", case["expr"], differences.join("\n    ")));
            }
        }
        assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[test]
fn expressions_without_data_agree_with_cel_go() {
    let decl = DeclType::object([]);
    RecordedCases { decl: &decl, objects: &[] }.check(include_str!("data/expressions.jsonl").lines());
}

#[test]
fn expressions_over_typed_data_agree_with_kubernetes() {
    let mut lines = include_str!("data/typed.jsonl").lines();
    let head: Json = serde_json::from_str(lines.next().unwrap()).unwrap();
    let decl = decl(&head["schema"]);
    RecordedCases { decl: &decl, objects: head["objects"].as_array().unwrap() }.check(lines);
}

#[test]
fn costs_are_those_of_kubernetes_cost_tests() {
    let env = Env::kubernetes().with_variable("self", DeclType::object([]));
    for line in include_str!("data/costs.jsonl").lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let program = env.compile(case["expr"].as_str().unwrap()).unwrap();
        let mut budget = Budget::default();
        program.evaluate(&Activation::new(), &mut budget).unwrap();
        let estimate = program.cost_estimate();
        let found = (estimate.min, estimate.max, budget.last_cost());
        let expected = ["min", "max", "cost"].map(|key| case[key].as_u64().unwrap());
        assert_eq!(found, expected.into(), "{}", case["expr"]);
    }
}
