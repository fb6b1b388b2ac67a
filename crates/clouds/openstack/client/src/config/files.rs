//! Where settings are looked for.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Clouds, ConfigError, LONGEST_FILE, merge};

/// Folders in which settings are looked for, first one first, and files that are looked for before them.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The folders.
    pub folders: Vec<PathBuf>,
    /// A file in place of `clouds.yaml`: `OS_CLIENT_CONFIG_FILE`.
    pub config_file: Option<PathBuf>,
    /// A file in place of `secure.yaml`: `OS_CLIENT_SECURE_FILE`.
    pub secure_file: Option<PathBuf>,
}

impl Files {
    /// The current directory, `~/.config/openstack` and `/etc/openstack`, as other clients have it.
    pub fn default_paths(home: Option<&Path>) -> Self {
        let mut folders = vec![PathBuf::from(".")];
        folders.extend(home.map(|home| home.join(".config/openstack")));
        folders.push(PathBuf::from("/etc/openstack"));
        Self { folders, ..Self::default() }
    }

    /// The settings in the first file of each kind that there is. Those of different folders are not merged.
    pub fn read(&self) -> Result<Clouds, ConfigError> {
        let clouds = self.first("clouds", self.config_file.as_deref())?;
        let secure = self.first("secure", self.secure_file.as_deref())?;
        let public = self.first("clouds-public", None)?;
        let Some(mut merged) = clouds.clone().or_else(|| secure.clone()) else {
            let looked: Vec<String> =
                self.folders.iter().map(|folder| folder.display().to_string()).collect();
            return Err(ConfigError::Unreadable {
                what: "clouds.yaml".to_owned(),
                why: format!("it is in none of {}", looked.join(", ")),
            });
        };
        if let (Some(_), Some(secure)) = (clouds, secure) {
            merge::deep(&mut merged, secure);
        }
        Ok(Clouds::of(merged, public.unwrap_or_default()))
    }

    /// The first file of a kind that there is. One that is there and cannot be read is an error: to go on with another
    /// would be another cloud than the one that was meant.
    fn first(&self, name: &str, given: Option<&Path>) -> Result<Option<Map<String, Value>>, ConfigError> {
        let kinds = ["yaml", "yml", "json"];
        let defaults = self
            .folders
            .iter()
            .flat_map(|folder| kinds.iter().map(move |kind| folder.join(format!("{name}.{kind}"))));
        for path in given.map(Path::to_owned).into_iter().chain(defaults) {
            let unreadable = |why: String| ConfigError::Unreadable { what: path.display().to_string(), why };
            match std::fs::metadata(&path) {
                Ok(file) if file.len() > LONGEST_FILE as u64 => {
                    return Err(unreadable(format!("it is longer than {LONGEST_FILE} bytes")));
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(error.kind().to_string())),
            }
            let text =
                std::fs::read_to_string(&path).map_err(|error| unreadable(error.kind().to_string()))?;
            return read(&path.display().to_string(), &text).map(Some);
        }
        Ok(None)
    }
}

/// A file of settings. JSON is YAML.
pub(super) fn read(what: &str, text: &str) -> Result<Map<String, Value>, ConfigError> {
    let unreadable = |why: &str| ConfigError::Unreadable { what: what.to_owned(), why: why.to_owned() };
    if text.len() > LONGEST_FILE {
        return Err(unreadable("it is too long"));
    }
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    // The parser's message quotes the file, which holds passwords.
    match serde_saphyr::from_str::<Value>(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(unreadable("a map was expected")),
        Err(_) => Err(unreadable("it is not valid YAML")),
    }
}
