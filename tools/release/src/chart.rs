//! The packed chart, rendered by Helm's own engine (`--render-chart`): with its defaults it is the plain manifest, and
//! every choice in its values renders.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use capstan_test_support::peers;
use serde_json::Value;

use crate::context::Release;

/// Helm at the release that the chart is tried with.
const GO_MOD: &str = "module capstan.peers/chart\n\ngo 1.26.0\n\nrequire helm.sh/helm/v3 v3.19.0\n";
const NAMESPACE: &str = "capstan-system";

/// Values, and an object that appears by them or is gone by them.
const CHOICES: &[(&str, &str, bool)] = &[
    ("{networkPolicy: {enabled: true}}", "NetworkPolicy/capstan", true),
    ("{podDisruptionBudget: {enabled: false}}", "PodDisruptionBudget/capstan", false),
    ("{rbac: {clusterAdmin: true}}", "ClusterRole/capstan-manager", false),
    (
        "{rbac: {extraRules: [{apiGroups: [example.org], resources: ['*'], verbs: ['*']}]}}",
        "ClusterRole/capstan-manager",
        true,
    ),
    (
        "{controllers: [core], installCrds: false, extraArgs: [--watch-filter=a], imagePullSecrets: [{name: a}], \
         nodeSelector: {a: b}, tolerations: [{operator: Exists}], podAnnotations: {a: b}, priorityClassName: a}",
        "Deployment/capstan",
        true,
    ),
];

/// Objects by kind and name.
type Objects = BTreeMap<String, Value>;

pub fn check(release: &Release, out: &Path) -> Result<()> {
    let program = peers::small_program("helm-chart", GO_MOD, include_str!("chart.go"))?;
    let package = out.join(format!("capstan-{}.tgz", release.version));
    let render = |values: &str| -> Result<Objects> {
        let mut command = Command::new(&program);
        let output = command.arg(&package).args(["capstan", NAMESPACE, values]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the chart does not render with {values}: {}", said.trim());
        objects(&String::from_utf8(output.stdout)?)
    };
    let mut plain = objects(&std::fs::read_to_string(out.join("capstan-manager.yaml"))?)?;
    ensure!(plain.remove(&format!("Namespace/{NAMESPACE}")).is_some(), "the manifest makes no namespace");
    let rendered = render("{}")?;
    for name in plain.keys().chain(rendered.keys()) {
        ensure!(plain.get(name) == rendered.get(name), "{name} of chart and manifest differ");
    }
    for (values, name, wanted) in CHOICES {
        ensure!(render(values)?.contains_key(*name) == *wanted, "{values}: {name}");
    }
    println!("release: Helm renders the chart, {} objects as in the manifest", rendered.len());
    Ok(())
}

fn objects(text: &str) -> Result<Objects> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("no YAML")?;
    let named = documents.into_iter().filter(|document| !document.is_null()).map(|document| {
        let name = format!(
            "{}/{}",
            document["kind"].as_str().context("an object without a kind")?,
            document["metadata"]["name"].as_str().context("an object without a name")?
        );
        Ok((name, document))
    });
    named.collect()
}
