//! What machines printed last whose nodes have not joined.

use std::time::Duration;

use capstan_provider_kit::console::shown;
use capstan_view::{Problem, Why};
use futures::future::join_all;
use tokio::time::timeout;

use crate::connection::Management;
use crate::console;
use crate::plugins::Plugins;

/// How many consoles are read.
const MOST: usize = 5;
/// `why` answers without the console of a cloud that takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Adds the last line on the console to each blocker that is a machine which starts, or whose node has not joined. The
/// line is a help: without access to the console, or if it is empty, nothing is added.
pub async fn add(management: &Management, plugins: &Plugins, why: &mut Why) {
    let matches = console::defaults(plugins);
    let waiting =
        why.blockers_mut().filter(|it| matches!(it.cause.problem, Problem::Starting | Problem::NotJoined));
    let reads = waiting.take(MOST).map(async |blocker| {
        let machine = blocker.chain.iter().rev().find_map(|link| link.part.strip_prefix("Machine/"));
        let Some(machine) = machine else { return };
        let read = timeout(PATIENCE, console::read(management, plugins, machine, &matches)).await;
        let text = read.ok().and_then(Result::ok).unwrap_or_default();
        blocker.cause.console = text.lines().map(shown).rfind(|line| !line.is_empty());
    });
    join_all(reads).await;
}
