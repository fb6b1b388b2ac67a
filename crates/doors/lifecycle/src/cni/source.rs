//! Where the manifests of a CNI come from: a file, a directory, a chart.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Manifests;

/// What is applied if the operator configured nothing: enough for simulated machines, whose nodes wait for a DaemonSet.
pub(super) const BUILT_IN: &str = include_str!("built_in.yaml");

/// Most files of a directory, and most bytes of all of them.
const MOST_FILES: usize = 5_000;
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// Most bytes of manifests.
const MOST_MANIFESTS: u64 = 8 * 1024 * 1024;

/// Where manifests come from.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Source {
    #[default]
    BuiltIn,
    Manifests(Arc<str>),
    Chart(Chart),
}

/// A Helm chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chart {
    /// What `helm` is given: a path or a URL.
    pub reference: String,
    /// Its version, if the reference does not have it.
    pub version: Option<String>,
    /// Digest of its files, if they are on this host.
    pub content: Option<String>,
}

impl Source {
    /// Reads a source: `https://….tgz`, `oci://…:VERSION`, or a path.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some((scheme, _)) = text.split_once("://") {
            return remote(scheme, text).map(Self::Chart);
        }
        let path = fs::canonicalize(text).map_err(|error| format!("cannot be read: {error}"))?;
        let failed = |error: io::Error| format!("cannot be read: {error}");
        if path.is_dir() {
            if path.join("Chart.yaml").is_file() {
                return Ok(Self::Chart(local(&path, tree_digest(&path)?)));
            }
            return directory(&path).and_then(|text| manifests(&text));
        }
        let size = fs::metadata(&path).map_err(failed)?.len();
        if path.extension().is_some_and(|end| end == "tgz") {
            let mut hash = Sha256::new();
            hash.update(bounded(size, MOST_BYTES).and_then(|()| fs::read(&path).map_err(failed))?);
            return Ok(Self::Chart(local(&path, hex(&hash.finalize()))));
        }
        bounded(size, MOST_MANIFESTS)?;
        manifests(&fs::read_to_string(&path).map_err(failed)?)
    }
}

fn local(path: &Path, content: String) -> Chart {
    Chart { reference: path.display().to_string(), version: None, content: Some(content) }
}

fn remote(scheme: &str, text: &str) -> Result<Chart, String> {
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("leave credentials out of the URL: `helm registry login` stores them".to_owned());
    }
    match scheme {
        "oci" => {
            let named = text.rsplit_once(':').filter(|(_, version)| !version.contains('/'));
            let (reference, version) =
                named.ok_or("a chart in a registry needs a version: oci://HOST/CHART:VERSION")?;
            // Helm writes `+` of a version as `_` in tags.
            let version = Some(version.replace('_', "+"));
            Ok(Chart { reference: reference.to_owned(), version, content: None })
        }
        "https" if url.path().ends_with(".tgz") => {
            Ok(Chart { reference: text.to_owned(), version: None, content: None })
        }
        "https" => Err("the URL of a chart ends with .tgz: download manifests and give the file".to_owned()),
        _ => Err(format!("{scheme}:// is not supported: use https://, oci:// or a path")),
    }
}

fn manifests(text: &str) -> Result<Source, String> {
    Manifests::parse(text)?;
    Ok(Source::Manifests(text.into()))
}

/// The manifests of a directory, in order of the names of their files.
fn directory(path: &Path) -> Result<String, String> {
    let failed = |error: io::Error| format!("cannot be read: {error}");
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)?.take(MOST_FILES) {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|it| end == *it)) {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err("it has neither a Chart.yaml nor a .yaml, .yml or .json file".to_owned());
    }
    files.sort();
    let mut text = String::new();
    for file in files {
        let size = fs::metadata(&file).map_err(failed)?.len();
        bounded(size.saturating_add(text.len() as u64), MOST_MANIFESTS)?;
        let own = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        Manifests::parse(&own).map_err(|why| format!("{}: {why}", file.display()))?;
        text.push_str("---\n");
        text.push_str(&own);
        text.push('\n');
    }
    Ok(text)
}

fn bounded(size: u64, most: u64) -> Result<(), String> {
    match size <= most {
        true => Ok(()),
        false => Err(format!("it has {size} bytes: at most {most} are read")),
    }
}

/// Digest of the files of a directory. Links are not followed: what they point to counts.
fn tree_digest(root: &Path) -> Result<String, String> {
    let failed = |error: io::Error| format!("cannot be read: {error}");
    let mut folders = vec![root.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            match fs::symlink_metadata(&path).map_err(failed)?.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
            if files.len() + folders.len() > MOST_FILES {
                return Err(format!("it has more than {MOST_FILES} files"));
            }
        }
    }
    files.sort();
    let mut hash = Sha256::new();
    let mut size = 0;
    for file in files {
        let meta = fs::symlink_metadata(&file).map_err(failed)?;
        size += meta.len();
        bounded(size, MOST_BYTES)?;
        let content = match meta.is_symlink() {
            true => fs::read_link(&file).map_err(failed)?.display().to_string().into_bytes(),
            false => fs::read(&file).map_err(failed)?,
        };
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for bytes in [name.as_bytes(), &content] {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
    }
    Ok(hex(&hash.finalize()))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAME}\n";

    fn read(path: &Path) -> Result<Source, String> {
        Source::read(&path.display().to_string())
    }

    #[test]
    fn manifests_are_a_file_or_a_directory() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path()).expect_err("empty").contains("neither a Chart.yaml"));
        for (file, name) in [("2.yaml", "b"), ("1.yml", "a")] {
            fs::write(folder.path().join(file), NAMESPACE.replace("NAME", name)).expect("written");
        }
        let Ok(Source::Manifests(text)) = read(folder.path()) else { panic!("manifests") };
        assert!(text.find("name: a") < text.find("name: b"), "{text}");
        assert!(matches!(read(&folder.path().join("1.yml")), Ok(Source::Manifests(_))));
        fs::write(folder.path().join("3.json"), "{}").expect("written");
        assert!(read(folder.path()).expect_err("no object").contains("3.json: "));
        assert!(read(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_chart_on_this_host_is_another_when_a_file_of_it_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let content = || match read(folder.path()) {
            Ok(Source::Chart(chart)) => chart.content.expect("a digest"),
            other => panic!("{other:?}"),
        };
        fs::write(folder.path().join("Chart.yaml"), "name: cilium\n").expect("written");
        fs::create_dir(folder.path().join("templates")).expect("a folder");
        let before = content();
        assert_eq!(before, content());
        fs::write(folder.path().join("templates/a.yaml"), "a").expect("written");
        assert_ne!(before, content());
    }

    #[test]
    fn a_chart_elsewhere_has_a_version() {
        let source = Source::read("oci://registry.example:5000/charts/cilium:1.17.4").expect("a chart");
        let reference = "oci://registry.example:5000/charts/cilium".to_owned();
        let chart = Chart { reference, version: Some("1.17.4".to_owned()), content: None };
        assert_eq!(source, Source::Chart(chart));
        assert!(matches!(Source::read("https://charts.example/cilium-1.17.4.tgz"), Ok(Source::Chart(_))));
        for (wrong, why) in [
            ("oci://registry.example:5000/charts/cilium", "needs a version"),
            ("https://charts.example/install.yaml", "ends with .tgz"),
            ("http://charts.example/cilium.tgz", "use https://"),
            ("https://me:hidden@charts.example/cilium.tgz", "leave credentials out"),
        ] {
            let error = Source::read(wrong).expect_err(wrong);
            assert!(error.contains(why) && !error.contains("hidden"), "{error}");
        }
    }
}
