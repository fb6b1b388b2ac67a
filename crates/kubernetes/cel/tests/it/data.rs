//! How declared types read JSON.

use capstan_cel::{Activation, Budget, CompileError, DeclType, Env, EvalError, Field, ListKind, limits};
use serde_json::{Value as Json, json};

use crate::show::show;

/// Compiles and evaluates a rule over `self` and `oldSelf`.
fn evaluate(rule: &str, decl: &DeclType, object: &Json, old: &Json) -> Result<String, String> {
    let env = Env::kubernetes().with_variable("self", decl.clone()).with_variable("oldSelf", decl.clone());
    let program = env.compile(rule).map_err(|error| error.to_string())?;
    let variables = Activation::new().bind("self", object, decl).bind("oldSelf", old, decl);
    let value = program.evaluate(&variables, &mut Budget::default());
    value.map(|value| show(&value)).map_err(|error| error.to_string())
}

#[test]
fn sets_and_map_lists_compare_without_order() {
    let set = DeclType::list(DeclType::string()).with_list_kind(ListKind::Set);
    let item = || DeclType::object([Field::new("k", DeclType::string()), Field::new("v", DeclType::int())]);
    let keyed = DeclType::list(item()).with_list_kind(ListKind::Map(vec!["k".to_owned()]));
    let atomic = DeclType::list(DeclType::string());
    let table = [
        (&set, json!(["a", "b"]), json!(["b", "a"]), "self == oldSelf", "true"),
        (&set, json!(["a", "b"]), json!(["b", "c"]), "self == oldSelf", "false"),
        (&set, json!(["a", "b"]), json!(["b", "c"]), "self + oldSelf", r#"["a", "b", "c"]"#),
        (&set, json!(["a", "b"]), json!(["b", "c"]), "self + oldSelf == oldSelf + self", "true"),
        (&atomic, json!(["a", "b"]), json!(["b", "a"]), "self == oldSelf", "false"),
        (&atomic, json!(["a", "b"]), json!(["b", "a"]), "self + oldSelf", r#"["a", "b", "b", "a"]"#),
        (&keyed, json!([{"k": "a"}, {"k": "b"}]), json!([{"k": "b"}, {"k": "a"}]), "self == oldSelf", "true"),
        (
            &keyed,
            json!([{"k": "a", "v": 1}, {"k": "b"}]),
            json!([{"k": "a", "v": 2}, {"k": "c"}]),
            "(self + oldSelf).map(x, x.k + (has(x.v) ? string(x.v) : ''))",
            r#"["a2", "b", "c"]"#,
        ),
    ];
    for (decl, object, old, rule, expected) in table {
        assert_eq!(
            evaluate(rule, decl, &object, &old).as_deref(),
            Ok(expected),
            "{rule} on {object} and {old}"
        );
    }
}

#[test]
fn formats_give_typed_values() {
    let decl = DeclType::object([
        Field::new("at", DeclType::date_time()),
        Field::new("on", DeclType::date()),
        Field::new("for", DeclType::duration()),
        Field::new("raw", DeclType::bytes()),
        Field::new("port", DeclType::int_or_string()),
        Field::new("ratio", DeclType::double()),
        Field::new("note", DeclType::string().nullable()),
        Field::new("extra", DeclType::preserved()),
    ]);
    let object = json!({
        "at": "2023-07-14T10:30:45.123Z", "on": "2023-07-14", "for": "2 hours", "raw": "aGk=",
        "port": "80%", "ratio": 1, "note": null, "extra": {"x": 1},
    });
    let table = [
        ("self.at.getHours()", Ok("10")),
        ("self.at - self.on > duration('10h')", Ok("true")),
        ("self.__for__ == duration('2h')", Ok("true")),
        ("self.for == duration('2h')", Ok("true")),
        ("string(self.raw)", Ok(r#""hi""#)),
        ("type(self.port) == string", Ok("true")),
        ("self.ratio == 1.0", Ok("true")),
        ("has(self.note)", Ok("false")),
        ("self.note", Err("no such key: note")),
        ("self == oldSelf", Ok("true")),
    ];
    for (rule, expected) in table {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(evaluate(rule, &decl, &object, &object), expected, "{rule}");
    }
    let issue = evaluate("self.extra.x == 1", &decl, &object, &object).unwrap_err();
    assert_eq!(issue, "ERROR: <input>:1:5: undefined field 'extra'\n | self.extra.x == 1\n | ....^");
}

#[test]
fn data_that_does_not_fit_fails_where_it_is_used() {
    let decl = DeclType::object([
        Field::new("n", DeclType::int()),
        Field::new("list", DeclType::list(DeclType::string())),
    ]);
    let object = json!({"n": "x", "list": [1, null]});
    let table = [
        ("self.n > 1", "invalid data, expected int, got string"),
        ("self.list.all(s, s == '')", "invalid data, expected string, got int64"),
        ("self.list[1] == ''", "invalid data, got null for schema with nullable=false"),
    ];
    for (rule, expected) in table {
        assert_eq!(evaluate(rule, &decl, &object, &object), Err(expected.to_owned()), "{rule}");
    }
    assert_eq!(evaluate("self.n > 1 || true", &decl, &object, &object).as_deref(), Ok("true"));
}

#[test]
fn object_types_are_named_after_their_place() {
    let decl = DeclType::object([Field::new("spec", DeclType::object([]))]);
    let issue = evaluate("self.spec == 1", &decl, &json!({}), &json!({})).unwrap_err();
    assert_eq!(
        issue.lines().next(),
        Some("ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(selfType.spec, int)'")
    );
}

#[test]
fn a_program_knows_what_it_uses_and_gives() {
    let env = Env::kubernetes()
        .with_variable("self", DeclType::string())
        .with_variable("oldSelf", DeclType::string());
    let program = env.compile("self == oldSelf").unwrap();
    assert!(program.uses("oldSelf") && program.uses("self") && !program.uses("other"));
    assert!(program.output().is_bool() && !program.output().is_string());
    assert!(env.compile("self + 'x'").unwrap().output().is_string());
    assert!(env.compile("dyn(true)").unwrap().output().is_dyn());
}

#[test]
fn constants_that_cannot_be_computed_fail_when_the_program_is_made() {
    let env = Env::kubernetes();
    let table = [
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("'a'.find('[') == ''", "error parsing regexp: missing closing ]: `[`"),
    ];
    for (rule, expected) in table {
        assert_eq!(env.compile(rule).unwrap_err(), CompileError::Program(expected.to_owned()), "{rule}");
    }
}

#[test]
fn calls_are_bounded_alone_and_together() {
    let decl = DeclType::list(DeclType::int());
    let object = Json::from((0..200).collect::<Vec<i64>>());
    let env = Env::kubernetes().with_variable("self", decl.clone());
    let quadratic = env.compile("self.all(x, self.exists(y, x == y))").unwrap();
    let variables = Activation::new().bind("self", &object, &decl);

    let mut budget = Budget::default();
    assert!(quadratic.evaluate(&variables, &mut budget).is_ok());
    let cost = budget.last_cost();
    assert_eq!(budget.remaining(), limits::RUNTIME_CEL_COST_BUDGET - cost as i64);

    let mut short = Budget::default().with_per_call_limit(cost - 1);
    assert_eq!(quadratic.evaluate(&variables, &mut short).unwrap_err(), EvalError::CostLimitExceeded);
    let mut exact = Budget::default().with_per_call_limit(cost);
    assert!(quadratic.evaluate(&variables, &mut exact).is_ok());

    let mut shared = Budget::new(cost as i64 * 2 - 1);
    assert!(quadratic.evaluate(&variables, &mut shared).is_ok());
    assert_eq!(quadratic.evaluate(&variables, &mut shared).unwrap_err(), EvalError::BudgetExceeded);
}
