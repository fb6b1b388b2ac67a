//! `cargo xtask alerts`: the alert rules, checked by promtool, with the metrics that a running Capstan serves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use regex::Regex;
use serde_json::Value;

use crate::api::Api;
use crate::bed::process::Program;
use crate::bed::tool::Tool;
use crate::bed::{Workdir, capstan, ports, wait};
use crate::cargo;
use crate::peers::Cache;
use crate::text::Lap;

const RULES: &str = "packaging/monitoring/alerts.yaml";
const DASHBOARD: &str = "packaging/monitoring/dashboard.json";
/// Unit tests of the rules: series, and the alerts that fire on them.
const CASES: &str = "tests/monitoring/alerts.yaml";
/// Clouds of the demo, whose metrics differ.
const CLOUDS: [&str; 2] = ["cloudstack", "openstack"];

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("alerts")?;
    let mut lap = Lap::start();
    let promtool = Tool::new(Cache::locate()?.built("promtool")?, workdir.folder("home")?);
    let path = |file: &str| cargo::root().join(file);
    let text = |file: &str| std::fs::read_to_string(path(file)).with_context(|| file.to_owned());

    let rules = path(RULES);
    promtool
        .plain(&["check", "rules", "--lint=all", "--lint-fatal", rules.to_str().context("path")?])
        .await?;
    let cases = path(CASES);
    promtool.plain(&["test", "rules", cases.to_str().context("path")?]).await?;
    let rules: Value = serde_saphyr::from_str(&text(RULES)?)?;
    let cases: Value = serde_saphyr::from_str(&text(CASES)?)?;
    let (defined, tried) = (defined(&rules), tried(&cases));
    for alert in &defined {
        let (fires, is_quiet) = (tried.contains(&(alert, true)), tried.contains(&(alert, false)));
        ensure!(fires && is_quiet, "{CASES}: no test in which {alert} fires, or none in which it does not");
    }
    println!("{} alerts fire when they should", defined.len());
    lap.end("rules");

    let mut served = BTreeSet::new();
    for cloud in CLOUDS {
        served.extend(served_by_demo(&binary, cloud, &workdir.folder(cloud)?).await?);
        lap.end(cloud);
    }
    let mut named = metrics(&rules.to_string())?;
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)?)?;
    named.extend(metrics(&dashboard.to_string())?);
    let missing: Vec<_> = named.iter().filter(|name| !served.contains(*name)).collect();
    ensure!(missing.is_empty(), "alerts or dashboard name metrics that are not served: {missing:?}");
    ensure!(named.len() > 20, "only {named:?} are named");
    println!("{} metrics of the alerts and the dashboard are served", named.len());
    workdir.passed();
    Ok(())
}

fn defined(rules: &Value) -> Vec<String> {
    let groups = rules["groups"].as_array().into_iter().flatten();
    let alerts = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
    alerts.filter_map(|rule| rule["alert"].as_str().map(str::to_owned)).collect()
}

/// Alerts of the unit tests, and whether each is expected to fire.
fn tried(cases: &Value) -> BTreeSet<(&str, bool)> {
    let tests = cases["tests"].as_array().into_iter().flatten();
    let expected = tests.flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten());
    expected
        .filter_map(|one| Some((one["alertname"].as_str()?, !one["exp_alerts"].as_array()?.is_empty())))
        .collect()
}

/// Names of metrics of ours in a text. Histograms are named by what they count, not by their series.
fn metrics(text: &str) -> Result<BTreeSet<String>> {
    let prefixes = "apiserver|capstan|cloudstack|controller_runtime|openstack|process|workqueue";
    let names = Regex::new(&format!(r"\b(?:{prefixes})_[a-z_]+\b"))?;
    let series = Regex::new("_(bucket|sum|count)$")?;
    Ok(names.find_iter(text).map(|name| series.replace(name.as_str(), "").into_owned()).collect())
}

/// Names of the metrics that a management cluster serves when it has made a cluster on a simulated cloud.
async fn served_by_demo(binary: &Path, cloud: &str, folder: &Path) -> Result<BTreeSet<String>> {
    let data = folder.join("data");
    let mut demo = Program::new("demo", binary)
        .args(["demo", "--headless", "--speed", "200", "--cloud", cloud, "--listen", "127.0.0.1:0"])
        .args(["--endpoint-port", &ports::free_port()?.to_string()])
        .arg("--data-dir")
        .arg(&data)
        .start(folder)?;
    let ready = format!("a cluster on {cloud} is ready");
    wait::until(&ready, Duration::from_secs(180), || {
        let log = demo.check().and_then(|()| Ok(std::fs::read_to_string(demo.log())?));
        async { Ok(log?.contains("cluster demo is ready").then_some(())) }
    })
    .await?;
    let api = Api::from_kubeconfig(&data.join("admin.kubeconfig"))?;
    let reply = api.get("/metrics").await?;
    ensure!(reply.status.is_success(), "/metrics answers {}", reply.status);
    demo.stop(Duration::from_secs(20))?;
    let text = String::from_utf8(reply.body.to_vec())?;
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_named_once() {
        let text =
            r#"rate(capstan_sync_seconds_sum{job="capstan"}[5m]) / rate(capstan_sync_seconds_count[5m])"#;
        assert_eq!(metrics(text).unwrap(), BTreeSet::from(["capstan_sync_seconds".to_owned()]));
    }
}
