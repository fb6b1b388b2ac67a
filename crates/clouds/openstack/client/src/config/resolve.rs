//! From an entry of `clouds.yaml` to settings that can be used.

use std::collections::BTreeMap;
use std::path::PathBuf;

use capstan_cloud_http::{Secret, Trust};
use serde_json::{Map, Value};
use url::Url;

use super::{Cloud, ConfigError, Interface, merge};
use crate::auth::{Credentials, DomainRef, ProjectRef, Scope, UserRef};
use crate::catalog;
use crate::service::Service;

/// What belongs under `auth` and is understood beside it too.
pub(super) const AUTH: &[&str] = &[
    "auth_url",
    "username",
    "user_id",
    "password",
    "token",
    "project_name",
    "project_id",
    "tenant_name",
    "tenant_id",
    "domain_name",
    "domain_id",
    "user_domain_name",
    "user_domain_id",
    "project_domain_name",
    "project_domain_id",
    "default_domain_name",
    "default_domain_id",
    "default_domain",
    "trust_id",
    "system_scope",
    "application_credential_id",
    "application_credential_name",
    "application_credential_secret",
];

pub(super) fn cloud(
    name: &str,
    entry: &Map<String, Value>,
    profiles: &Map<String, Value>,
    region: Option<&str>,
) -> Result<Cloud, ConfigError> {
    let mut settings = Map::new();
    let profile = ["profile", "cloud"].iter().find_map(|key| entry.get(*key)).and_then(Value::as_str);
    let known_profile = profile.and_then(|profile| profiles.get(profile)).and_then(Value::as_object);
    if let Some(profile) = known_profile {
        merge::over_profile(&mut settings, profile);
    }
    merge::over_profile(&mut settings, entry);
    let mut entry = Entry { name, settings };
    let region = entry.choose_region(region)?;
    let auth = entry.auth()?;
    let Some(auth_url) = auth.get("auth_url").filter(|url| !url.is_empty()) else {
        let mend = match profile {
            Some(profile) if known_profile.is_none() => {
                format!("profile {profile} is not in clouds-public.yaml, so write auth.auth_url out")
            }
            _ => "set it to Keystone's URL".to_owned(),
        };
        return Err(entry.missing("auth.auth_url", &mend));
    };
    let identity_url = catalog::versioned(auth_url, Service::Identity, None)
        .ok_or_else(|| entry.invalid("auth.auth_url", "is not an http or https URL"))?;
    for field in ["cert", "key"] {
        if entry.text(field)?.is_some() {
            return Err(entry.invalid(field, "is not supported: client certificates cannot be used"));
        }
    }
    Ok(Cloud {
        name: name.to_owned(),
        credentials: Auth { entry: &entry, auth: &auth }.credentials()?,
        identity_url,
        region,
        interface: entry.interface()?,
        trust: if entry.verifies()? { Trust::System } else { Trust::Anyone },
        ca_file: entry.text("cacert")?.map(PathBuf::from),
        endpoint_overrides: entry.endpoint_overrides()?,
    })
}

/// The settings of a cloud, profile included.
struct Entry<'a> {
    name: &'a str,
    settings: Map<String, Value>,
}

