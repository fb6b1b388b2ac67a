//! Expressions that try to exhaust stack, memory or time.

use capstan_cel::{Activation, Budget, CompileError, DeclType, Env, EvalError};

fn issues(source: &str) -> String {
    match Env::kubernetes().compile(source) {
        Err(CompileError::Issues(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nesting_is_followed_to_cel_gos_limits_and_no_further() {
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    assert!(Env::kubernetes().compile(&nested("(", ")", 249)).is_ok());
    assert!(Env::kubernetes().compile(&nested("[", "]", 240)).is_ok());
    let limit = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    for (open, close) in [("(", ")"), ("[", "]"), ("{1:", "}"), ("f(", ")"), ("x?x:", ""), ("1+(", ")")] {
        assert_eq!(issues(&nested(open, close, 100_000 / (open.len() + 2))), limit, "{open}");
    }
    let chain = format!("self{}", ".a".repeat(251));
    assert_eq!(issues(&chain), "ERROR: <input>:-1:0: max recursion depth exceeded");
}

#[test]
fn long_expressions_are_refused_by_their_length() {
    assert_eq!(
        issues(&"x".repeat(100_001)),
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    );
    let wide = format!("[{}]", "1,".repeat(40_000));
    assert!(Env::kubernetes().compile(&wide).is_ok());
    let logical = vec!["true"; 10_000].join("&&");
    assert!(Env::kubernetes().compile(&logical).is_ok());
}

#[test]
fn deeply_nested_macros_compile_and_run() {
    let mut source = "1".to_owned();
    for _ in 0..100 {
        source = format!("[1].map(x, {source})");
    }
    let program = Env::kubernetes().compile(&format!("size({source}) == 1")).unwrap();
    let value = program.evaluate(&Activation::new(), &mut Budget::default()).unwrap();
    assert_eq!(value.as_bool(), Some(true));
}

#[test]
fn macros_that_copy_their_target_cannot_explode() {
    let source = format!("optional.of(1){}", ".optMap(x, x)".repeat(60));
    assert_eq!(issues(&source), "ERROR: <input>:-1:0: expression exceeds 400000 nodes");
}

#[test]
fn types_that_double_cannot_explode() {
    let source = format!("[0]{}", ".map(x, {x: x})".repeat(100));
    assert_eq!(issues(&source), "ERROR: <input>:-1:0: expression type is too complex");
}

#[test]
fn lists_that_double_are_shared_and_their_use_is_bounded() {
    let doubled = format!("[[1, 2, 3]]{}", ".map(x, x + x)".repeat(60));
    let run = |source: &str| {
        let program = Env::kubernetes().compile(source).unwrap();
        let mut budget = Budget::default().with_per_call_limit(50_000);
        program.evaluate(&Activation::new(), &mut budget).map(|value| value.as_bool())
    };
    assert_eq!(run(&format!("size({doubled}[0]) > 1000000")), Ok(Some(true)));
    for use_of in
        ["== [[1]]", "[0].all(x, x == x)", "[0].isSorted()", "[0].sum() == 1", "[0].exists_one(x, false)"]
    {
        let source = format!("{doubled}{use_of} || true");
        let outcome = run(&source);
        assert!(
            matches!(outcome, Ok(Some(true)) | Err(EvalError::CostLimitExceeded)),
            "{use_of}: {outcome:?}"
        );
    }
}

#[test]
fn text_that_multiplies_is_bounded() {
    let decl = DeclType::string();
    let long = serde_json::Value::String("x".repeat(1_000_000));
    let env = Env::kubernetes().with_variable("self", decl.clone());
    let program = env.compile("self.replace('', self).size() > 0").unwrap();
    let variables = Activation::new().bind("self", &long, &decl);
    let outcome = program.evaluate(&variables, &mut Budget::default());
    assert_eq!(outcome.unwrap_err(), EvalError::CostLimitExceeded);
}

#[test]
fn patterns_that_are_too_large_are_refused() {
    let program = Env::kubernetes().compile(r"'a'.matches('((a{1000}){1000}){1000}')");
    assert!(matches!(program, Err(CompileError::Issues(_) | CompileError::Program(_))));
}
