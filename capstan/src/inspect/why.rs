//! `capstan why`: what blocks a cluster.

use std::fmt::Write as _;

use anyhow::Result;
use capstan_controller::{Backoff, catalogue};
use capstan_provider_kit::decisions::CLOUD_REACHABLE;
use capstan_view::{Blocker, Link, Part, Problem, State, Tree, Why, age, full_line, one_line};
use jiff::{SignedDuration, Timestamp};

use super::{fixes, last_lines};
use crate::codes;
use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::output::{OutputArgs, Show, TextOptions};
use crate::plugins::Plugins;

/// What providers without a code of their own for it write of a cloud that cannot be reached.
const NO_ANSWER: &str = "does not answer";

/// Blockers in the text; `-o json` has all.
const MOST: usize = 10;

/// Arguments of `capstan why`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a cluster or a machine
    name: String,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(serde::Serialize)]
#[serde(transparent)]
struct Answer {
    why: Option<Why>,
    #[serde(skip)]
    tree: Tree,
    #[serde(skip)]
    plugins: Plugins,
}

impl Show for Answer {
    fn text(&self, options: &TextOptions) -> String {
        match &self.why {
            Some(why) => explain(&self.plugins, &self.tree, why, options.now),
            None => ready(&self.tree.part),
        }
    }

    fn names(&self) -> Vec<String> {
        self.why.iter().flat_map(Why::blockers).map(|blocker| blocker.cause.part.clone()).collect()
    }
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let (tree, why) = args.connection.run(plugins, async |management| {
        let tree = super::load_tree(&management, &args.name).await?;
        let mut why = capstan_view::why(&tree, Timestamp::now());
        if let Some(why) = &mut why {
            last_lines::add(&management, plugins, why).await;
        }
        Ok((tree, why))
    })?;
    let why = why.map(|why| fixes::complete(plugins, &tree, why));
    args.output.show(&Answer { why, tree, plugins: plugins.clone() })?;
    Ok(Exit::Done)
}

/// The verdict, then each blocker with cause, fix, who can fix it, since when and the next retry, then its chain.
pub fn explain(plugins: &Plugins, tree: &Tree, why: &Why, now: Timestamp) -> String {
    let why = &fixes::complete(plugins, tree, why.clone());
    let count = 1 + why.others.len();
    let mut text = match count {
        1 if why.first.cause.part == tree.part.title() => format!("{}\n", words(&why.first, now)),
        1 => format!("{}{}\n", verdict(tree), words(&why.first, now)),
        _ if tree.part.state() == State::Healthy => format!("{}has {count} problems\n", verdict(tree)),
        _ => format!("{}{count} problems\n", verdict(tree)),
    };
    for (number, blocker) in why.blockers().enumerate().take(MOST) {
        text.push('\n');
        if count > 1 {
            let _ = writeln!(text, "problem {} of {count}: {}", number + 1, words(blocker, now));
        }
        text.push_str(&details(plugins, blocker, now));
        text.push('\n');
        text.push_str(&chain(blocker, now));
    }
    if count > MOST {
        let _ = writeln!(text, "\nand {} more; `-o json` lists all", count - MOST);
    }
    text
}

/// The answer for a part without a problem.
fn ready(part: &Part) -> String {
    let title = part.title();
    let Some(deferred) = part.deferred_upgrade() else { return format!("{title} is ready") };
    format!(
        "{title} is ready, and its upgrade is held back\n\nmessage: {}\nfix: remove the annotation from spec.topology.workers \
         of the Cluster\n  kubectl edit cluster {} -n {}\nfixed by: user",
        full_line(&deferred.message),
        part.name,
        part.namespace
    )
}

/// The first half of a sentence that goes on with the problem.
fn verdict(tree: &Tree) -> String {
    let state = match tree.part.state() {
        State::Deleting => "is not deleted yet: ",
        State::Paused => "is paused: ",
        State::Healthy => "is ready, but ",
        _ => "is not ready: ",
    };
    format!("{} {state}", tree.part.title())
}

/// Whether a blocker is that the API of a cloud cannot be reached. That of a workload cluster is another matter.
fn is_silence(blocker: &Blocker) -> bool {
    let others = [catalogue::WORKLOAD_UNREACHABLE.id(), catalogue::API_UNREACHABLE.id()];
    let code = blocker.cause.code.as_deref();
    code.is_some_and(|code| code.ends_with("-UNREACHABLE") && !others.contains(&code))
        || blocker
            .chain
            .last()
            .is_some_and(|link| link.condition == CLOUD_REACHABLE && link.message.contains(NO_ANSWER))
}

/// Whether the state of a part is as it was last seen, such as without usable credentials.
fn is_unseen(blocker: &Blocker) -> bool {
    blocker.chain.last().is_some_and(|link| link.condition == CLOUD_REACHABLE)
}

