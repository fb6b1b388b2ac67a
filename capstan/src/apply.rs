//! Manifests: reading files, and server-side apply.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capstan_controller::{Client, KindName};
use capstan_object::{Key, Scope};
use serde_json::Value;

use crate::change::patch;

/// Limit of a manifest, in bytes.
const LARGEST: u64 = 16 << 20;

/// The objects of files, in order; `-` is stdin. A directory stands for its YAML and JSON files, by name.
pub fn read_all(files: &[PathBuf]) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for file in files {
        for manifest in manifests(file)? {
            let found = read(&text_of(&manifest)?).with_context(|| format!("{}", manifest.display()))?;
            if found.is_empty() {
                bail!("{} has no objects", manifest.display());
            }
            objects.extend(found);
        }
    }
    Ok(objects)
}

fn manifests(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_manifest = |file: &PathBuf| {
        let extension = file.extension().and_then(|it| it.to_str());
        file.is_file() && matches!(extension, Some("yaml" | "yml" | "json"))
    };
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<PathBuf> = paths.into_iter().filter(is_manifest).collect();
    found.sort();
    if found.is_empty() {
        bail!("{} has no .yaml, .yml or .json files", path.display());
    }
    Ok(found)
}

fn text_of(file: &Path) -> Result<String> {
    let mut text = String::new();
    let unreadable = || format!("cannot read {}", file.display());
    if file.as_os_str() == "-" {
        std::io::stdin().take(LARGEST).read_to_string(&mut text).context("cannot read stdin")?;
    } else {
        let opened = std::fs::File::open(file).with_context(unreadable)?;
        opened.take(LARGEST).read_to_string(&mut text).with_context(unreadable)?;
    }
    Ok(text)
}

/// The objects of a manifest, in order. Lists are flattened, empty documents skipped.
pub fn read(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("invalid YAML")?;
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        match document["items"].as_array() {
            Some(items) if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => {
                objects.extend(items.iter().cloned());
            }
            _ => objects.push(document),
        }
    }
    for (number, object) in objects.iter().enumerate() {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if object.pointer(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                bail!("object {} has no {}", number + 1, field[1..].replace('/', "."));
            }
        }
    }
    Ok(objects)
}

/// `Kind/name`.
pub fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

pub struct Applier<'a> {
    client: &'a Client,
    namespace: &'a str,
    known: BTreeMap<(String, String), KindName>,
    dry_run: bool,
}

impl<'a> Applier<'a> {
    /// `namespace` is for objects without one.
    pub fn new(client: &'a Client, namespace: &'a str) -> Self {
        Self { client, namespace, known: BTreeMap::new(), dry_run: false }
    }

    /// Makes every apply a dry run.
    pub fn dry(self) -> Self {
        Self { dry_run: true, ..self }
    }

    /// Applies an object and returns it as the server has it.
    pub async fn apply(&mut self, object: &Value) -> Result<Value> {
        let (kind, key) = self.locate(object).await?;
        let mut body = object.clone();
        if !key.namespace.is_empty() {
            body["metadata"]["namespace"] = key.namespace.as_str().into();
        }
        let path = kind.object_path(&key, None);
        let path = format!("{path}?fieldManager=capstan-cli&force=true");
        let sent = patch(self.client, &path, "application/apply-patch+yaml", &body, self.dry_run).await;
        sent.with_context(|| format!("{} was refused", title(object)))
    }

    pub async fn current(&mut self, object: &Value) -> Result<Option<Value>> {
        let (kind, key) = self.locate(object).await?;
        let found = self.client.get_raw(&kind, &key).await?;
        Ok(found.map(|found| found.parse()).transpose()?)
    }

    async fn locate(&mut self, object: &Value) -> Result<(KindName, Key)> {
        let kind = self.kind(object).await?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = match kind.scope {
            Scope::Cluster => "",
            Scope::Namespaced => object["metadata"]["namespace"].as_str().unwrap_or(self.namespace),
        };
        Ok((kind, Key::new(namespace, name)))
    }

    /// The kind of an object; discovery runs once per kind.
    async fn kind(&mut self, object: &Value) -> Result<KindName> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        if let Some(known) = self.known.get(&(api.clone(), kind.clone())) {
            return Ok(known.clone());
        }
        let served = match self.client.served(&api, &kind).await {
            Err(error) if error.is_not_found() => None,
            served => served?,
        };
        let unknown = || format!("{}: the server does not have the kind {kind} in {api}", title(object));
        let name = served.with_context(unknown)?;
        self.known.insert((api, kind), name.clone());
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_documents_and_lists_is_a_list_of_objects() {
        let text = "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n\
                    apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n";
        let titles: Vec<String> = read(text).expect("objects").iter().map(title).collect();
        assert_eq!(titles, ["ConfigMap/a", "Secret/b"]);
    }

    #[test]
    fn invalid_objects_are_reported_with_position_and_missing_field() {
        let error = |text: &str| format!("{:#}", read(text).expect_err("refused"));
        assert_eq!(error("apiVersion: v1\nkind: Secret\n"), "object 1 has no metadata.name");
        assert_eq!(error("just text"), "object 1 has no apiVersion");
    }

    #[test]
    fn a_directory_is_read_by_name_and_an_empty_manifest_is_an_error() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
        let error = || format!("{:#}", read_all(&[dir.path().to_owned()]).expect_err("refused"));
        write("notes.txt", "not a manifest");
        assert!(error().ends_with("has no .yaml, .yml or .json files"), "{}", error());
        write("b.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: b}}");
        write("a.yml", "{apiVersion: v1, kind: Secret, metadata: {name: a}}");
        let titles: Vec<String> =
            read_all(&[dir.path().to_owned()]).expect("objects").iter().map(title).collect();
        assert_eq!(titles, ["Secret/a", "Secret/b"]);
        write("c.yaml", "# nothing\n---\n");
        assert!(error().ends_with("c.yaml has no objects"), "{}", error());
    }

    #[test]
    fn the_manifests_of_the_demo_are_valid() {
        for text in [include_str!("../../examples/demo.yaml"), include_str!("../../examples/cni.yaml")] {
            assert!(!read(text).expect("objects").is_empty());
        }
    }
}
