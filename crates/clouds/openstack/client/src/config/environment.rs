//! Environment variables, for command lines. Controllers must not read them: a setting of the process would become one of
//! every tenant.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::{Cloud, Clouds, ConfigError, Files, resolve};

/// Variables that are settings of a cloud, without `OS_`.
const SETTINGS: &[&str] = &[
    "auth_type",
    "region_name",
    "interface",
    "endpoint_type",
    "cacert",
    "cert",
    "key",
    "verify",
    "insecure",
];
type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Variables by name.
pub struct Environment<'a>(Box<Variables<'a>>);

impl<'a> Environment<'a> {
    /// Those of the process.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// Any.
    pub fn new(variables: impl Fn(&str) -> Option<String> + 'a) -> Self {
        Self(Box::new(variables))
    }

    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// Where the variables say that settings are looked for.
    pub fn files(&self) -> Files {
        let home = self.get("HOME").map(PathBuf::from);
        let mut files = Files::default_paths(home.as_deref());
        files.config_file = self.get("OS_CLIENT_CONFIG_FILE").map(PathBuf::from);
        files.secure_file = self.get("OS_CLIENT_SECURE_FILE").map(PathBuf::from);
        files
    }

    /// The cloud that is asked for: by name, or `OS_CLOUD`, or the other variables if they name a Keystone, or the only
    /// one of the files.
    pub fn cloud(&self, name: Option<&str>, region: Option<&str>) -> Result<Cloud, ConfigError> {
        let name = name.map(str::to_owned).or_else(|| self.get("OS_CLOUD"));
        let region = region.map(str::to_owned).or_else(|| self.get("OS_REGION_NAME"));
        if name.is_none() && self.get("OS_AUTH_URL").is_some() {
            return self.variables().cloud(Some("envvars"), region.as_deref())?.read_ca_file();
        }
        self.files().read()?.cloud(name.as_deref(), region.as_deref())?.read_ca_file()
    }

    /// The variables as a cloud of their own.
    fn variables(&self) -> Clouds {
        let pick = |names: &[&str]| -> Map<String, Value> {
            let variable = |name: &str| self.get(&format!("OS_{}", name.to_uppercase()));
            names.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?.into()))).collect()
        };
        let mut settings = pick(SETTINGS);
        settings.insert("auth".to_owned(), Value::Object(pick(resolve::AUTH)));
        let clouds = json!({ "envvars": settings });
        Clouds { clouds: clouds.as_object().cloned().unwrap_or_default(), ..Clouds::default() }
    }
}
