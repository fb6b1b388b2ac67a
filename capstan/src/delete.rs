//! `capstan delete`: a cluster, or a machine, which its owner replaces.

use std::io::IsTerminal as _;

use anyhow::{Result, bail};
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{Deletion, KindName};
use capstan_object::{Key, Object, ObjectMeta};

use crate::adopt;
use crate::connection::{ConnectionArgs, Management};
use crate::exit::Exit;
use crate::inspect;
use crate::output::{Action, ActionReport, OutputArgs, Show as _, TextOptions, eprint_line};
use crate::plan::{self, Proposal};
use crate::plugins::Plugins;
use crate::prompt;
use crate::wait::{Goal, WaitArgs};

/// Arguments of `capstan delete`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// [KIND] NAME or KIND/NAME; KIND is cluster (the default) or machine
    #[arg(value_name = "[KIND] NAME", num_args = 1..=2, required = true)]
    target: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print what would be deleted; delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation on a terminal
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Cluster(String),
    Machine(String),
}

/// Reads `NAME`, `KIND NAME` and `KIND/NAME`.
fn target(words: &[String]) -> Result<Target> {
    let (kind, name) = match words {
        [name] => name.split_once('/').unwrap_or(("cluster", name)),
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => bail!("expected NAME or KIND NAME"),
    };
    match kind.to_lowercase().as_str() {
        "cluster" | "clusters" | "cl" => Ok(Target::Cluster(name.to_owned())),
        "machine" | "machines" | "ma" => Ok(Target::Machine(name.to_owned())),
        _ => bail!("cannot delete {kind} {name}: KIND is cluster or machine; use kubectl for other kinds"),
    }
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let target = target(&args.target)?;
    args.connection.run(plugins, async |management| match &target {
        Target::Cluster(name) => {
            let cluster: Cluster = management.find(name).await?;
            refuse_locked(&cluster)?;
            delete(args, &management, &cluster, paused(Some(&cluster))).await
        }
        Target::Machine(name) => {
            let machine: Machine = management.find(name).await?;
            let cluster: Option<Cluster> =
                management.client.get(&Key::new(&management.namespace, &machine.spec.cluster_name)).await?;
            cluster.as_ref().map_or(Ok(()), refuse_locked)?;
            delete(args, &management, &machine, paused(cluster.as_ref())).await
        }
    })
}

/// The name of a cluster that is paused.
fn paused(cluster: Option<&Cluster>) -> Option<&str> {
    cluster.filter(|it| it.spec.paused == Some(true)).map(|it| it.metadata.name.as_str())
}

/// What has to happen before a deletion continues; `paused` is the name of its cluster, if that is paused.
fn resumption(kind: &str, paused: Option<&str>, namespace: &str) -> String {
    let Some(cluster) = paused else { return String::new() };
    let which = if kind == "cluster" { "it".to_owned() } else { format!("its cluster {cluster}") };
    format!("; {which} is paused: deletion continues after `capstan resume {cluster} -n {namespace}`")
}

/// Refuses a cluster that is not managed here yet: deleted objects would take its machines along once it is unlocked.
fn refuse_locked(cluster: &Cluster) -> Result<()> {
    let ObjectMeta { name, namespace, .. } = &cluster.metadata;
    match adopt::is_locked(cluster) {
        true => bail!(
            "cluster {name} is locked: `capstan adopt --rollback {name} -n {namespace}` removes its objects here and nothing \
             in the cloud"
        ),
        false => Ok(()),
    }
}

async fn delete<T: Object>(
    args: &Args,
    management: &Management,
    object: &T,
    paused: Option<&str>,
) -> Result<Exit> {
    let kind = T::KIND.kind.to_lowercase();
    let ObjectMeta { name, uid, .. } = object.metadata();
    let mut report = ActionReport::new(args.output);
    if args.dry_run {
        let tree = inspect::load_tree(management, name).await?;
        report.note(&format!("{kind} {name} would be deleted, with these parts:"))?;
        for part in tree.walk() {
            let (object, sentence) = (part.title(), format!("  {}", part.title()));
            report.record(Action { object, what: "deleted".to_owned(), dry_run: true, sentence })?;
        }
        report.finish()?;
        return match args.output.is_text() {
            true => print_order(management, KindName::of::<T>(), object.key(), &report).await,
            // `capstan plan --delete` has the order for programs.
            false => Ok(Exit::Done),
        };
    }
    let deleting = object.metadata().is_deleting();
    if !deleting {
        if !args.yes && !confirmed(&format!("{kind} {name} in namespace {}", management.namespace))? {
            report.note("nothing was deleted")?;
            return Ok(Exit::Failed);
        }
        // By uid: not an object of the same name that was created since.
        let deletion = Deletion { uid: Some(uid.clone()), ..Deletion::default() };
        management.client.delete(&KindName::of::<T>(), &object.key(), &deletion).await?;
    }
    let resume = resumption(&kind, paused, &management.namespace);
    let done = if deleting { "is already being deleted" } else { "is being deleted" };
    let sentence = format!("{kind} {name} {done}{resume}");
    report.record(Action {
        object: format!("{kind}/{name}"),
        what: done.to_owned(),
        dry_run: false,
        sentence,
    })?;
    report.finish()?;
    args.wait.follow(management, name, Goal::Deleted, false, &report).await
}

/// Asks on a terminal; scripts are not asked.
fn confirmed(what: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(true);
    }
    prompt::confirm(&format!("delete {what}?"))
}

/// Prints the order of the deletion. If that cannot be simulated, the list of parts is enough.
async fn print_order(
    management: &Management,
    kind: KindName,
    key: Key,
    report: &ActionReport,
) -> Result<Exit> {
    let proposal = Proposal { delete: vec![(kind, key)], ..Proposal::default() };
    match plan::simulate(management, proposal).await {
        Ok(plan) => report.note(plan.text(&TextOptions::plain()).trim_end())?,
        Err(error) => eprint_line(&format!("no plan of the order: {error:#}")),
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deletion_of_a_paused_cluster_names_the_command_that_resumes_it() {
        for (kind, paused, expected) in [
            ("cluster", None, ""),
            ("cluster", Some("c"), "; it is paused: deletion continues after `capstan resume c -n team`"),
            (
                "machine",
                Some("c"),
                "; its cluster c is paused: deletion continues after `capstan resume c -n team`",
            ),
        ] {
            assert_eq!(resumption(kind, paused, "team"), expected);
        }
    }

    #[test]
    fn a_target_is_a_name_or_a_kind_and_a_name() {
        let read = |words: &[&str]| target(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for (words, expected) in [
            (&["demo"][..], Target::Cluster("demo".to_owned())),
            (&["cluster", "demo"], Target::Cluster("demo".to_owned())),
            (&["Machine", "m"], Target::Machine("m".to_owned())),
            (&["machines/m"], Target::Machine("m".to_owned())),
        ] {
            assert_eq!(read(words).expect("a target"), expected, "{words:?}");
        }
        let error = read(&["pod", "p"]).expect_err("not supported").to_string();
        assert_eq!(error, "cannot delete pod p: KIND is cluster or machine; use kubectl for other kinds");
    }
}
