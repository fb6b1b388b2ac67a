//! `capstan top`: clusters, the queues of the controllers, and calls to clouds.

mod metrics;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::ListOptions;
use capstan_object::{Conditions as _, Object as _};
use serde::Serialize;

use crate::connection::{ConnectionArgs, Management, Reconnect};
use crate::exit::Exit;
use crate::output::{OutputArgs, Show, TextOptions, eprint_line};
use crate::plugins::Plugins;
use crate::signals;

use metrics::{Sample, samples, sum};

/// Time between two views.
const INTERVAL: Duration = Duration::from_secs(2);

/// Beside the clusters, if the server's page of metrics has none of ours.
const NO_SERIES: &str = "controllers and calls are not shown: /metrics of this server has no series of Capstan's controllers. Those of \
     `capstan manager` are at its own address, which --health-address sets";

/// Arguments of `capstan top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Clusters of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Print it again every two seconds until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Top {
    clusters: Vec<ClusterRow>,
    controllers: Vec<ControllerRow>,
    calls: Vec<CallRow>,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct ClusterRow {
    namespace: String,
    name: String,
    available: bool,
    machines: usize,
    ready_machines: usize,
    deleting_machines: usize,
}

#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct ControllerRow {
    controller: String,
    /// Objects that wait for a reconcile.
    queue: f64,
    /// Reconciles in progress.
    active: f64,
    reconciles: f64,
    errors: f64,
    retries: f64,
    /// Seconds of the longest reconcile in progress.
    longest_seconds: f64,
}

#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct CallRow {
    cloud: String,
    endpoint: String,
    command: String,
    calls: f64,
    /// Calls that repeat an earlier one.
    repeats: f64,
    errors: f64,
    mean_milliseconds: f64,
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        let management = if args.all_namespaces { management.within("") } else { management };
        let mut reconnect = Reconnect::default();
        let stop = signals::stop();
        let mut noted = false;
        tokio::pin!(stop);
        loop {
            if let Some(top) = reconnect.retry(look(&management).await)? {
                args.output.show(&top)?;
                if top.controllers.is_empty() && !std::mem::replace(&mut noted, true) {
                    eprint_line(NO_SERIES);
                }
            }
            if !args.watch {
                return Ok(Exit::Done);
            }
            tokio::select! {
                _ = &mut stop => return Ok(Exit::Done),
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    })
}

async fn look(management: &Management) -> Result<Top> {
    let options = ListOptions::default();
    let clusters: Vec<Cluster> = management.client.list_all(&management.namespace, &options).await?;
    let machines: Vec<Machine> = management.client.list_all(&management.namespace, &options).await?;
    let page = management.client.document("/metrics").await;
    let page = page.context("the server's metrics cannot be read; they need `get` on the path /metrics")?;
    let samples = samples(&String::from_utf8_lossy(&page));
    let clouds: Vec<&str> = management.plugins.providers().map(|provider| provider.name()).collect();
    Ok(Top {
        clusters: cluster_rows(&clusters, &machines),
        controllers: controller_rows(&samples),
        calls: call_rows(&samples, &clouds),
    })
}

fn cluster_rows(clusters: &[Cluster], machines: &[Machine]) -> Vec<ClusterRow> {
    let row = |cluster: &Cluster| {
        let meta = cluster.metadata();
        let own: Vec<&Machine> = machines
            .iter()
            .filter(|it| it.spec.cluster_name == meta.name && it.metadata.namespace == meta.namespace)
            .collect();
        let count = |fits: &dyn Fn(&Machine) -> bool| own.iter().filter(|machine| fits(machine)).count();
        ClusterRow {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            available: cluster.status.conditions.is_condition_true("Available"),
            machines: own.len(),
            ready_machines: count(&|machine| machine.status.conditions.is_condition_true("Ready")),
            deleting_machines: count(&|machine| machine.metadata.is_deleting()),
        }
    };
    clusters.iter().map(row).collect()
}

fn controller_rows(samples: &[Sample]) -> Vec<ControllerRow> {
    let reconciles = samples.iter().filter(|sample| sample.name == "controller_runtime_reconcile_total");
    let names: BTreeSet<&str> = reconciles.map(|sample| sample.label("controller")).collect();
    let row = |name: &&str| ControllerRow {
        controller: (*name).to_owned(),
        queue: sum(samples, "workqueue_depth", "name", name),
        active: sum(samples, "controller_runtime_active_workers", "controller", name),
        reconciles: sum(samples, "controller_runtime_reconcile_total", "controller", name),
        errors: sum(samples, "controller_runtime_reconcile_errors_total", "controller", name),
        retries: sum(samples, "workqueue_retries_total", "name", name),
        longest_seconds: sum(samples, "workqueue_longest_running_processor_seconds", "name", name),
    };
    names.iter().map(row).collect()
}