/// The problem of a blocker as a clause.
fn words(blocker: &Blocker, now: Timestamp) -> String {
    let cause = &blocker.cause;
    let part = &cause.part;
    let lasts = blocker.since().map(|since| format!(" for {}", age(since, now))).unwrap_or_default();
    let clause = match cause.problem {
        Problem::Paused => format!("{part} is paused"),
        Problem::Unreachable => match &cause.endpoint {
            Some(endpoint) => format!("{part} is unreachable at {endpoint}"),
            None => format!("{part} is unreachable"),
        },
        Problem::Failed if is_silence(blocker) => {
            format!("the cloud of {part} does not answer")
        }
        Problem::Failed if is_unseen(blocker) => format!("the cloud of {part} cannot be used"),
        Problem::Failed => format!("{part} failed"),
        Problem::TopologyFailed => format!("the topology of {part} cannot be reconciled"),
        Problem::HookBlocks => format!("a hook holds {part} back"),
        Problem::Upgrading => format!("{part} is being upgraded"),
        Problem::DoesNotExist => format!("{part} does not exist yet"),
        Problem::DeletedInCloud => format!("the machine of {part} was deleted in the cloud"),
        Problem::StoppedInCloud => format!("the machine of {part} is stopped in the cloud"),
        Problem::NoCni => format!("the node of {part} is NotReady: no CNI is installed"),
        Problem::NotJoined => format!("the node of {part} has not joined{lasts}"),
        Problem::Starting => format!("{part} is still starting{lasts}"),
        Problem::Deleting => format!("{part} is being deleted{lasts}"),
        Problem::StillExists => format!("{part} still exists"),
        Problem::Waiting => format!("{part} is not ready"),
    };
    match blocker.also.len() {
        0 => clause,
        more => format!("{clause} (and {more} more)"),
    }
}

fn details(plugins: &Plugins, blocker: &Blocker, now: Timestamp) -> String {
    let cause = &blocker.cause;
    let last = blocker.chain.last();
    let mut lines = Vec::new();
    let code = cause.code.as_deref().and_then(|code| codes::entry(plugins, code));
    if let Some(code) = code {
        lines.push(format!("{}: {}", code.id(), code.0.title));
    }
    let message = last.map(|link| if link.message.is_empty() { &link.reason } else { &link.message });
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        lines.push(format!("message: {}", full_line(message)));
    }
    if let Some(line) = &cause.console {
        lines.push(format!("its console ends with: {line}"));
    }
    if let Some(advice) = &cause.advice {
        lines.push(format!("fix: {}", advice.fix));
        lines.extend(advice.commands.iter().map(|command| format!("  {command}")));
        lines.push(format!("fixed by: {}", advice.fixed_by));
    }
    if let Some(undo) = &cause.undo {
        lines.push("or take the upgrade back: no machine of the new version has joined".to_owned());
        lines.push(format!("  {undo}"));
    }
    if let Some(since) = blocker.since() {
        lines.push(format!("since: {since} ({})", age(since, now)));
    }
    lines.push(format!("next retry: {}", next_retry(blocker, now)));
    if !blocker.also.is_empty() {
        lines.push(format!("same problem: {}", one_line(&blocker.also.join(", "))));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Why nothing tries again by itself, if nothing does.
fn no_retry(blocker: &Blocker, message: &str) -> Option<&'static str> {
    Some(match blocker.cause.problem {
        Problem::Paused => "none while paused",
        Problem::DeletedInCloud => "none: a machine that is gone is not made again",
        Problem::StoppedInCloud => "none: a machine that was stopped is not started again",
        Problem::DoesNotExist => "none: it goes on once the object exists",
        Problem::NoCni => "none: it goes on once a CNI runs",
        Problem::NotJoined => "none: a machine runs its boot data once, and its node may still join",
        Problem::Failed if message.contains("console ends with") => "none: a machine runs its boot data once",
        _ => return None,
    })
}

/// Providers write the time of the next attempt into the message.
fn next_retry(blocker: &Blocker, now: Timestamp) -> String {
    let message = blocker.chain.last().map(|link| link.message.as_str()).unwrap_or_default();
    if let Some(none) = no_retry(blocker, message) {
        return none.to_owned();
    }
    let time = message.split_once("next try at ").and_then(|(_, rest)| rest.split_whitespace().next());
    let time = time.and_then(|word| word.trim_end_matches([',', ';', '.']).parse::<Timestamp>().ok());
    if let Some(time) = time {
        let left = time.duration_since(now).max(SignedDuration::ZERO).as_secs();
        return format!("at {time} (in {left}s)");
    }
    let most = Backoff::default().most.as_secs() / 60;
    format!("automatic, on a change and at least every {most} min")
}

fn chain(blocker: &Blocker, now: Timestamp) -> String {
    let mut text = String::new();
    for (depth, link) in blocker.chain.iter().enumerate() {
        let arrow = if depth == 0 { "" } else { "└─ because " };
        let indent = "   ".repeat(depth.saturating_sub(1));
        let _ = writeln!(text, "{indent}{arrow}{}{}", link.part, link_text(link, now));
    }
    text
}

fn link_text(link: &Link, now: Timestamp) -> String {
    let message = if link.message.is_empty() { &link.reason } else { &link.message };
    let words = [link.condition.as_str(), message].into_iter().filter(|word| !word.is_empty());
    let since = link.since.map(|since| format!(" (since {})", age(since, now))).unwrap_or_default();
    words.fold(String::new(), |text, word| text + ": " + &one_line(word)) + &since
}

#[cfg(test)]
mod tests;
