//! `capstan wait`, and waiting for what another command began.

use std::time::Duration;

use anyhow::{Result, bail};
use capstan_view::{Standing, Tree, why};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::exit::Exit;
use crate::output::{Deeds, say, talk};
use crate::picture::{self, explain};
use crate::plugins::Plugins;
use crate::reach::{Management, Reach};

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// It and all its parts are as wanted.
    Ready,
    /// It is gone.
    Deleted,
    /// A condition of it has a status.
    Condition {
        /// Type of the condition.
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
                || format!("{text:?} is none of ready, deleted, condition=TYPE, condition=TYPE=STATUS");
            let rest = text.strip_prefix("condition=").filter(|rest| !rest.is_empty()).ok_or_else(wrong)?;
            let (kind, status) = rest.split_once('=').unwrap_or((rest, "True"));
            let known =
                ["True", "False", "Unknown"].into_iter().find(|known| known.eq_ignore_ascii_case(status));
            Ok(Goal::Condition { kind: kind.to_owned(), status: known.ok_or_else(wrong)?.to_owned() })
        }
    }
}

/// A time such as `90s`, `10m` or `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|parsed| Duration::try_from(parsed).ok());
    parsed.ok_or_else(|| format!("{text:?} is no time: write it like 90s, 10m or 1h30m"))
}

/// Arguments of `capstan wait`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster, or of a machine
    name: String,
    #[command(flatten)]
    reach: Reach,
    /// What for: ready, deleted, condition=TYPE or condition=TYPE=STATUS
    #[arg(long = "for", value_name = "WHAT", default_value = "ready", value_parser = goal)]
    goal: Goal,
    /// How long at most, such as 90s or 1h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
}

/// Arguments of commands that begin something.
#[derive(Debug, Clone, clap::Args)]
pub struct WaitArgs {
    /// Wait until it is done, saying what it waits for
    #[arg(long)]
    wait: bool,
    /// How long to wait at most, such as 90s or 1h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration, requires = "wait")]
    timeout: Duration,
}

impl WaitArgs {
    /// Waits for what was begun, if that was asked for.
    pub async fn follow(
        &self,
        management: &Management,
        name: &str,
        goal: Goal,
        dry_run: bool,
        deeds: &Deeds,
    ) -> Result<Exit> {
        if !self.wait || dry_run {
            return Ok(Exit::Done);
        }
        let exit = until(management, name, &goal, self.timeout).await?;
        if exit == Exit::Done {
            deeds.remark(&reached(name, &goal))?;
        }
        Ok(exit)
    }
}

/// Waits.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.reach.run(plugins, async |management| {
        if args.goal != Goal::Deleted {
            // What is not there is said at once: a name is mistyped more often than a cluster is yet to come.
            picture::tree(&management, &args.name).await?;
        }
        let exit = until(&management, &args.name, &args.goal, args.timeout).await?;
        if exit == Exit::Done {
            say(&reached(&args.name, &args.goal))?;
        }
        Ok(exit)
    })
}

/// How far something is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Reached,
    Under(String),
    /// Only somebody else can go on.
    Blocked(String),
}