/// Providers count their calls as `NAME_requests_total` and so on, by endpoint and command.
fn call_rows(samples: &[Sample], clouds: &[&str]) -> Vec<CallRow> {
    let mut rows = Vec::new();
    for cloud in clouds {
        let mut counted: BTreeMap<(&str, &str), [f64; 5]> = BTreeMap::new();
        let parts = [
            "requests_total",
            "repeats_total",
            "errors_total",
            "request_seconds_sum",
            "request_seconds_count",
        ];
        for sample in samples {
            let part = sample.name.strip_prefix(cloud).and_then(|rest| rest.strip_prefix('_'));
            let Some(at) = part.and_then(|part| parts.iter().position(|known| *known == part)) else {
                continue;
            };
            counted.entry((sample.label("endpoint"), sample.label("command"))).or_default()[at] +=
                sample.value;
        }
        rows.extend(counted.into_iter().map(
            |((endpoint, command), [calls, repeats, errors, seconds, count])| CallRow {
                cloud: (*cloud).to_owned(),
                endpoint: endpoint.to_owned(),
                command: command.to_owned(),
                calls,
                repeats,
                errors,
                mean_milliseconds: if count > 0.0 { (seconds / count * 1000.0).round() } else { 0.0 },
            },
        ));
    }
    rows.sort_by(|one, other| other.calls.total_cmp(&one.calls));
    rows
}

/// Rows of calls in the text; `-o wide` has all.
const MOST_CALLS: usize = 10;

impl Show for Top {
    fn text(&self, options: &TextOptions) -> String {
        let clusters = self.clusters.iter().map(|row| {
            let state = if row.available { "Available" } else { "NotAvailable" };
            let machines = format!("{}/{}", row.ready_machines, row.machines);
            [
                row.namespace.clone(),
                row.name.clone(),
                state.to_owned(),
                machines,
                row.deleting_machines.to_string(),
            ]
        });
        let busy = |row: &&ControllerRow| options.wide || row.reconciles > 0.0;
        let controllers = self.controllers.iter().filter(busy).map(|row| {
            let longest = format!("{:.0}s", row.longest_seconds);
            let numbers =
                [row.queue, row.active, row.reconciles, row.errors, row.retries].map(|it| format!("{it:.0}"));
            let [queue, active, reconciles, errors, retries] = numbers;
            [row.controller.clone(), queue, active, reconciles, errors, retries, longest]
        });
        let shown = if options.wide { usize::MAX } else { MOST_CALLS };
        let calls = self.calls.iter().take(shown).map(|row| {
            let [calls, repeats, errors] = [row.calls, row.repeats, row.errors].map(|it| format!("{it:.0}"));
            [
                row.cloud.clone(),
                row.command.clone(),
                calls,
                repeats,
                errors,
                format!("{:.0}ms", row.mean_milliseconds),
            ]
        });
        let tables = [
            table(&["NAMESPACE", "CLUSTER", "STATE", "READY", "DELETING"], clusters),
            table(
                &["CONTROLLER", "QUEUE", "ACTIVE", "RECONCILES", "ERRORS", "RETRIES", "LONGEST"],
                controllers,
            ),
            table(&["CLOUD", "CALL", "CALLS", "REPEATS", "ERRORS", "MEAN"], calls),
        ];
        let filled: Vec<String> = tables.into_iter().flatten().collect();
        filled.join("\n")
    }

    fn names(&self) -> Vec<String> {
        self.clusters.iter().map(|row| format!("cluster/{}", row.name)).collect()
    }
}

/// Aligned columns; `None` without rows.
fn table<const N: usize>(head: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> Option<String> {
    let rows: Vec<[String; N]> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let head = head.map(str::to_owned);
    let all: Vec<&[String; N]> = std::iter::once(&head).chain(&rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &&[String; N]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    Some(all.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_and_calls_are_read_from_the_metrics() {
        let page = "\
controller_runtime_reconcile_total{controller=\"machine\",result=\"success\"} 7
controller_runtime_reconcile_total{controller=\"machine\",result=\"error\"} 2
controller_runtime_reconcile_errors_total{controller=\"machine\"} 2
workqueue_depth{controller=\"machine\",name=\"machine\"} 3
workqueue_retries_total{controller=\"machine\",name=\"machine\"} 4
toy_requests_total{endpoint=\"http://c\",command=\"create\"} 5
toy_errors_total{endpoint=\"http://c\",command=\"create\",code=\"500\"} 1
toy_request_seconds_sum{endpoint=\"http://c\",command=\"create\"} 0.5
toy_request_seconds_count{endpoint=\"http://c\",command=\"create\"} 5
other_requests_total{command=\"x\"} 9
";
        let samples = samples(page);
        let top = Top {
            clusters: vec![ClusterRow {
                namespace: "default".to_owned(),
                name: "demo".to_owned(),
                available: true,
                machines: 6,
                ready_machines: 5,
                deleting_machines: 1,
            }],
            controllers: controller_rows(&samples),
            calls: call_rows(&samples, &["toy"]),
        };
        insta::assert_snapshot!(top.text(&TextOptions::plain()), @r"
        NAMESPACE  CLUSTER  STATE      READY  DELETING
        default    demo     Available  5/6    1

        CONTROLLER  QUEUE  ACTIVE  RECONCILES  ERRORS  RETRIES  LONGEST
        machine     3      0       9           2       4        0s

        CLOUD  CALL    CALLS  REPEATS  ERRORS  MEAN
        toy    create  5      0        1       100ms
        ");
    }
}
