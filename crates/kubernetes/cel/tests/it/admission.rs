//! What only expressions of admission have: the authorizer, results of other expressions, and patches.

use std::sync::{Arc, Mutex};

use capstan_cel::{
    AccessAuthorizer, AccessDecision, AccessQuestion, AccessSubject, Activation, Budget, ComputedVariables,
    Env, EvalError, Value,
};
use serde_json::json;

/// Allows everything that is about Pods.
#[derive(Debug)]
struct PodsOnly;

impl AccessAuthorizer for PodsOnly {
    fn decide(&self, question: &AccessQuestion) -> AccessDecision {
        let who = match &question.subject {
            AccessSubject::Requester => "the requester".to_owned(),
            AccessSubject::ServiceAccount { namespace, name } => format!("{namespace}/{name}"),
        };
        AccessDecision {
            allowed: &*question.resource == "pods" || question.path.as_deref() == Some("/healthz"),
            reason: format!("{who} asks to {} {}", question.verb, question.name).into(),
            error: "".into(),
        }
    }
}

fn ask(expression: &str) -> Result<String, String> {
    let env = Env::kubernetes().with_authorizer();
    let program = env.compile(expression).map_err(|error| error.to_string())?;
    let authorizer: Arc<dyn AccessAuthorizer> = Arc::new(PodsOnly);
    let question = AccessQuestion { resource: "pods".into(), name: "a".into(), ..AccessQuestion::default() };
    let variables = Activation::new()
        .bind_value("authorizer", Value::authorizer(authorizer.clone()))
        .bind_value("authorizer.requestResource", Value::resource_check(authorizer, question));
    let value = program.evaluate(&variables, &mut Budget::default());
    value.map(|value| crate::show::show(&value)).map_err(|error| error.to_string())
}

#[test]
fn expressions_ask_the_authorizer() {
    let table = [
        ("authorizer.group('').resource('pods').check('get').allowed()", "true"),
        ("authorizer.group('').resource('secrets').name('x').check('get').allowed()", "false"),
        ("authorizer.path('/healthz').check('get').allowed()", "true"),
        ("authorizer.requestResource.check('bind').reason()", "\"the requester asks to bind a\""),
        (
            "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').name('b').check('get').reason()",
            "\"ns/sa asks to get b\"",
        ),
        ("authorizer.requestResource.check('get').errored()", "false"),
    ];
    for (expression, expected) in table {
        assert_eq!(ask(expression).as_deref(), Ok(expected), "{expression}");
    }
    assert_eq!(ask("authorizer.path(' ').check('get').allowed()"), Err("path must not be empty".to_owned()));
    let account = "authorizer.serviceAccount('ns', 'A_').path('/').check('get').allowed()";
    assert_eq!(ask(account), Err("Invalid service account name".to_owned()));
    assert!(ask("authorizer.name").is_err(), "an authorizer has no fields");
}

#[test]
fn a_third_question_in_one_expression_is_too_expensive() {
    let one = "authorizer.requestResource.check('get').allowed()";
    assert_eq!(ask(&format!("{one} && {one}")).as_deref(), Ok("true"));
    let error = ask(&format!("{one} && {one} && {one}"));
    assert_eq!(error, Err("operation cancelled: actual cost limit exceeded".to_owned()));
}

/// Records which variables were computed.
struct Recorder(Mutex<Vec<String>>);

impl<'a> ComputedVariables<'a> for Recorder {
    fn compute(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        self.0.lock().unwrap().push(name.to_owned());
        match name {
            "variables.one" => Some(Ok(Value::Int(1))),
            "variables.bad" => Some(Err(EvalError::new("it failed"))),
            _ => None,
        }
    }
}

#[test]
fn a_variable_is_computed_when_it_is_used() {
    let int = Env::kubernetes().compile("1").unwrap();
    let env =
        Env::kubernetes().with_result("variables.one", Some(int.output())).with_result("variables.bad", None);
    let run = |expression: &str| {
        let recorder = Recorder(Mutex::default());
        let program = env.compile(expression).unwrap();
        let result = program.evaluate_with(&Activation::new(), &recorder, &mut Budget::default());
        let result = result.map(|value| value.as_bool()).map_err(|error| error.to_string());
        (result, recorder.0.into_inner().unwrap())
    };
    assert_eq!(run("variables.one == 1"), (Ok(Some(true)), vec!["variables.one".to_owned()]));
    assert_eq!(run("true || variables.bad == 1"), (Ok(Some(true)), vec![]));
    assert_eq!(run("variables.bad == 1").0, Err("it failed".to_owned()));
    let error = env.compile("variables.one == 'a'").unwrap_err().to_string();
    assert!(error.contains("found no matching overload for '_==_' applied to '(int, string)'"), "{error}");
}

#[test]
fn patches_are_objects_with_the_path_as_their_type() {
    let object = json!({"metadata": {"labels": {"a": "b"}}});
    let any = capstan_cel::DeclType::dynamic();
    let env = Env::kubernetes().with_variable("object", any.clone()).with_patch_types();
    let run = |expression: &str| {
        let program = env.compile(expression).map_err(|error| error.to_string())?;
        let variables = Activation::new().bind("object", &object, &any);
        let value =
            program.evaluate(&variables, &mut Budget::default()).map_err(|error| error.to_string())?;
        Ok::<_, String>((program.output().declared_name(), value.to_json().unwrap()))
    };
    assert_eq!(
        run(
            "Object{spec: Object.spec{replicas: 2, ?paused: optional.none(), ?minReadySeconds: optional.of(3)}}"
        ),
        Ok(("Object".to_owned(), json!({"spec": {"replicas": 2, "minReadySeconds": 3}})))
    );
    assert_eq!(
        run(
            "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: object.metadata.labels.a}]"
        ),
        Ok((
            "list(JSONPatch)".to_owned(),
            json!([{"op": "add", "path": "/metadata/labels/a~1b~0c", "value": "b"}])
        ))
    );
    assert_eq!(run("Object{a: 1} == Object{a: 1}").unwrap().1, json!(true));
    assert_eq!(run("dyn(Object{a: 1}) == Object.a{a: 1}").unwrap().1, json!(false));
    let error = run("JSONPatch{op: 1}").unwrap_err();
    assert!(error.contains("expected type of field 'op' is 'string' but provided type is 'int'"), "{error}");
    let error = run("JSONPatch{verb: 'add'}").unwrap_err();
    assert!(error.contains("undefined field 'verb'"), "{error}");
    let without = Env::kubernetes().compile("Object{}").unwrap_err().to_string();
    assert!(without.contains("undeclared reference to 'Object'"), "{without}");
    assert!(Env::kubernetes().compile("jsonpatch.escapeKey('a')").is_err());
}
