//! The expressions of admission: which variables they have, and which results are allowed.
//!
//! | variable | declared |
//! |---|---|
//! | `object`, `oldObject`, `request`, `namespaceObject` | always |
//! | `params` | for policies with a `paramKind` |
//! | `authorizer`, `authorizer.requestResource` | except in message expressions |
//! | `variables.NAME` | for each variable of the policy before the expression |
//! | `Object{…}`, `JSONPatch{…}` | in mutations |

use std::sync::LazyLock;

use capstan_cel::{CompileError, DeclType, Env, Field, Program};

/// Which optional variables an expression has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Declared {
    pub params: bool,
    pub authorizer: bool,
    pub patches: bool,
}

/// The result that an expression must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Any,
    Bool,
    Text,
    TextOrNull,
    Object,
    JsonPatches,
}

/// Why an expression cannot be used, with upstream's texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It does not compile, or its result has another type.
    #[error("{0}")]
    Invalid(String),
    /// It compiles but cannot be run.
    #[error("{0}")]
    Internal(String),
}

/// The types of the variables.
pub struct Types {
    pub any: DeclType,
    pub request: DeclType,
    pub namespace: DeclType,
}

/// The types of `request`, of `namespaceObject`, and of everything without a type.
pub fn types() -> &'static Types {
    static TYPES: LazyLock<Types> = LazyLock::new(|| Types {
        any: DeclType::dynamic(),
        request: request_type(),
        namespace: namespace_type().nullable(),
    });
    &TYPES
}

/// The environment of expressions. `object` is the type of `object` and `oldObject`, `params` that of `params`.
#[must_use]
pub fn typed_environment(declared: Declared, object: DeclType, params: DeclType) -> Env {
    let types = types();
    let mut env = Env::kubernetes()
        .with_variable("object", object.clone())
        .with_variable("oldObject", object)
        .with_variable("namespaceObject", types.namespace.clone())
        .with_variable("request", types.request.clone());
    if declared.params {
        env = env.with_variable("params", params);
    }
    if declared.authorizer {
        env = env.with_authorizer();
    }
    if declared.patches {
        env = env.with_patch_types();
    }
    env
}

/// The environment of expressions about objects of any type.
#[must_use]
pub fn environment(declared: Declared) -> Env {
    typed_environment(declared, DeclType::dynamic(), DeclType::dynamic())
}

/// The name under which an expression uses a variable of its policy.
#[must_use]
pub fn variable_name(name: &str) -> String {
    format!("variables.{name}")
}

/// Declares the variables of a policy, by name and by what is known of their results.
#[must_use]
pub fn with_variables<'a>(
    env: Env,
    variables: impl IntoIterator<Item = (&'a str, Option<&'a Program>)>,
) -> Env {
    let mut env = env;
    let mut fields = Vec::new();
    for (name, program) in variables {
        env = env.with_result(&variable_name(name), program.map(Program::output));
        fields.push(Field::new(name, DeclType::dynamic()));
    }
    // The object itself is what `has(variables.name)` and an unknown name are checked against.
    env.with_variable("variables", DeclType::object(fields).named("kubernetes.variables"))
}

/// Compiles an expression whose result must have a type.
pub fn compile(env: &Env, expression: &str, output: Output) -> Result<Program, ExpressionError> {
    let program = env.compile(expression).map_err(|error| match error {
        CompileError::Issues(issues) => ExpressionError::Invalid(format!("compilation failed: {issues}")),
        CompileError::Program(why) => {
            ExpressionError::Internal(format!("program instantiation failed: {why}"))
        }
    })?;
    let actual = program.output();
    let (fits, wanted) = match output {
        Output::Any => (true, ""),
        Output::Bool => (actual.is_bool(), "bool"),
        Output::Text => (actual.is_string(), "string"),
        Output::TextOrNull => (actual.is_string() || actual.is_null(), "one of [string null_type]"),
        Output::Object => (actual.declared_name() == "Object", "Object"),
        Output::JsonPatches => (actual.declared_name() == "list(JSONPatch)", "list(JSONPatch)"),
    };
    if fits {
        return Ok(program);
    }
    Err(ExpressionError::Invalid(format!("must evaluate to {wanted} but got {}", actual.declared_name())))
}

