//! The bill of materials, as CycloneDX: every crate that is linked into the program, with licence and checksum, from
//! `cargo metadata` and Cargo.lock. And the licence texts themselves, which most licences want to be handed on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::context::Release;

const PROGRAM: &str = "capstan";

/// A crate and the crates it uses, as ids of `cargo metadata`.
struct Part<'a> {
    package: &'a Value,
    uses: Vec<&'a str>,
}

/// What the program is linked from: dependencies that are neither for tests nor for build scripts.
fn linked(metadata: &Value) -> Result<BTreeMap<&str, Part<'_>>> {
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"])?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let program = packages.iter().find(|(_, package)| package["name"] == PROGRAM);
    let mut open = vec![*program.context("cargo metadata does not know the program")?.0];
    let mut all = BTreeMap::new();
    while let Some(id) = open.pop() {
        if all.contains_key(id) {
            continue;
        }
        let node = nodes.get(id).with_context(|| format!("{id} is not resolved"))?;
        let package = *packages.get(id).with_context(|| format!("{id} is not a package"))?;
        let is_linked = |dependency: &&Value| {
            list(&dependency["dep_kinds"]).is_ok_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        let mut uses: Vec<&str> =
            list(&node["deps"])?.iter().filter(is_linked).filter_map(|it| it["pkg"].as_str()).collect();
        // Macros run in the compiler.
        uses.retain(|used| !packages.get(used).is_some_and(|package| is_macro(package)));
        open.extend(&uses);
        all.insert(id, Part { package, uses });
    }
    Ok(all)
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array();
    targets.is_some_and(|all| {
        all.iter()
            .any(|target| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&json!("proc-macro"))))
    })
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().context("cargo metadata has another form than expected")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

/// Checksums of Cargo.lock by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for entry in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) = (field("name"), field("version"), field("checksum")) {
            all.insert((name, version), sum);
        }
    }
    all
}

/// The bill of materials.
pub fn bill(release: &Release, metadata: &Value) -> Result<String> {
    let parts = linked(metadata)?;
    let sums = checksums(&release.source_text("Cargo.lock")?);
    let component = |package: &Value, kind: &str| {
        let mut component = json!({
            "type": kind,
            "bom-ref": purl(package),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(package),
        });
        if let Some(license) = package["license"].as_str() {
            // Crates of before SPDX expressions write a slash for "or".
            component["licenses"] = json!([{"expression": license.replace('/', " OR ").replace("  ", " ")}]);
        }
        let key = (text(package, "name").to_owned(), text(package, "version").to_owned());
        if let Some(sum) = sums.get(&key) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        component
    };
    let program = parts.values().find(|part| part.package["name"] == PROGRAM).context("no program")?;
    let mut components: Vec<Value> = parts
        .values()
        .filter(|part| part.package["name"] != PROGRAM)
        .map(|part| component(part.package, "library"))
        .collect();
    components.sort_by_key(|component| text(component, "bom-ref").to_owned());
    let mut dependencies: Vec<Value> = parts
        .values()
        .map(|part| {
            let uses: BTreeSet<String> =
                part.uses.iter().filter_map(|id| Some(purl(parts.get(id)?.package))).collect();
            json!({"ref": purl(part.package), "dependsOn": uses})
        })
        .collect();
    dependencies.sort_by_key(|dependency| text(dependency, "ref").to_owned());
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.timestamp(),
            "component": component(program.package, "application"),
            "properties": [{"name": "capstan:commit", "value": release.revision}],
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&bill)?))
}

/// Licence texts of the crates of others; each text once, with the crates that come under it.
pub fn notices(metadata: &Value) -> Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut without: BTreeSet<String> = BTreeSet::new();
    for part in linked(metadata)?.values() {
        let package = part.package;
        if package["source"].is_null() {
            continue;
        }
        let name =
            format!("{} {} ({})", text(package, "name"), text(package, "version"), text(package, "license"));
        let folder =
            Path::new(text(package, "manifest_path")).parent().context("a manifest without a folder")?;
        let found = license_files(folder)?;
        if found.is_empty() {
            without.insert(name.clone());
        }
        for text in found {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    let mut out = "The program contains the work of others, under these licences.\n".to_owned();
    let mut sorted: Vec<_> = texts.into_iter().map(|(text, names)| (names, text)).collect();
    sorted.sort();
    for (names, text) in sorted {
        let names: Vec<_> = names.into_iter().collect();
        writeln!(out, "\n{}\n{}\n\n{}", "=".repeat(80), names.join("\n"), text.trim_end())?;
    }
    if !without.is_empty() {
        writeln!(out, "\n{}\nWithout a text of their own:\n", "=".repeat(80))?;
        for name in without {
            writeln!(out, "{name}")?;
        }
    }
    Ok(out)
}

fn license_files(folder: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .with_context(|| format!("list {}", folder.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let upper = name.to_uppercase();
            ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|start| upper.starts_with(start))
        })
        .collect();
    names.sort_unstable();
    let paths = names.iter().map(|name| folder.join(name)).filter(|path| path.is_file());
    Ok(paths.filter_map(|path| std::fs::read_to_string(path).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::release;

    fn package(name: &str, source: Value, kind: &str) -> Value {
        json!({
            "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source,
            "targets": [{"kind": [kind]}], "manifest_path": "/nowhere/Cargo.toml",
        })
    }

    fn metadata() -> Value {
        let uses = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        json!({
            "packages": [
                package("capstan", Value::Null, "bin"),
                package("store", Value::Null, "lib"),
                package("bytes", json!("registry"), "lib"),
                package("derive", json!("registry"), "proc-macro"),
                package("syn", json!("registry"), "lib"),
                package("cc", json!("registry"), "lib"),
                package("proptest", json!("registry"), "lib"),
            ],
            "resolve": {"nodes": [
                {"id": "capstan", "deps": [uses("store", Value::Null), uses("proptest", json!("dev"))]},
                {"id": "store", "deps": [
                    uses("bytes", Value::Null), uses("derive", Value::Null), uses("cc", json!("build"))]},
                {"id": "bytes", "deps": []},
                {"id": "derive", "deps": [uses("syn", Value::Null)]},
                {"id": "syn", "deps": []},
                {"id": "cc", "deps": []},
                {"id": "proptest", "deps": []},
            ]},
        })
    }

    #[test]
    fn what_is_linked_is_listed_and_what_only_builds_or_tests_is_not() {
        let bill: Value = serde_json::from_str(&bill(&release(), &metadata()).unwrap()).unwrap();
        let names: Vec<_> = list(&bill["components"]).unwrap().iter().map(|it| text(it, "name")).collect();
        assert_eq!(names, ["bytes", "store"]);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["metadata"]["component"]["name"], "capstan");
        assert_eq!(
            bill["dependencies"][2],
            json!({"ref": "pkg:cargo/store@1.0.0", "dependsOn": ["pkg:cargo/bytes@1.0.0"]})
        );
    }

    #[test]
    fn checksums_are_those_of_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ff\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let all = checksums(lock);
        assert_eq!(all.len(), 1);
        assert_eq!(all[&("a".to_owned(), "1.0.0".to_owned())], "ff");
    }
}
