//! What the dashboard and the alert rules say is true: every metric that they name is one that docs/metrics.md lists.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::context::testing::release;

/// Words of PromQL that the files use besides metrics.
const WORDS: &[&str] = &[
    "absent",
    "by",
    "changes",
    "histogram_quantile",
    "increase",
    "label_values",
    "max",
    "min_over_time",
    "or",
    "rate",
    "sum",
    "time",
    "topk",
];
/// Prometheus' own.
const OF_PROMETHEUS: &[&str] = &["up"];

/// Names of metrics in an expression: words that are neither PromQL's nor labels.
fn metrics(expression: &str) -> BTreeSet<String> {
    // Labels stand in braces, or in the parentheses after `by`.
    let mut plain = String::new();
    let mut rest = expression.replace("$__rate_interval", "");
    for (open, close) in [("{", '}'), ("by (", ')'), ("[", ']'), ("\"", '"')] {
        plain.clear();
        let mut text = rest.as_str();
        while let Some((before, after)) = text.split_once(open) {
            plain.push_str(before);
            plain.push(' ');
            text = after.split_once(close).map_or("", |(_, after)| after);
        }
        plain.push_str(text);
        rest = plain.clone();
    }
    // The second argument of label_values is a label.
    let rest = match rest.split_once("label_values(") {
        Some((_, inside)) => inside.split(',').next().unwrap_or_default().to_owned(),
        None => rest,
    };
    rest.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .filter(|word| word.starts_with(|letter: char| letter.is_ascii_lowercase()))
        .filter(|word| !WORDS.contains(word) && !OF_PROMETHEUS.contains(word))
        .map(str::to_owned)
        .collect()
}

/// Names in the tables of the page, as Prometheus serves them.
fn documented() -> BTreeSet<String> {
    let page = release().source_text("docs/metrics.md").unwrap();
    let mut names = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        for name in cells[1].split('`').skip(1).step_by(2) {
            names.insert(name.to_owned());
            if cells[2].contains("histogram") || cells[2].contains("summary") {
                names.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
            }
        }
    }
    names
}

fn alerts() -> Vec<Value> {
    let file: Value =
        serde_saphyr::from_str(&release().source_text("packaging/monitoring/alerts.yaml").unwrap()).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&release().source_text("packaging/monitoring/dashboard.json").unwrap()).unwrap()
}

fn dashboard_expressions() -> Vec<String> {
    let dashboard = dashboard();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let queries = variables.filter(|it| it["type"] == "query").map(|it| text(&it["definition"]));
    targets.map(|target| text(&target["expr"])).chain(queries).collect()
}

#[test]
fn metrics_of_an_expression_are_found() {
    for (expression, wanted) in [
        (
            r#"sum by (instance, le) (rate(a_bucket{job="x", verb!~"WATCH|CONNECT"}[5m])) > 1"#,
            vec!["a_bucket"],
        ),
        ("a_sum / b_count", vec!["a_sum", "b_count"]),
        (r#"absent(up{job="capstan"}) or sum by (job) (up{job="capstan"}) == 0"#, vec![]),
        (r#"label_values(a_total{job=~"$job"}, instance)"#, vec!["a_total"]),
        ("time() - a_seconds{job=~\"$job\"}", vec!["a_seconds"]),
    ] {
        assert_eq!(metrics(expression).into_iter().collect::<Vec<_>>(), wanted, "{expression}");
    }
}

#[test]
fn alerts_and_dashboard_name_documented_metrics() {
    let documented = documented();
    let of_alerts = alerts().into_iter().map(|rule| rule["expr"].as_str().unwrap().to_owned());
    let mut used = BTreeSet::new();
    for expression in of_alerts.chain(dashboard_expressions()) {
        let found = metrics(&expression);
        let unknown: Vec<_> = found.difference(&documented).collect();
        assert!(unknown.is_empty(), "{unknown:?} of {expression:?} are not in docs/metrics.md");
        used.extend(found);
    }
    assert!(used.len() > 20, "{used:?}");
}

#[test]
fn every_alert_says_what_is_wrong_and_what_to_do() {
    let alerts = alerts();
    let mut names = BTreeSet::new();
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        assert!(names.insert(name), "{name} is defined twice");
        assert!(["warning", "critical"].contains(&alert["labels"]["severity"].as_str().unwrap()), "{name}");
        for field in ["summary", "description"] {
            assert!(!alert["annotations"][field].as_str().unwrap_or_default().is_empty(), "{name}: {field}");
        }
    }
    assert!(alerts.len() >= 10);
}

#[test]
fn panels_of_the_dashboard_have_ids_of_their_own_and_do_not_overlap() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut taken = BTreeSet::new();
    for panel in panels {
        let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{} overlaps another panel", panel["title"]);
            }
        }
    }
}
