//! `capstan why`: the chain from what was asked for to the fact that blocks.

use std::fmt::Write as _;

use anyhow::Result;
use capstan_controller::Backoff;
use capstan_view::{Link, Why, age, one_line, whole};
use jiff::Timestamp;

use crate::codes;
use crate::exit::Exit;
use crate::output::{How, OutputArgs, Show};
use crate::plugins::Plugins;
use crate::reach::Reach;

/// Arguments of `capstan why`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster, or of a machine
    name: String,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(serde::Serialize)]
#[serde(transparent)]
struct Answer {
    why: Option<Why>,
    #[serde(skip)]
    title: String,
    #[serde(skip)]
    plugins: Plugins,
}

impl Show for Answer {
    fn text(&self, how: &How) -> String {
        match &self.why {
            Some(why) => explain(&self.plugins, why, how.now),
            None => format!("{} is as wanted: nothing to explain", self.title),
        }
    }

    fn names(&self) -> Vec<String> {
        self.why.iter().map(|why| why.cause.part.clone()).collect()
    }
}

/// Says why a cluster or a machine is not as wanted.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let tree = args.reach.run(plugins, async |management| super::tree(&management, &args.name).await)?;
    let (why, title) = (capstan_view::why(&tree), tree.part.title());
    args.output.show(&Answer { why, title, plugins: plugins.clone() })?;
    Ok(Exit::Done)
}

/// The answer in words.
pub fn explain(plugins: &Plugins, why: &Why, now: Timestamp) -> String {
    let mut text = String::new();
    for (depth, link) in why.chain.iter().enumerate() {
        let arrow = if depth == 0 { "" } else { "└─ because " };
        // Those above repeat what the last one says.
        let words = if depth + 1 == why.chain.len() { whole } else { one_line };
        let _ = writeln!(
            text,
            "{}{arrow}{}{}",
            "   ".repeat(depth.saturating_sub(1)),
            link.part,
            says(link, now, words)
        );
    }
    let cause = &why.cause;
    let state = match (cause.failed, cause.going) {
        (true, _) => "failed",
        (false, true) => "is not gone yet",
        (false, false) => "is not there yet",
    };
    let _ = writeln!(text, "\n{} {state}", cause.part);
    let code = cause.code.as_deref().and_then(|code| codes::entry(plugins, code));
    if let Some(code) = code {
        let _ = writeln!(text, "{}: {}", code.id(), code.0.title);
    }
    let advice = code.map(|code| (code.0.fault.to_string(), code.0.mend));
    let advice = advice.or_else(|| cause.advice.map(|advice| (advice.turn.to_owned(), advice.mend)));
    if let Some((turn, mend)) = advice {
        let _ = writeln!(text, "whose turn: {turn}\nmend: {mend}");
    }
    let told = why.chain.last().is_some_and(|link| link.message.contains("next try at"));
    if (cause.failed || cause.going) && !told {
        let latest = Backoff::default().most.as_secs() / 60;
        let _ = writeln!(
            text,
            "next try: by itself, when something about it changes, and within {latest} minutes"
        );
    }
    text
}

fn says(link: &Link, now: Timestamp, words: fn(&str) -> String) -> String {
    let message = if link.message.is_empty() { &link.reason } else { &link.message };
    let what = [link.condition.as_str(), message].into_iter().filter(|word| !word.is_empty());
    let since = link.since.map(|since| format!(" (since {})", age(since, now))).unwrap_or_default();
    what.fold(String::new(), |text, word| format!("{text}: {}", words(word))) + &since
}