impl Entry<'_> {
    fn missing(&self, field: &'static str, mend: &str) -> ConfigError {
        ConfigError::Missing { cloud: self.name.to_owned(), field, mend: mend.to_owned() }
    }

    fn invalid(&self, field: &str, why: &str) -> ConfigError {
        ConfigError::Invalid { cloud: self.name.to_owned(), field: field.to_owned(), why: why.to_owned() }
    }

    fn text(&self, field: &str) -> Result<Option<String>, ConfigError> {
        match self.settings.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => scalar(value).map(Some).ok_or_else(|| self.invalid(field, "must be a text")),
        }
    }

    /// `regions` is a list of names or of `{name, values}`; the values are settings of that region. Without a choice the
    /// first one counts.
    fn choose_region(&mut self, asked: Option<&str>) -> Result<Option<String>, ConfigError> {
        let asked = match asked.filter(|asked| !asked.is_empty()) {
            Some(asked) => Some(asked.to_owned()),
            None => self.text("region_name")?.filter(|region| !region.is_empty()),
        };
        let Some(regions) = self.settings.get("regions").and_then(Value::as_array).cloned() else {
            return Ok(asked);
        };
        let name = |region: &Value| match region {
            Value::String(name) => Some(name.clone()),
            region => region.get("name").and_then(Value::as_str).map(str::to_owned),
        };
        let known: Vec<String> = regions.iter().filter_map(name).collect();
        let Some(chosen) = asked.or_else(|| known.first().cloned()) else {
            return Ok(None);
        };
        let Some(region) = regions.iter().find(|region| name(region).as_ref() == Some(&chosen)) else {
            return Err(ConfigError::NoRegion { cloud: self.name.to_owned(), region: chosen, known });
        };
        if let Some(values) = region.get("values").and_then(Value::as_object) {
            merge::over_profile(&mut self.settings, values);
        }
        Ok(Some(chosen))
    }

    /// What is under `auth`, and what belongs there and stands beside it.
    fn auth(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut auth = BTreeMap::new();
        let inside = match self.settings.get("auth") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(inside)) => inside.clone(),
            Some(_) => return Err(self.invalid("auth", "must be a map")),
        };
        for key in AUTH {
            let (field, value) = match inside.get(*key).filter(|value| !value.is_null()) {
                Some(value) => (format!("auth.{key}"), value),
                None => match self.settings.get(*key).filter(|value| !value.is_null()) {
                    Some(value) => ((*key).to_owned(), value),
                    None => continue,
                },
            };
            let text = scalar(value).ok_or_else(|| self.invalid(&field, "must be a text"))?;
            auth.insert((*key).to_owned(), text);
        }
        // What projects were called once.
        for (old, new) in [("tenant_name", "project_name"), ("tenant_id", "project_id")] {
            if let Some(value) = auth.remove(old) {
                auth.entry(new.to_owned()).or_insert(value);
            }
        }
        Ok(auth)
    }

    fn interface(&self) -> Result<Interface, ConfigError> {
        for field in ["interface", "endpoint_type"] {
            let Some(text) = self.text(field)? else {
                continue;
            };
            // `publicURL` is what the second version of Keystone called it.
            return match text.strip_suffix("URL").unwrap_or(&text) {
                "public" | "" => Ok(Interface::Public),
                "internal" => Ok(Interface::Internal),
                "admin" => Ok(Interface::Admin),
                _ => Err(self.invalid(field, "must be public, internal or admin")),
            };
        }
        Ok(Interface::Public)
    }

    fn verifies(&self) -> Result<bool, ConfigError> {
        for (field, means) in [("verify", true), ("insecure", false)] {
            let Some(value) = self.settings.get(field).filter(|value| !value.is_null()) else {
                continue;
            };
            let truth = match value {
                Value::Bool(truth) => *truth,
                Value::String(text) => match text.to_lowercase().as_str() {
                    "true" | "yes" | "on" | "1" => true,
                    "false" | "no" | "off" | "0" => false,
                    _ => return Err(self.invalid(field, "must be true or false")),
                },
                _ => return Err(self.invalid(field, "must be true or false")),
            };
            if truth != means {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `compute_endpoint_override` and its like, with any of a service's names.
    fn endpoint_overrides(&self) -> Result<BTreeMap<Service, Url>, ConfigError> {
        let mut overrides = BTreeMap::new();
        for service in Service::ALL {
            for kind in service.types() {
                let field = format!("{}_endpoint_override", kind.replace('-', "_"));
                if let Some(url) = self.text(&field)? {
                    let url = Url::parse(&url)
                        .ok()
                        .filter(|url| matches!(url.scheme(), "http" | "https"))
                        .ok_or_else(|| self.invalid(&field, "is not an http or https URL"))?;
                    overrides.entry(*service).or_insert(url);
                }
            }
        }
        Ok(overrides)
    }
}

/// YAML makes numbers of passwords that consist of digits.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

/// The credentials of an entry.
struct Auth<'a> {
    entry: &'a Entry<'a>,
    auth: &'a BTreeMap<String, String>,
}

impl Auth<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.auth.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }

    fn credentials(&self) -> Result<Credentials, ConfigError> {
        let kind = match self.entry.text("auth_type")? {
            Some(kind) => kind,
            None => self.entry.text("auth_plugin")?.unwrap_or_default(),
        };
        match kind.as_str() {
            "v3applicationcredential" | "application_credential" => self.application_credential(),
            "token" | "v3token" => self.token(),
            "password" | "v3password" => self.password(),
            // Not said: what there is says it.
            "" if self.get("application_credential_secret").is_some() => self.application_credential(),
            "" if self.get("token").is_some() && self.get("password").is_none() => self.token(),
            "" => self.password(),
            _ => Err(self
                .entry
                .invalid("auth_type", "is not supported: use password, v3applicationcredential or token")),
        }
    }

    fn secret(&self, key: &str, field: &'static str, mend: &str) -> Result<Secret, ConfigError> {
        self.get(key).map(Secret::new).ok_or_else(|| self.entry.missing(field, mend))
    }

    fn password(&self) -> Result<Credentials, ConfigError> {
        Ok(Credentials::Password {
            user: self.user()?,
            password: self.secret("password", "auth.password", "set it, or put it into secure.yaml")?,
            scope: self.scope()?,
        })
    }

    fn token(&self) -> Result<Credentials, ConfigError> {
        let token = self.secret("token", "auth.token", "set it, or use another auth_type")?;
        Ok(Credentials::Token { token, scope: self.scope()? })
    }

    fn application_credential(&self) -> Result<Credentials, ConfigError> {
        let secret = self.secret(
            "application_credential_secret",
            "auth.application_credential_secret",
            "set it, or put it into secure.yaml",
        )?;
        if let Some(id) = self.get("application_credential_id") {
            return Ok(Credentials::ApplicationCredential { id: id.to_owned(), secret });
        }
        let Some(name) = self.get("application_credential_name") else {
            return Err(self.entry.missing(
                "auth.application_credential_id",
                "set it, or application_credential_name and the user",
            ));
        };
        Ok(Credentials::NamedApplicationCredential { user: self.user()?, name: name.to_owned(), secret })
    }

    fn user(&self) -> Result<UserRef, ConfigError> {
        if let Some(id) = self.get("user_id") {
            return Ok(UserRef::Id(id.to_owned()));
        }
        let Some(name) = self.get("username") else {
            return Err(self.entry.missing("auth.username", "set it, or user_id"));
        };
        let Some(domain) = self.domain("user_domain") else {
            return Err(self.entry.missing(
                "auth.user_domain_name",
                "set it, for most clouds to Default; user names are unique within a domain only",
            ));
        };
        Ok(UserRef::Name(name.to_owned(), domain))
    }

    /// The domain of a user or a project: its own, that of the whole entry, or the default one.
    fn domain(&self, of: &str) -> Option<DomainRef> {
        for prefix in [of, "domain", "default_domain"] {
            if let Some(id) = self.get(&format!("{prefix}_id")) {
                return Some(DomainRef::Id(id.to_owned()));
            }
            if let Some(name) = self.get(&format!("{prefix}_name")) {
                return Some(DomainRef::Name(name.to_owned()));
            }
        }
        self.get("default_domain").map(|id| DomainRef::Id(id.to_owned()))
    }

    fn scope(&self) -> Result<Scope, ConfigError> {
        if let Some(trust) = self.get("trust_id") {
            return Ok(Scope::Trust(trust.to_owned()));
        }
        if let Some(id) = self.get("project_id") {
            return Ok(Scope::Project(ProjectRef::Id(id.to_owned())));
        }
        if let Some(name) = self.get("project_name") {
            let Some(domain) = self.domain("project_domain") else {
                return Err(self.entry.missing(
                    "auth.project_domain_name",
                    "set it, for most clouds to Default, or give project_id",
                ));
            };
            return Ok(Scope::Project(ProjectRef::Name(name.to_owned(), domain)));
        }
        match self.get("system_scope") {
            Some("all") => return Ok(Scope::System),
            Some(_) => return Err(self.entry.invalid("auth.system_scope", "must be all")),
            None => {}
        }
        if let Some(id) = self.get("domain_id") {
            return Ok(Scope::Domain(DomainRef::Id(id.to_owned())));
        }
        if let Some(name) = self.get("domain_name") {
            return Ok(Scope::Domain(DomainRef::Name(name.to_owned())));
        }
        Ok(Scope::Default)
    }
}
