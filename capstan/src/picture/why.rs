//! `capstan why`: the chain from what was asked for to the fact that blocks.

use std::fmt::Write as _;

use anyhow::Result;
use capstan_controller::Code;
use capstan_view::{Link, Why, age, one_line};
use jiff::Timestamp;

use super::Format;
use super::reach::Reach;

/// Arguments of `capstan why`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    reach: Reach,
    /// How to write it
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
}

/// Says why a cluster is not as wanted.
pub fn run(args: &Args) -> Result<()> {
    let why = capstan_view::why(&args.reach.tree(&args.cluster)?);
    args.output.write(&why, || match &why {
        Some(why) => explain(why, Timestamp::now()),
        None => format!("Cluster/{} is as wanted: nothing to explain", args.cluster),
    })
}

fn explain(why: &Why, now: Timestamp) -> String {
    let mut text = String::new();
    for (depth, link) in why.chain.iter().enumerate() {
        let arrow = if depth == 0 { "" } else { "└─ because " };
        let _ = writeln!(
            text,
            "{}{arrow}{}{}",
            "   ".repeat(depth.saturating_sub(1)),
            link.part,
            says(link, now)
        );
    }
    let turn = if why.cause.failed { "failed" } else { "is not there yet" };
    let _ = writeln!(text, "\n{} {turn}", why.cause.part);
    if let Some(code) = why.cause.code.as_deref().and_then(entry) {
        let _ = writeln!(
            text,
            "{}: {} (whose turn: {})\nmend: {}",
            code.id(),
            code.0.title,
            code.0.fault,
            code.0.mend
        );
    }
    text
}

fn says(link: &Link, now: Timestamp) -> String {
    let words = if link.message.is_empty() { &link.reason } else { &link.message };
    let what = [link.condition.as_str(), words].into_iter().filter(|word| !word.is_empty());
    let since = link.since.map(|since| format!(" (since {})", age(since, now))).unwrap_or_default();
    what.fold(String::new(), |text, word| format!("{text}: {}", one_line(word))) + &since
}

/// What the catalogue says of a code.
fn entry(id: &str) -> Option<Code> {
    let catalogues = [
        capstan_controller::catalogue::CATALOGUE,
        capstan_capi_kubeadm::bootstrap::code::CATALOGUE,
        capstan_capi_kubeadm::control_plane::code::CATALOGUE,
        capstan_sim_provider::code::CATALOGUE,
        capstan_cloudstack_provider::code::CATALOGUE,
        capstan_kvm::code::CATALOGUE,
    ];
    catalogues.into_iter().flatten().copied().find(|code| code.id() == id)
}
