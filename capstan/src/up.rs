//! `capstan up`: apply a manifest and wait for its clusters.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::apply::{Applier, read_all};
use crate::connection::{ConnectionArgs, Management, is_unreachable};
use crate::exit::Exit;
use crate::follow::{Ending, Limits, Screen, follow};
use crate::output::{Show as _, TextOptions, eprint_line, print_line};
use crate::plan::{self, Proposal};
use crate::plugins::Plugins;
use crate::wait::duration;

/// Arguments of `capstan up`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Manifest, or directory of manifests; several are applied in order, `-` is stdin
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Validate the manifest on the server and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not print the plan first
    #[arg(long)]
    no_plan: bool,
    /// Apply and return immediately
    #[arg(long)]
    no_wait: bool,
    /// Print a line for every transition instead of a tree
    #[arg(long)]
    lines: bool,
    /// Timeout, such as 90s or 1h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
    /// How long to wait while the same error blocks the cluster
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    patience: Duration,
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let objects = read_all(&args.files)?;
    let clusters = clusters(&objects);
    args.connection.run(plugins, async |management| {
        // The whole manifest is validated before any of it is applied.
        validate(&management, &objects).await?;
        if args.dry_run {
            print_line(&format!("{} objects would be applied", objects.len()))?;
            return Ok(Exit::Done);
        }
        let planned = match args.no_plan {
            true => None,
            false => print_plan(&management, &objects).await,
        };
        let mut applier = Applier::new(&management.client, &management.namespace);
        for object in &objects {
            applier.apply(object).await?;
        }
        eprint_line(&format!("{} objects applied", objects.len()));
        if args.no_wait {
            return Ok(Exit::Done);
        }
        for (namespace, cluster) in &clusters {
            let there = management.within(namespace.as_deref().unwrap_or(&management.namespace));
            let exit = until_ready(&there, cluster, args, planned).await?;
            if exit != Exit::Done {
                return Ok(exit);
            }
        }
        Ok(Exit::Done)
    })
}

/// Namespace, if any is named, and name of each Cluster.
fn clusters(objects: &[Value]) -> Vec<(Option<String>, String)> {
    let is_cluster = |object: &&Value| {
        object["kind"] == "Cluster"
            && object["apiVersion"].as_str().is_some_and(|api| api.starts_with("cluster.x-k8s.io/"))
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let named = objects.iter().filter(is_cluster).map(|object| {
        let meta = &object["metadata"];
        (text(&meta["namespace"]), text(&meta["name"]).unwrap_or_default())
    });
    named.collect()
}

/// Dry run of every object; the error lists all that are refused.
async fn validate(management: &Management, objects: &[Value]) -> Result<()> {
    let mut applier = Applier::new(&management.client, &management.namespace).dry();
    let mut refused = Vec::new();
    for object in objects {
        match applier.apply(object).await {
            Err(error) if is_unreachable(&error) => return Err(error),
            Err(error) => refused.push(format!("{error:#}")),
            Ok(_) => {}
        }
    }
    match refused.as_slice() {
        [] => Ok(()),
        [one] => bail!("{one}; nothing was applied"),
        all => bail!(
            "{} of {} objects are refused; nothing was applied\n{}",
            all.len(),
            objects.len(),
            all.join("\n")
        ),
    }
}

/// Prints the plan and returns how long it takes. A plan that fails does not stop `up`.
async fn print_plan(management: &Management, objects: &[Value]) -> Option<Duration> {
    let proposal = Proposal { apply: objects.to_vec(), ..Proposal::default() };
    match plan::preview(management, proposal).await {
        Ok(Some(plan)) => {
            eprint_line(plan.text(&TextOptions::plain()).trim_end());
            Some(plan.duration()).filter(|duration| !duration.is_zero())
        }
        Ok(None) => None,
        Err(error) => {
            eprint_line(&format!("no plan: {error:#}"));
            None
        }
    }
}

async fn until_ready(
    management: &Management,
    cluster: &str,
    args: &Args,
    planned: Option<Duration>,
) -> Result<Exit> {
    let mut screen = Screen::new(args.lines);
    let limits =
        Limits { timeout: Some(args.timeout), patience: Some(args.patience), planned, ready_polls: 4 };
    let stop = crate::signals::stop();
    let name = format!("{cluster} -n {}", management.namespace);
    Ok(match follow(management, cluster, &mut screen, limits, stop).await? {
        Ending::Ready(took) => {
            let seconds = took.as_secs();
            print_line(&format!(
                "cluster {cluster} is ready in {seconds} s; get access with `capstan kubeconfig {name}`"
            ))?;
            Exit::Done
        }
        Ending::Gone => bail!("cluster {cluster} was deleted meanwhile"),
        Ending::Interrupted => {
            eprint_line(&format!(
                "stopped watching; controllers continue: `capstan wait {name}` waits, `capstan describe {name}` shows the state"
            ));
            Exit::Failed
        }
        Ending::TimedOut => {
            let seconds = args.timeout.as_secs();
            eprint_line(&format!(
                "cluster {cluster} is not ready after {seconds}s; run `capstan why {name}`"
            ));
            Exit::TimedOut
        }
        Ending::Blocked(code) => {
            eprint_line(&format!("{code} blocks cluster {cluster}; run `capstan why {name}` for the fix"));
            Exit::Blocked
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::clusters;

    #[test]
    fn only_clusters_of_cluster_api_are_followed() {
        let objects = [
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"}}),
            json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "b", "namespace": "n"}}),
            json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "c"}}),
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "d"}}),
        ];
        assert_eq!(clusters(&objects), [(None, "a".to_owned()), (Some("n".to_owned()), "b".to_owned())]);
    }
}
