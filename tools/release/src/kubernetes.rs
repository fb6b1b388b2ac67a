//! What is installed on a Kubernetes: the chart, plain manifests, and the repository of clusterctl.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use crate::context::Release;
use crate::tree::{Tree, gzip};

const CHART: &str = "packaging/helm/capstan";
/// The line of the chart's values that the name of the image stands in.
const REPOSITORY: &str = "\n  repository: capstan\n";

/// Contract of Cluster API that the provider's kinds are made for.
const CONTRACT: &str = "v1beta2";
const PROVIDER: &str = "infrastructure-cloudstack";

/// Files of a release, by name.
pub type Files = Vec<(String, Vec<u8>)>;

/// All of it.
pub fn pack(release: &Release) -> Result<Files> {
    let mut files = vec![
        (format!("capstan-{}.tgz", release.version), chart(release)?),
        (
            "capstan-manager.yaml".to_owned(),
            manifest(release, "packaging/manifests/manager.yaml")?.into_bytes(),
        ),
    ];
    let repository = repository(release)?;
    // As assets beside each other, for a repository on the web, and as folders, for one on a disk.
    files.extend(repository.clone());
    let mut tree = Tree::default();
    for (name, bytes) in repository {
        tree.file(&format!("{PROVIDER}/v{}/{name}", release.version), 0o644, bytes);
    }
    files.push((
        format!("capstan-{}-clusterctl.tar.gz", release.version),
        gzip(&tree.tar("", release.time)?)?,
    ));
    Ok(files)
}

/// The chart as Helm packs it, with the name of this release's image.
fn chart(release: &Release) -> Result<Vec<u8>> {
    let mut chart = Tree::read(&release.root.join(CHART))?;
    let about = chart.text("Chart.yaml")?;
    for field in ["version", "appVersion"] {
        let line = format!("\n{field}: {}\n", release.version);
        ensure!(about.contains(&line), "{CHART}/Chart.yaml: {field} is not {}", release.version);
    }
    let values = chart.text("values.yaml")?;
    ensure!(values.contains(REPOSITORY), "{CHART}/values.yaml names no image");
    let values = values.replacen(REPOSITORY, &format!("\n  repository: {}\n", release.image), 1);
    chart.file("values.yaml", 0o644, values);
    chart.file("LICENSE", 0o644, release.source("LICENSE")?);
    let mut tree = Tree::default();
    tree.graft("capstan", &chart);
    // Helm takes a chart of files alone; directories are implied.
    tree.entries.retain(|_, entry| entry.bytes.is_some());
    gzip(&tree.tar("", release.time)?)
}

fn manifest(release: &Release, path: &str) -> Result<String> {
    let text = release.source_text(path)?;
    ensure!(text.contains("@IMAGE@"), "{path} names no image");
    let image = format!("{}:{}", release.image, release.version);
    Ok(text.replace("@IMAGE@", &image).replace("@VERSION@", &release.version))
}

/// What clusterctl reads of a provider.
fn repository(release: &Release) -> Result<Files> {
    let definitions = release.made.text(&format!("definitions/{PROVIDER}.yaml"))?;
    let controllers = manifest(release, &format!("packaging/clusterctl/{PROVIDER}.yaml"))?;
    let components = format!("{}\n---\n{}", controllers.trim_end(), definitions);
    let mut files = vec![
        ("infrastructure-components.yaml".to_owned(), components.into_bytes()),
        ("metadata.yaml".to_owned(), metadata(&release.version)?.into_bytes()),
    ];
    for (name, template) in Tree::read(&release.root.join("templates/cloudstack"))?.files() {
        files.push((name.to_owned(), template.to_vec()));
    }
    Ok(files)
}