fn text(name: &str) -> Field {
    Field::new(name, DeclType::string())
}

fn texts() -> DeclType {
    DeclType::list(DeclType::string())
}

fn request_type() -> DeclType {
    let named = |name: &str, fields: Vec<Field>| DeclType::object(fields).named(name);
    let kind = || named("kubernetes.GroupVersionKind", vec![text("group"), text("version"), text("kind")]);
    let resource =
        || named("kubernetes.GroupVersionResource", vec![text("group"), text("version"), text("resource")]);
    let user = named(
        "kubernetes.UserInfo",
        vec![
            text("username"),
            text("uid"),
            Field::new("groups", texts()),
            Field::new("extra", DeclType::map(texts())),
        ],
    );
    named(
        "kubernetes.AdmissionRequest",
        vec![
            Field::new("kind", kind()),
            Field::new("resource", resource()),
            text("subResource"),
            Field::new("requestKind", kind()),
            Field::new("requestResource", resource()),
            text("requestSubResource"),
            text("name"),
            text("namespace"),
            text("operation"),
            Field::new("userInfo", user),
            Field::new("dryRun", DeclType::boolean()),
            Field::new("options", DeclType::dynamic()),
        ],
    )
}

/// Less than a Namespace: owners and managed fields are none of a policy's business.
fn namespace_type() -> DeclType {
    let labels = || DeclType::map(DeclType::string());
    let metadata = DeclType::object([
        text("name"),
        text("generateName"),
        text("namespace"),
        Field::new("labels", labels()),
        Field::new("annotations", labels()),
        text("UID"),
        Field::new("creationTimestamp", DeclType::date_time()),
        Field::new("deletionGracePeriodSeconds", DeclType::int()),
        Field::new("deletionTimestamp", DeclType::date_time()),
        Field::new("generation", DeclType::int()),
        text("resourceVersion"),
        Field::new("finalizers", texts()),
    ])
    .named("kubernetes.NamespaceMetadata");
    let condition = DeclType::object([
        text("status"),
        text("type"),
        Field::new("lastTransitionTime", DeclType::date_time()),
        text("message"),
        text("reason"),
    ])
    .named("kubernetes.NamespaceCondition");
    let spec = DeclType::object([Field::new("finalizers", texts())]).named("kubernetes.NamespaceSpec");
    let status = DeclType::object([Field::new("conditions", DeclType::list(condition)), text("phase")])
        .named("kubernetes.NamespaceStatus");
    DeclType::object([
        Field::new("metadata", metadata),
        Field::new("spec", spec),
        Field::new("status", status),
    ])
    .named("kubernetes.Namespace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_must_have_the_type_that_its_place_needs() {
        let env = environment(Declared { patches: true, ..Declared::default() });
        let why = |expression: &str, output| compile(&env, expression, output).unwrap_err().to_string();
        assert_eq!(why("1", Output::Bool), "must evaluate to bool but got int");
        assert_eq!(why("object.x", Output::Text), "must evaluate to string but got dyn");
        assert_eq!(why("1", Output::TextOrNull), "must evaluate to one of [string null_type] but got int");
        assert_eq!(why("[1]", Output::JsonPatches), "must evaluate to list(JSONPatch) but got list(int)");
        assert!(compile(&env, "Object{spec: Object.spec{}}", Output::Object).is_ok());
        assert!(why("request.kind.nothing == ''", Output::Bool).contains("undefined field 'nothing'"));
        assert!(why("params.x == 1", Output::Bool).contains("undeclared reference to 'params'"));
    }

    #[test]
    fn variables_are_typed_by_their_expressions() {
        let base = environment(Declared::default());
        let count = compile(&base, "size(request.name)", Output::Any).unwrap();
        let env = with_variables(base, [("count", Some(&count)), ("broken", None)]);
        assert!(compile(&env, "variables.count > 1 && has(variables.count)", Output::Bool).is_ok());
        assert!(compile(&env, "variables.broken.anything", Output::Any).is_ok());
        let error = compile(&env, "variables.other", Output::Any).unwrap_err().to_string();
        assert!(error.contains("undefined field 'other'"), "{error}");
        let error = compile(&env, "variables.count > 'a'", Output::Bool).unwrap_err().to_string();
        assert!(error.contains("'(int, string)'"), "{error}");
    }
}
