//! `capstan wait`, and `--wait` of other commands.

use std::time::Duration;

use anyhow::{Result, bail};
use capstan_view::{State, Tree, why};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::connection::{ConnectionArgs, Management, Reconnect};
use crate::exit::Exit;
use crate::inspect::{self, explain};
use crate::output::{ActionReport, eprint_line, print_line};
use crate::plugins::Plugins;

/// Poll interval.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    Ready,
    Deleted,
    Condition {
        kind: String,
        /// `True`, `False` or `Unknown`.
        status: String,
    },
}

fn goal(text: &str) -> Result<Goal, String> {
    match text {
        "ready" => Ok(Goal::Ready),
        "deleted" => Ok(Goal::Deleted),
        _ => {
            let wrong =
                || format!("{text:?}: expected ready, deleted, condition=TYPE or condition=TYPE=STATUS");
            let rest = text.strip_prefix("condition=").filter(|rest| !rest.is_empty()).ok_or_else(wrong)?;
            let (kind, status) = rest.split_once('=').unwrap_or((rest, "True"));
            let known =
                ["True", "False", "Unknown"].into_iter().find(|known| known.eq_ignore_ascii_case(status));
            Ok(Goal::Condition { kind: kind.to_owned(), status: known.ok_or_else(wrong)?.to_owned() })
        }
    }
}

/// A duration such as `90s`, `10m` or `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|parsed| Duration::try_from(parsed).ok());
    parsed.ok_or_else(|| format!("{text:?} is not a duration such as 90s, 10m or 1h30m"))
}

/// Arguments of `capstan wait`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a cluster or a machine
    name: String,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Goal: ready, deleted, condition=TYPE or condition=TYPE=STATUS
    #[arg(long = "for", value_name = "WHAT", default_value = "ready", value_parser = goal)]
    goal: Goal,
    /// Timeout, such as 90s or 1h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
}

/// Arguments of commands that can wait for the result of a change.
#[derive(Debug, Clone, clap::Args)]
pub struct WaitArgs {
    /// Wait until it is done and print what it waits for
    #[arg(long)]
    wait: bool,
    /// Timeout, such as 90s or 1h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration, requires = "wait")]
    timeout: Duration,
}

