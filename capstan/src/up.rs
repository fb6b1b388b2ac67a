//! `capstan up`: from a manifest to a running cluster in one command.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use capstan_capi_types::core::Cluster;
use capstan_controller::ListOptions;
use serde_json::Value;

use crate::apply::{Applier, read_all};
use crate::exit::Exit;
use crate::follow::{Ending, Limits, Screen, follow};
use crate::output::{How, Show as _, say, talk};
use crate::plan::{self, Wish};
use crate::plugins::Plugins;
use crate::reach::{Management, Reach, is_silence};
use crate::wait::duration;

/// As many clusters are copied for a plan that nobody asked for: a second or two.
const AT_ONCE: usize = 10;

/// Arguments of `capstan up`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Manifest of the cluster; several are applied in order, `-` is stdin
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reach: Reach,
    /// Have the server judge the manifest, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not say first what the manifest will do
    #[arg(long)]
    no_plan: bool,
    /// Apply and return at once
    #[arg(long)]
    no_wait: bool,
    /// Print a line for every transition instead of a tree
    #[arg(long)]
    lines: bool,
    /// How long to follow at most, such as 90s or 1h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
    /// How long the same error may stand in the way
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    patience: Duration,
}

/// Applies a manifest and follows its cluster until it is ready.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let objects = read_all(&args.files)?;
    let clusters = clusters(&objects);
    args.reach.run(plugins, async |management| {
        // All of it is judged before any of it is applied.
        judge(&management, &objects).await?;
        if args.dry_run {
            say(&format!("{} objects would be applied", objects.len()))?;
            return Ok(Exit::Done);
        }
        if !args.no_plan {
            foretell(&management, &objects).await;
        }
        let mut applier = Applier::new(&management.client, &management.namespace);
        for object in &objects {
            applier.apply(object).await?;
        }
        talk(&format!("{} objects applied", objects.len()));
        if args.no_wait {
            return Ok(Exit::Done);
        }
        for (namespace, cluster) in &clusters {
            let there = management.within(namespace.as_deref().unwrap_or(&management.namespace));
            let exit = until_ready(&there, cluster, args).await?;
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

/// Has the server judge every object; all that it refuses is said at once.
async fn judge(management: &Management, objects: &[Value]) -> Result<()> {
    let mut applier = Applier::new(&management.client, &management.namespace).dry();
    let mut refused = Vec::new();
    for object in objects {
        match applier.apply(object).await {
            Err(error) if is_silence(&error) => return Err(error),
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

/// Says what will happen. That it cannot be said is no reason not to do it.
async fn foretell(management: &Management, objects: &[Value]) {
    let there = management.client.list_all::<Cluster>(&management.namespace, &ListOptions::default()).await;
    let many = there.map_or(0, |clusters| clusters.len());
    if many > AT_ONCE {
        return talk(&format!(
            "{many} clusters in namespace {} take a while to copy: `capstan plan` says what will happen",
            management.namespace
        ));
    }
    match plan::foresee(management, Wish { apply: objects.to_vec(), delete: Vec::new() }).await {
        Ok(plan) => talk(plan.text(&How::plain()).trim_end()),
        Err(error) => talk(&format!("what will happen cannot be said: {error:#}")),
    }
}

async fn until_ready(management: &Management, cluster: &str, args: &Args) -> Result<Exit> {
    let mut screen = Screen::new(args.lines);
    let limits = Limits { timeout: Some(args.timeout), patience: Some(args.patience), looks: 4 };
    let stop = crate::signals::stop();
    let name = format!("{cluster} -n {}", management.namespace);
    Ok(match follow(management, cluster, &mut screen, limits, stop).await? {
        Ending::Ready => {
            say(&format!("cluster {cluster} is ready; `capstan kubeconfig {name}` gives access to it"))?;
            Exit::Done
        }
        Ending::Gone => bail!("cluster {cluster} is gone: somebody deleted it meanwhile"),
        Ending::Interrupted => {
            talk(&format!(
                "the work goes on without this command; `capstan wait {name}` waits for it, `capstan describe {name}` shows it"
            ));
            Exit::Failed
        }
        Ending::TimedOut => {
            let seconds = args.timeout.as_secs();
            talk(&format!("cluster {cluster} is not ready after {seconds}s; `capstan why {name}` says why"));
            Exit::TimedOut
        }
        Ending::Blocked(code) => {
            talk(&format!(
                "{code} stands in the way of cluster {cluster}; `capstan why {name}` says how to mend it"
            ));
            Exit::Blocked
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::clusters;

    #[test]
    fn only_cluster_api_s_clusters_are_followed() {
        let objects = [
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"}}),
            json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "b", "namespace": "n"}}),
            json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "c"}}),
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "d"}}),
        ];
        assert_eq!(clusters(&objects), [(None, "a".to_owned()), (Some("n".to_owned()), "b".to_owned())]);
    }
}
