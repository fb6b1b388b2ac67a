//! From claims to a user, by names of claims or by CEL expressions.

use std::collections::BTreeMap;

use capstan_cel::{Activation, Budget, DeclType, Env, Field, Program};
use serde_json::{Value, json};

use crate::Identity;
use crate::config::{ClaimOrExpression, ClaimRule, ConfigError, JwtConfig, PrefixedClaimOrExpression};

/// What all expressions may cost for one token.
const BUDGET: i64 = 10_000_000;

/// The mapping of one issuer, ready to be used.
pub(crate) struct Mapping {
    username: Source,
    groups: Option<Source>,
    uid: Option<Source>,
    extra: Vec<(String, Program)>,
    claim_rules: Vec<Rule>,
    user_rules: Vec<Rule>,
    types: Types,
}

enum Source {
    Claim { name: String, prefix: String },
    Expression(Program),
}

enum Rule {
    Required { claim: String, value: String },
    Expression { program: Program, message: String, text: String },
}

struct Types {
    claims: DeclType,
    user: DeclType,
}

impl Types {
    fn new() -> Self {
        let text = |name: &str| Field::new(name, DeclType::string());
        let texts = || DeclType::list(DeclType::string());
        let user = DeclType::object(vec![
            text("username"),
            text("uid"),
            Field::new("groups", texts()),
            Field::new("extra", DeclType::map(texts())),
        ]);
        Self { claims: DeclType::map(DeclType::dynamic()), user: user.named("kubernetes.UserInfo") }
    }
}

impl Mapping {
    /// Compiles the expressions of an issuer. `at` is its field.
    pub fn new(config: &JwtConfig, at: &str) -> Result<Self, ConfigError> {
        let types = Types::new();
        let on_claims = Env::kubernetes().with_variable("claims", types.claims.clone());
        let on_user = Env::kubernetes().with_variable("user", types.user.clone());
        let mappings = &config.claim_mappings;
        let field = |name: &str| format!("{at}.claimMappings.{name}");
        let username = prefixed(&on_claims, &mappings.username, &field("username"))?
            .ok_or_else(|| ConfigError::field(field("username"), "claim or expression is required"))?;
        let groups = prefixed(&on_claims, &mappings.groups, &field("groups"))?;
        let uid = source(&on_claims, &mappings.uid, &field("uid"))?;
        let mut extra = Vec::new();
        for (nth, mapping) in mappings.extra.iter().enumerate() {
            let at = field(&format!("extra[{nth}]"));
            let key = &mapping.key;
            if !key.contains('/') || key.to_lowercase() != *key {
                return Err(ConfigError::field(
                    format!("{at}.key"),
                    "must be a domain, a slash and a path, in lower case",
                ));
            }
            if extra.iter().any(|(known, _)| known == key) {
                return Err(ConfigError::field(format!("{at}.key"), "is used twice"));
            }
            let program = compile(&on_claims, &mapping.value_expression, &format!("{at}.valueExpression"))?;
            extra.push((key.clone(), program));
        }
        let claim_rules =
            rules(&on_claims, &config.claim_validation_rules, &format!("{at}.claimValidationRules"))?;
        let user_rules =
            rules(&on_user, &config.user_validation_rules, &format!("{at}.userValidationRules"))?;
        checks_email(config, at)?;
        Ok(Self { username, groups, uid, extra, claim_rules, user_rules, types })
    }