impl WaitArgs {
    /// Waits for the goal if `--wait` was given.
    pub async fn follow(
        &self,
        management: &Management,
        name: &str,
        goal: Goal,
        dry_run: bool,
        report: &ActionReport,
    ) -> Result<Exit> {
        if !self.wait || dry_run {
            return Ok(Exit::Done);
        }
        let exit = until(management, name, &goal, self.timeout).await?;
        if exit == Exit::Done {
            report.note(&reached(name, &goal))?;
        }
        Ok(exit)
    }
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        if args.goal != Goal::Deleted {
            // Fail early: a typo is more likely than a cluster that is created later.
            inspect::load_tree(&management, &args.name).await?;
        }
        let exit = until(&management, &args.name, &args.goal, args.timeout).await?;
        if exit == Exit::Done {
            print_line(&reached(&args.name, &args.goal))?;
        }
        Ok(exit)
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Progress {
    Reached,
    /// What it waits for.
    Waiting(String),
    /// A user or operator has to act first.
    Blocked(String),
}

async fn until(management: &Management, name: &str, goal: &Goal, timeout: Duration) -> Result<Exit> {
    let deadline = Instant::now() + timeout;
    let mut printed = String::new();
    let mut first: Option<String> = None;
    let mut connection = Reconnect::default();
    loop {
        let Some(tree) = connection.retry(inspect::find_tree(management, name).await)? else {
            if Instant::now() + INTERVAL > deadline {
                eprint_line(&format!("{name} is not {} after {}s", goal_word(goal), timeout.as_secs()));
                return Ok(Exit::TimedOut);
            }
            tokio::time::sleep(INTERVAL).await;
            continue;
        };
        let uid = tree.as_ref().map(|tree| tree.part.uid.clone());
        if first.is_some() && uid.is_some() && first != uid && *goal == Goal::Deleted {
            return Ok(Exit::Done);
        }
        first = first.or(uid);
        match progress(tree.as_ref(), goal) {
            Progress::Reached => return Ok(Exit::Done),
            Progress::Blocked(what) => {
                eprint_line(&what);
                return Ok(Exit::Blocked);
            }
            Progress::Waiting(what) if tree.is_none() => bail!("{name} {what}"),
            Progress::Waiting(what) => {
                if what != printed {
                    eprint_line(&what);
                    printed = what;
                }
            }
        }
        if Instant::now() + INTERVAL > deadline {
            let answer = tree.as_ref().and_then(|tree| why(tree, Timestamp::now()));
            eprint_line(&format!("{name} is not {} after {}s", goal_word(goal), timeout.as_secs()));
            if let (Some(tree), Some(answer)) = (&tree, &answer) {
                eprint_line(explain(&management.plugins, tree, answer, Timestamp::now()).trim_end());
            }
            let failed = answer.is_some_and(|answer| answer.first.cause.failed);
            return Ok(if failed { Exit::Blocked } else { Exit::TimedOut });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn reached(name: &str, goal: &Goal) -> String {
    format!("{name} is {}", goal_word(goal))
}

fn goal_word(goal: &Goal) -> String {
    match goal {
        Goal::Ready => "ready".to_owned(),
        Goal::Deleted => "deleted".to_owned(),
        Goal::Condition { kind, status } => format!("{kind}={status}"),
    }
}

fn progress(tree: Option<&Tree>, goal: &Goal) -> Progress {
    let Some(tree) = tree else {
        return if *goal == Goal::Deleted {
            Progress::Reached
        } else {
            Progress::Waiting("was deleted".to_owned())
        };
    };
    let part = &tree.part;
    let reached = match goal {
        Goal::Ready => tree.is_ready(),
        Goal::Deleted => false,
        Goal::Condition { kind, status } => {
            part.conditions.iter().any(|it| it.kind == *kind && format!("{:?}", it.status) == *status)
        }
    };
    if reached {
        return Progress::Reached;
    }
    if part.state() == State::Paused {
        // A machine can be paused by its cluster or by itself.
        let verb = if part.kind == "Cluster" { "resume" } else { "why" };
        return Progress::Blocked(format!(
            "{} is paused; run `capstan {verb} {} -n {}`",
            part.title(),
            part.name,
            part.namespace
        ));
    }
    if *goal == Goal::Deleted && part.deleted.is_none() {
        return Progress::Waiting(format!(
            "{} is not being deleted; run `capstan delete {} {} -n {}`",
            part.title(),
            part.kind.to_lowercase(),
            part.name,
            part.namespace
        ));
    }
    let condition = match goal {
        Goal::Condition { kind, .. } => part.conditions.iter().find(|it| it.kind == *kind),
        _ => None,
    };
    if let (Goal::Condition { kind, .. }, None, false) = (goal, condition, part.conditions.is_empty()) {
        return Progress::Waiting(format!("{}: has no condition {kind}", part.title()));
    }
    let last = why(tree, Timestamp::now()).and_then(|answer| answer.first.chain.last().cloned());
    Progress::Waiting(match last {
        Some(last) => {
            let message = if last.message.is_empty() { last.reason } else { last.message };
            let what = [last.condition, message].into_iter().filter(|word| !word.is_empty());
            what.fold(last.part, |text, word| format!("{text}: {}", capstan_view::one_line(&word)))
        }
        None => match condition {
            Some(condition) => format!("{}: {} is {:?}", part.title(), condition.kind, condition.status),
            None => format!("{}: has no conditions yet", part.title()),
        },
    })
}

#[cfg(test)]
mod tests {
    use capstan_view::Part;
    use serde_json::{Value, json};

    use super::*;

    fn tree(conditions: &[(&str, &str)], deleted: bool) -> Tree {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status)| {
                json!({"type": kind, "status": status, "reason": "R", "message": "",
                       "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        let mut object = json!({
            "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "team", "uid": "u", "finalizers": ["f"]},
            "status": {"conditions": conditions},
        });
        if deleted {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        Tree::below("u", Part::of(&object).into_iter().collect()).expect("a tree")
    }

    #[test]
    fn waiting_blocked_and_reached_goals() {
        let up = |condition: &str| Progress::Waiting(condition.to_owned());
        let ready = tree(&[("Available", "True")], false);
        let rolling = tree(&[("Available", "True"), ("RollingOut", "True")], false);
        let deleting = tree(&[], true);
        let new = tree(&[], false);
        let paused = tree(&[("Available", "False"), ("Paused", "True")], false);
        let condition = |status: &str| Goal::Condition { kind: "Available".into(), status: status.into() };
        for (what, tree, goal, expected) in [
            ("ready", Some(&ready), Goal::Ready, Progress::Reached),
            ("rolled out", Some(&rolling), Goal::Ready, up("Cluster/c: RollingOut: R")),
            ("a condition of it", Some(&rolling), condition("True"), Progress::Reached),
            ("not that status", Some(&ready), condition("False"), up("Cluster/c: Available is True")),
            (
                "no such condition",
                Some(&ready),
                Goal::Condition { kind: "Nope".into(), status: "True".into() },
                up("Cluster/c: has no condition Nope"),
            ),
            ("new", Some(&new), condition("True"), up("Cluster/c: has no conditions yet")),
            (
                "paused",
                Some(&paused),
                Goal::Ready,
                Progress::Blocked("Cluster/c is paused; run `capstan resume c -n team`".to_owned()),
            ),
            ("deleted", None, Goal::Deleted, Progress::Reached),
            ("deleted while waiting for ready", None, Goal::Ready, up("was deleted")),
            ("deleting", Some(&deleting), Goal::Deleted, up("Cluster/c: waits for finalizers: f")),
            (
                "not being deleted",
                Some(&ready),
                Goal::Deleted,
                up("Cluster/c is not being deleted; run `capstan delete cluster c -n team`"),
            ),
        ] {
            assert_eq!(progress(tree, &goal), expected, "{what}");
        }
    }

    #[test]
    fn goals_and_durations_are_parsed() {
        assert_eq!(goal("ready"), Ok(Goal::Ready));
        assert_eq!(
            goal("condition=Available"),
            Ok(Goal::Condition { kind: "Available".into(), status: "True".into() })
        );
        assert_eq!(
            goal("condition=A=false"),
            Ok(Goal::Condition { kind: "A".into(), status: "False".into() })
        );
        for wrong in ["", "done", "condition=", "condition=A=perhaps"] {
            assert!(goal(wrong).is_err(), "{wrong}");
        }
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "10", "-1s", "soon"] {
            assert!(duration(wrong).is_err_and(|error| error.contains("1h30m")), "{wrong}");
        }
    }
}
