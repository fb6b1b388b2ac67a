//! AuthenticationConfiguration files.

use serde::Deserialize;

use crate::issuer::Issuer;
use crate::mapping::Mapping;

/// Why a configuration is refused. Names the field.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("this is not an AuthenticationConfiguration in YAML: {0}")]
    Syntax(String),
    #[error("{field}: {problem}")]
    Field { field: String, problem: String },
}

impl ConfigError {
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Configuration {
    api_version: String,
    kind: String,
    #[serde(default)]
    jwt: Vec<JwtConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JwtConfig {
    pub issuer: IssuerConfig,
    #[serde(default)]
    pub claim_validation_rules: Vec<ClaimRule>,
    pub claim_mappings: ClaimMappings,
    #[serde(default)]
    pub user_validation_rules: Vec<ClaimRule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct IssuerConfig {
    pub url: String,
    #[serde(default, rename = "discoveryURL")]
    pub discovery_url: String,
    /// PEM certificates; those of the operating system if empty.
    #[serde(default)]
    pub certificate_authority: String,
    #[serde(default)]
    pub audiences: Vec<String>,
    #[serde(default)]
    pub audience_match_policy: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimMappings {
    pub username: PrefixedClaimOrExpression,
    #[serde(default)]
    pub groups: PrefixedClaimOrExpression,
    #[serde(default)]
    pub uid: ClaimOrExpression,
    #[serde(default)]
    pub extra: Vec<ExtraMapping>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PrefixedClaimOrExpression {
    pub claim: String,
    pub prefix: Option<String>,
    pub expression: String,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClaimOrExpression {
    pub claim: String,
    pub expression: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExtraMapping {
    pub key: String,
    pub value_expression: String,
}

/// A rule about claims, or about the user; the latter has expressions only.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClaimRule {
    pub claim: String,
    pub required_value: String,
    pub expression: String,
    pub message: String,
}

pub(crate) fn parse(text: &str) -> Result<Vec<Issuer>, ConfigError> {
    let config: Configuration =
        serde_saphyr::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
    let known = ["v1", "v1beta1", "v1alpha1"].map(|version| format!("apiserver.config.k8s.io/{version}"));
    if !known.contains(&config.api_version) {
        return Err(ConfigError::field("apiVersion", format!("must be {}", known[0])));
    }
    if config.kind != "AuthenticationConfiguration" {
        return Err(ConfigError::field("kind", "must be AuthenticationConfiguration"));
    }
    let mut issuers: Vec<Issuer> = Vec::new();
    for (nth, jwt) in config.jwt.iter().enumerate() {
        let at = format!("jwt[{nth}]");
        check_issuer(&jwt.issuer, &format!("{at}.issuer"))?;
        if issuers.iter().any(|issuer| issuer.url() == jwt.issuer.url) {
            return Err(ConfigError::field(format!("{at}.issuer.url"), "is used twice"));
        }
        if jwt.user_validation_rules.iter().any(|rule| !rule.claim.is_empty()) {
            return Err(ConfigError::field(
                format!("{at}.userValidationRules"),
                "have expressions, not claims",
            ));
        }
        let mapping = Mapping::new(jwt, &at)?;
        issuers.push(
            Issuer::new(&jwt.issuer, mapping).map_err(|problem| {
                ConfigError::field(format!("{at}.issuer.certificateAuthority"), problem)
            })?,
        );
    }
    Ok(issuers)
}

fn check_issuer(issuer: &IssuerConfig, at: &str) -> Result<(), ConfigError> {
    for (name, text) in [("url", &issuer.url), ("discoveryURL", &issuer.discovery_url)] {
        if name == "discoveryURL" && text.is_empty() {
            continue;
        }
        let field = format!("{at}.{name}");
        let url = url::Url::parse(text).map_err(|error| ConfigError::field(&field, error.to_string()))?;
        if url.scheme() != "https" {
            return Err(ConfigError::field(field, "must begin with https://"));
        }
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(ConfigError::field(field, "has neither a user, a query nor a fragment"));
        }
    }
    if issuer.discovery_url == issuer.url {
        return Err(ConfigError::field(format!("{at}.discoveryURL"), "differs from url, or is left out"));
    }
    match (issuer.audiences.len(), issuer.audience_match_policy.as_str()) {
        (0, _) => Err(ConfigError::field(format!("{at}.audiences"), "at least one is required")),
        (1, "" | "MatchAny") | (_, "MatchAny") => Ok(()),
        _ => Err(ConfigError::field(
            format!("{at}.audienceMatchPolicy"),
            "must be MatchAny where there are several audiences",
        )),
    }
}