    /// The user that verified claims describe.
    pub fn user(&self, claims: &Value) -> Result<Identity, String> {
        let variables = Activation::new().bind("claims", claims, &self.types.claims);
        let mut budget = Budget::new(BUDGET);
        for rule in &self.claim_rules {
            rule.check(claims, &variables, &mut budget)?;
        }
        let mut evaluate = |program: &Program| -> Result<Value, String> {
            let value = program.evaluate(&variables, &mut budget).map_err(|error| error.to_string())?;
            value.to_json().map_err(|error| error.to_string())
        };
        let username = match &self.username {
            Source::Claim { name, prefix } => {
                let name_of =
                    claims[name].as_str().ok_or_else(|| format!("claim {name:?} is not a string"))?;
                if name == "email" && claims["email_verified"].as_bool().is_some_and(|verified| !verified) {
                    return Err("email not verified".to_owned());
                }
                format!("{prefix}{name_of}")
            }
            Source::Expression(program) => match evaluate(program)? {
                Value::String(text) => text,
                _ => return Err("claimMappings.username.expression did not return a string".to_owned()),
            },
        };
        if username.is_empty() {
            return Err("the username is empty".to_owned());
        }
        let groups = match &self.groups {
            None => Vec::new(),
            Some(Source::Claim { name, prefix }) => {
                let groups =
                    texts(&claims[name]).ok_or_else(|| format!("claim {name:?} is not a list of strings"))?;
                groups.into_iter().map(|group| format!("{prefix}{group}")).collect()
            }
            Some(Source::Expression(program)) => {
                texts(&evaluate(program)?).ok_or("claimMappings.groups.expression did not return strings")?
            }
        };
        let uid = match &self.uid {
            None => String::new(),
            Some(Source::Claim { name, .. }) => {
                claims[name].as_str().ok_or_else(|| format!("claim {name:?} is not a string"))?.to_owned()
            }
            Some(Source::Expression(program)) => match evaluate(program)? {
                Value::String(text) => text,
                _ => return Err("claimMappings.uid.expression did not return a string".to_owned()),
            },
        };
        let mut extra = BTreeMap::new();
        for (key, program) in &self.extra {
            let values = texts(&evaluate(program)?)
                .ok_or_else(|| format!("the expression of the extra key {key:?} did not return strings"))?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        let identity = Identity { username, uid, groups, extra };
        self.check_user(&identity, &mut budget)?;
        Ok(identity)
    }

    fn check_user(&self, identity: &Identity, budget: &mut Budget) -> Result<(), String> {
        let user = json!({
            "username": identity.username, "uid": identity.uid,
            "groups": identity.groups, "extra": identity.extra,
        });
        let variables = Activation::new().bind("user", &user, &self.types.user);
        self.user_rules.iter().try_for_each(|rule| rule.check(&user, &variables, budget))
    }
}

impl Rule {
    fn check(&self, claims: &Value, variables: &Activation<'_>, budget: &mut Budget) -> Result<(), String> {
        match self {
            Self::Required { claim, value } => match claims[claim].as_str() {
                Some(found) if found == value => Ok(()),
                _ => Err(format!("claim {claim:?} does not have the required value")),
            },
            Self::Expression { program, message, text } => {
                let holds = program.evaluate(variables, budget).map_err(|error| error.to_string())?;
                match holds.as_bool() {
                    Some(true) => Ok(()),
                    _ if message.is_empty() => Err(format!("validation expression '{text}' failed")),
                    _ => Err(message.clone()),
                }
            }
        }
    }
}

/// A string, or a list of strings; null is an empty list.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) if text.is_empty() => Some(Vec::new()),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn compile(env: &Env, expression: &str, field: &str) -> Result<Program, ConfigError> {
    env.compile(expression).map_err(|error| ConfigError::field(field.to_owned(), error.to_string()))
}

fn source(env: &Env, config: &ClaimOrExpression, at: &str) -> Result<Option<Source>, ConfigError> {
    match (config.claim.as_str(), config.expression.as_str()) {
        ("", "") => Ok(None),
        (claim, "") => Ok(Some(Source::Claim { name: claim.to_owned(), prefix: String::new() })),
        ("", expression) => compile(env, expression, &format!("{at}.expression"))
            .map(|program| Some(Source::Expression(program))),
        _ => Err(ConfigError::field(at.to_owned(), "claim and expression exclude each other")),
    }
}

fn prefixed(env: &Env, config: &PrefixedClaimOrExpression, at: &str) -> Result<Option<Source>, ConfigError> {
    let plain = ClaimOrExpression { claim: config.claim.clone(), expression: config.expression.clone() };
    match (source(env, &plain, at)?, &config.prefix) {
        (Some(Source::Claim { name, .. }), Some(prefix)) => {
            Ok(Some(Source::Claim { name, prefix: prefix.clone() }))
        }
        (Some(Source::Claim { .. }), None) => Err(ConfigError::field(
            format!("{at}.prefix"),
            "is required with a claim, so that its users cannot be confused with others; it may be \"\"",
        )),
        (other, None) => Ok(other),
        (_, Some(_)) => Err(ConfigError::field(format!("{at}.prefix"), "is for claims, not for expressions")),
    }
}

fn rules(env: &Env, rules: &[ClaimRule], at: &str) -> Result<Vec<Rule>, ConfigError> {
    let mut compiled = Vec::new();
    for (nth, rule) in rules.iter().enumerate() {
        let at = format!("{at}[{nth}]");
        compiled.push(match (rule.claim.as_str(), rule.expression.as_str()) {
            ("", "") => return Err(ConfigError::field(at, "claim or expression is required")),
            (claim, "") => Rule::Required { claim: claim.to_owned(), value: rule.required_value.clone() },
            ("", expression) => Rule::Expression {
                program: compile(env, expression, &format!("{at}.expression"))?,
                message: rule.message.clone(),
                text: expression.to_owned(),
            },
            _ => return Err(ConfigError::field(at, "claim and expression exclude each other")),
        });
    }
    Ok(compiled)
}

/// An address that nobody has verified must not make a user.
fn checks_email(config: &JwtConfig, at: &str) -> Result<(), ConfigError> {
    if !config.claim_mappings.username.expression.contains("claims.email") {
        return Ok(());
    }
    let expressions = [&config.claim_mappings.username.expression].into_iter();
    let expressions = expressions
        .chain(config.claim_mappings.extra.iter().map(|extra| &extra.value_expression))
        .chain(config.claim_validation_rules.iter().map(|rule| &rule.expression));
    if expressions.into_iter().any(|expression| expression.contains("claims.email_verified"))
        || config.claim_validation_rules.iter().any(|rule| rule.claim == "email_verified")
    {
        return Ok(());
    }
    Err(ConfigError::field(
        format!("{at}.claimMappings.username.expression"),
        "uses claims.email: claims.email_verified must be used in it, in an extra value or in a claim validation rule",
    ))
}