/// Which contract each minor version keeps. A minor version that changes it gets a line of its own here.
fn metadata(version: &str) -> Result<String> {
    let mut numbers = version.split('.');
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    let (major, minor) = number().zip(number()).with_context(|| format!("{version} is not a version"))?;
    let mut text =
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n".to_owned();
    for minor in (1..=minor).rev() {
        writeln!(text, "- major: {major}\n  minor: {minor}\n  contract: {CONTRACT}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::context::testing::release;
    use crate::tree::gunzip;

    fn documents(text: &str) -> Vec<Value> {
        serde_saphyr::from_multiple(text).unwrap()
    }

    fn packed() -> BTreeMap<String, Vec<u8>> {
        pack(&release()).unwrap().into_iter().collect()
    }

    fn text(name: &str) -> String {
        String::from_utf8(packed().remove(name).unwrap_or_else(|| panic!("no {name}"))).unwrap()
    }

    fn kinds(objects: &[Value]) -> Vec<&str> {
        objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
    }

    #[test]
    fn manifests_name_the_image_and_leave_no_placeholder() {
        for name in ["capstan-manager.yaml", "infrastructure-components.yaml"] {
            let text = text(name);
            let objects = documents(&text);
            let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let image = format!("registry.example/capstan:{}", release().version);
            assert_eq!(container["image"], image.as_str(), "{name}");
            assert!(!text.contains('@'), "{name}");
        }
    }

    #[test]
    fn the_webhooks_service_has_the_name_that_the_manager_registers() {
        for name in ["capstan-manager.yaml", "infrastructure-components.yaml"] {
            let objects = documents(&text(name));
            let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
            let arguments =
                deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
            let manager = arguments.iter().find_map(|flag| flag.as_str()?.strip_prefix("--name=")).unwrap();
            let service = format!("{manager}-webhooks");
            assert!(
                objects
                    .iter()
                    .any(|it| it["kind"] == "Service" && it["metadata"]["name"] == service.as_str()),
                "{name}: no Service {service}"
            );
        }
    }

    #[test]
    fn components_bring_definitions_and_the_manager_installs_none() {
        let text = text("infrastructure-components.yaml");
        assert!(kinds(&documents(&text)).contains(&"CustomResourceDefinition"));
        assert!(!text.contains("--install-crds"));
    }

    #[test]
    fn the_repository_has_a_folder_per_version() {
        let archive = packed().remove(&format!("capstan-{}-clusterctl.tar.gz", release().version)).unwrap();
        let tree = Tree::from_tar(&gunzip(&archive).unwrap()).unwrap();
        for name in ["infrastructure-components.yaml", "metadata.yaml", "cluster-template.yaml"] {
            tree.text(&format!("{PROVIDER}/v{}/{name}", release().version)).unwrap();
        }
    }

    #[test]
    fn every_minor_version_has_a_contract() {
        let text = metadata("0.3.1-rc.1").unwrap();
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        let minors: Vec<_> =
            read["releaseSeries"].as_array().unwrap().iter().map(|it| it["minor"].clone()).collect();
        assert_eq!(minors, [3, 2, 1]);
        assert!(metadata("latest").is_err());
    }

    #[test]
    fn the_chart_is_one_folder_with_the_image_in_its_values() {
        let chart = packed().remove(&format!("capstan-{}.tgz", release().version)).unwrap();
        let tree = Tree::from_tar(&gunzip(&chart).unwrap()).unwrap();
        let values: Value = serde_saphyr::from_str(tree.text("capstan/values.yaml").unwrap()).unwrap();
        assert_eq!(values["image"]["repository"], "registry.example/capstan");
        assert!(tree.entries.contains_key("capstan/templates/deployment.yaml"));
    }

    /// Paths of the settings, such as `image.tag`. Empty maps are for users to fill.
    fn settings(values: &Value, below: &str, found: &mut Vec<String>) {
        for (name, value) in values.as_object().unwrap() {
            let path = format!("{below}{name}");
            match value.as_object().is_some_and(|map| !map.is_empty()) && !FREE.contains(&path.as_str()) {
                true => settings(value, &format!("{path}."), found),
                false => found.push(path),
            }
        }
    }

    /// Maps whose keys are the user's.
    const FREE: [&str; 2] = ["resources", "networkPolicy.metricsFrom"];

    #[test]
    fn every_setting_of_the_chart_is_documented_and_checked() {
        let source = |name: &str| release().source_text(&format!("{CHART}/{name}")).unwrap();
        let values: Value = serde_saphyr::from_str(&source("values.yaml")).unwrap();
        let schema: Value = serde_json::from_str(&source("values.schema.json")).unwrap();
        let mut paths = Vec::new();
        settings(&values, "", &mut paths);
        let page = source("README.md");
        let mut documented: Vec<_> =
            page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        documented.sort_unstable();
        assert_eq!(documented, paths);
        for path in &paths {
            let pointer = format!("/properties/{}", path.replace('.', "/properties/"));
            assert!(schema.pointer(&pointer).is_some(), "values.schema.json has no {path}");
        }
    }

    /// The chart's role, without what templates decide.
    #[test]
    fn chart_and_manifests_grant_the_same() {
        let chart = release().source_text("packaging/helm/capstan/templates/rbac.yaml").unwrap();
        let rules = chart.split("\nrules:\n").nth(1).unwrap().split("\n{{-").next().unwrap();
        for (name, manager) in
            [("capstan-manager.yaml", "capstan"), ("infrastructure-components.yaml", "capstan-cloudstack")]
        {
            let rules = rules.replace("{{ .Release.Name }}", manager);
            let of_chart: Value = serde_saphyr::from_str(&rules).unwrap();
            let objects = documents(&text(name));
            let role = objects.iter().find(|object| object["kind"] == "ClusterRole").unwrap();
            assert_eq!(role["rules"], of_chart, "{name}");
        }
    }
}
