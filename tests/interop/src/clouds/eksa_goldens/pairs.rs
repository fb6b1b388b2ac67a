//! `tests/eksa-goldens/pairs.yaml`: which input of a release belongs to which expected objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::cargo;

/// Where EKS Anywhere keeps inputs and expected objects.
const TEST_DATA: &str = "pkg/providers/cloudstack/testdata";
/// Names of files with expected objects begin with it.
const EXPECTED: &str = "expected_";

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pair {
    pub name: String,
    /// Manifests of a cluster.
    #[serde(default)]
    pub input: Option<String>,
    /// Fields that the test sets in them.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    #[serde(default)]
    pub control_plane: Option<String>,
    #[serde(default)]
    pub workers: Option<String>,
    #[serde(default)]
    pub kube_vip_image: Option<String>,
    /// An INI file instead of manifests.
    #[serde(default)]
    pub credentials: Option<String>,
    #[serde(default)]
    pub secrets: Option<String>,
    /// Fields for which we refuse the input.
    #[serde(default)]
    pub refused: BTreeSet<String>,
}

impl Pair {
    fn files(&self) -> impl Iterator<Item = &String> {
        [&self.input, &self.credentials].into_iter().chain(self.expected()).flatten()
    }

    fn expected(&self) -> [&Option<String>; 3] {
        [&self.control_plane, &self.workers, &self.secrets]
    }
}

/// A release of EKS Anywhere.
#[derive(Debug)]
pub struct Release {
    /// Such as `v0.26.1`.
    pub version: String,
    root: PathBuf,
}

impl Release {
    pub fn new(version: &str, root: PathBuf) -> Self {
        Self { version: version.to_owned(), root }
    }

    /// A file of the test data.
    pub fn read(&self, name: &str) -> Result<String> {
        read(&self.root.join(TEST_DATA).join(name))
    }

    /// The pairs whose files this release has. Each of its expected files must be in one.
    pub fn pairs(&self) -> Result<Vec<Pair>> {
        let folder = self.root.join(TEST_DATA);
        let mut files = BTreeSet::new();
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            files.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        let mut pairs = load()?;
        pairs.retain(|pair| pair.files().all(|name| files.contains(name)));
        let used: BTreeSet<&String> =
            pairs.iter().flat_map(|pair| pair.expected().into_iter().flatten()).collect();
        let unused: Vec<&String> =
            files.iter().filter(|name| name.starts_with(EXPECTED) && !used.contains(name)).collect();
        ensure!(unused.is_empty(), "{}: no pair has {unused:?}", self.version);
        Ok(pairs)
    }

    /// The value, with every `{file, pattern}` in it replaced by what the pattern finds in that file of the release.
    pub fn resolve(&self, value: &Value) -> Result<Value> {
        let source =
            |key: &str| value[key].as_str().filter(|_| value.as_object().is_some_and(|it| it.len() == 2));
        if let (Some(file), Some(pattern)) = (source("file"), source("pattern")) {
            let text = read(&self.root.join(file))?;
            let found = Regex::new(pattern)?.find(&text).with_context(|| format!("{file}: no {pattern}"))?;
            return Ok(found.as_str().into());
        }
        Ok(match value {
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), self.resolve(value)?)))
                    .collect::<Result<_>>()?,
            ),
            other => other.clone(),
        })
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn load() -> Result<Vec<Pair>> {
    let path = cargo::root().join("tests/eksa-goldens/pairs.yaml");
    serde_saphyr::from_str(&read(&path)?).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_readable_and_have_names_of_their_own() {
        let pairs = load().unwrap();
        let names: BTreeSet<&String> = pairs.iter().map(|pair| &pair.name).collect();
        assert_eq!(names.len(), pairs.len());
        for pair in &pairs {
            let inputs = [&pair.input, &pair.credentials].into_iter().flatten().count();
            assert_eq!(inputs, 1, "{}", pair.name);
        }
    }
}