async fn until(management: &Management, name: &str, goal: &Goal, timeout: Duration) -> Result<Exit> {
    let deadline = Instant::now() + timeout;
    let mut said = String::new();
    let mut first: Option<String> = None;
    loop {
        let tree = picture::seek(management, name).await?;
        let uid = tree.as_ref().map(|tree| tree.part.uid.clone());
        if first.is_some() && uid.is_some() && first != uid && *goal == Goal::Deleted {
            return Ok(Exit::Done);
        }
        first = first.or(uid);
        match state(tree.as_ref(), goal) {
            State::Reached => return Ok(Exit::Done),
            State::Blocked(what) => {
                talk(&what);
                return Ok(Exit::Blocked);
            }
            State::Under(what) if tree.is_none() => bail!("{name} {what}"),
            State::Under(what) => {
                if what != said {
                    talk(&what);
                    said = what;
                }
            }
        }
        if Instant::now() + EVERY > deadline {
            let answer = tree.as_ref().and_then(why);
            talk(&format!("{name} is not {} after {}s", words(goal), timeout.as_secs()));
            if let Some(answer) = &answer {
                talk(explain(&management.plugins, answer, Timestamp::now()).trim_end());
            }
            let failed = answer.is_some_and(|answer| answer.cause.failed);
            return Ok(if failed { Exit::Blocked } else { Exit::TimedOut });
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn reached(name: &str, goal: &Goal) -> String {
    format!("{name} is {}", words(goal))
}

fn words(goal: &Goal) -> String {
    match goal {
        Goal::Ready => "ready".to_owned(),
        Goal::Deleted => "deleted".to_owned(),
        Goal::Condition { kind, status } => format!("{kind}={status}"),
    }
}

fn state(tree: Option<&Tree>, goal: &Goal) -> State {
    let Some(tree) = tree else {
        return if *goal == Goal::Deleted { State::Reached } else { State::Under("is gone".to_owned()) };
    };
    let part = &tree.part;
    let reached = match goal {
        Goal::Ready => tree.is_as_wanted(),
        Goal::Deleted => false,
        Goal::Condition { kind, status } => {
            part.conditions.iter().any(|it| it.kind == *kind && format!("{:?}", it.status) == *status)
        }
    };
    if reached {
        return State::Reached;
    }
    if part.standing() == Standing::Paused {
        return State::Blocked(format!("{} is paused: `capstan resume` has controllers go on", part.title()));
    }
    if *goal == Goal::Deleted && part.deleted.is_none() {
        return State::Under(format!("{} is not being deleted: `capstan delete` asks for it", part.title()));
    }
    State::Under(match why(tree).and_then(|answer| answer.chain.last().cloned()) {
        Some(last) => {
            let says = if last.message.is_empty() { last.reason } else { last.message };
            let what = [last.condition, says].into_iter().filter(|word| !word.is_empty());
            what.fold(last.part, |text, word| format!("{text}: {}", capstan_view::one_line(&word)))
        }
        None => format!("{}: its conditions are not there yet", part.title()),
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
            "kind": "Cluster", "metadata": {"name": "c", "uid": "u", "finalizers": ["f"]},
            "status": {"conditions": conditions},
        });
        if deleted {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        Tree::below("u", Part::of(&object).into_iter().collect()).expect("a tree")
    }

    #[test]
    fn what_is_waited_for_is_told_from_what_stands_in_the_way() {
        let up = |condition: &str| State::Under(condition.to_owned());
        let ready = tree(&[("Available", "True")], false);
        let rolling = tree(&[("Available", "True"), ("RollingOut", "True")], false);
        let going = tree(&[], true);
        let paused = tree(&[("Available", "False"), ("Paused", "True")], false);
        let condition = |status: &str| Goal::Condition { kind: "Available".into(), status: status.into() };
        for (what, tree, goal, expected) in [
            ("ready", Some(&ready), Goal::Ready, State::Reached),
            ("rolled out", Some(&rolling), Goal::Ready, up("Cluster/c: RollingOut: R")),
            ("a condition of it", Some(&rolling), condition("True"), State::Reached),
            (
                "not that status",
                Some(&ready),
                condition("False"),
                up("Cluster/c: its conditions are not there yet"),
            ),
            (
                "paused",
                Some(&paused),
                Goal::Ready,
                State::Blocked("Cluster/c is paused: `capstan resume` has controllers go on".to_owned()),
            ),
            ("gone", None, Goal::Deleted, State::Reached),
            ("gone while it was to be ready", None, Goal::Ready, up("is gone")),
            ("going", Some(&going), Goal::Deleted, up("Cluster/c: waits for its finalizers: f")),
            (
                "nobody deletes it",
                Some(&ready),
                Goal::Deleted,
                up("Cluster/c is not being deleted: `capstan delete` asks for it"),
            ),
        ] {
            assert_eq!(state(tree, &goal), expected, "{what}");
        }
    }

    #[test]
    fn goals_and_times_are_read_as_people_write_them() {
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
            assert!(duration(wrong).is_err_and(|said| said.contains("1h30m")), "{wrong}");
        }
    }
}
