//! Arbitrary text must neither panic nor hang. `cargo xtask fuzz` runs this for longer, with random seeds.

use capstan_cel::{Activation, Budget, DeclType, Env, Field};
use proptest::prelude::*;
use serde_json::json;

/// `cases` cases, unless `PROPTEST_CASES` is set.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

fn decl() -> DeclType {
    DeclType::object([
        Field::new("s", DeclType::string()),
        Field::new("n", DeclType::int()),
        Field::new("l", DeclType::list(DeclType::string())),
        Field::new("m", DeclType::map(DeclType::int())),
        Field::new("d", DeclType::int_or_string()),
    ])
}

fn compile_and_run(source: &str) {
    let decl = decl();
    let env = Env::kubernetes().with_variable("self", decl.clone());
    if let Ok(program) = env.compile(source) {
        let object = json!({"s": "aü\n", "n": -1, "l": ["", "x"], "m": {"k": 1}, "d": "1"});
        let variables = Activation::new().bind("self", &object, &decl);
        let _ = program.evaluate(&variables, &mut Budget::default().with_per_call_limit(20_000));
    }
}

/// Fragments of expressions.
fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "self",
            "self.s",
            "self.n",
            "self.l",
            "self.m",
            "self.d",
            "x",
            "1",
            "0",
            "-1",
            "2u",
            "1.5",
            "'a'",
            "''",
            "b'a'",
            "r'['",
            "null",
            "true",
            "false",
            "dyn(",
            "size(",
            "type(",
            "has(",
            "string(",
            "int(",
            "duration('1s')",
            "timestamp('2023-01-01T00:00:00Z')",
            "quantity('1')",
            "ip('::1')",
            "optional.of(",
            "optional.none()",
            ".map(x,",
            ".filter(x,",
            ".all(x,",
            ".exists(i, x,",
            ".transformMap(i, x,",
            ".optMap(x,",
            ".sortBy(x,",
            ".split(",
            ".join(",
            ".replace(",
            ".format(",
            ".matches(",
            ".substring(",
            ".value()",
            ".orValue(",
            ".size()",
            ".sort()",
            ".flatten(",
            "lists.range(",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "?",
            ".",
            "+",
            "-",
            "*",
            "/",
            "%",
            "==",
            "!=",
            "<",
            ">=",
            "&&",
            "||",
            "!",
            "in",
            "[?",
            ".?",
            "'%s %d %f %e'",
            " ",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,3}",
    ]
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn any_text_is_handled(source in "\\PC{0,60}") {
        compile_and_run(&source);
    }

    #[test]
    fn any_mix_of_tokens_is_handled(tokens in prop::collection::vec(token(), 0..24)) {
        compile_and_run(&tokens.concat());
    }

    #[test]
    fn any_pattern_and_text_is_handled(pattern in "[\\[\\]\\(\\)\\\\\\{\\}a-c0-9*+?|^$.:-]{0,12}", text in "\\PC{0,8}") {
        let source = format!("'{}'.matches(dyn(r'''{pattern}'''))", text.replace(['\\', '\''], ""));
        compile_and_run(&source);
    }
}
