//! `capstan orphans --delete`: has clouds give up what carries the mark and is in no record. What a record names, and what
//! does not carry the mark, stays.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context, Result, bail};
use capstan_provider_kit::{Counted, Unrecorded};

use crate::exit::Exit;
use crate::output::{say, talk};

/// Arguments about removing.
#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Remove from the clouds what carries the mark and is in no record
    #[arg(long, conflicts_with = "cluster")]
    pub delete: bool,
    /// With --delete: do not ask
    #[arg(long, requires = "delete")]
    yes: bool,
    /// With --delete: say what would go, and remove nothing
    #[arg(long, requires = "delete", conflicts_with = "yes")]
    dry_run: bool,
}

/// Removes, if that is really wanted, and says how many went.
pub async fn remove(args: &DeleteArgs, accounts: &[Box<dyn Unrecorded>]) -> Result<Exit> {
    let mut all = Counted::default();
    accounts.iter().for_each(|account| all.extend(&account.counts()));
    if all.sum() == 0 {
        say("nothing to remove")?;
        return Ok(Exit::Done);
    }
    if args.dry_run {
        say(&format!("{all} would be removed"))?;
        return Ok(Exit::Differs);
    }
    if !args.yes && !agreed(&all)? {
        say("nothing was removed")?;
        return Ok(Exit::Differs);
    }
    let (mut gone, mut kept) = (all.none_of(), 0);
    for account in accounts {
        let removed = account.remove().await.with_context(|| format!("{gone} removed; then"))?;
        gone.extend(&removed.gone);
        for thing in &removed.kept {
            talk(&format!("{} stays: {}", thing.what, thing.why));
        }
        kept += removed.kept.len();
    }
    let rest = if kept > 0 { format!(", {kept} left") } else { String::new() };
    say(&format!("{gone} removed{rest}"))?;
    Ok(if kept > 0 { Exit::Differs } else { Exit::Done })
}

/// Asks whoever sits there; nobody else can agree.
fn agreed(what: &Counted) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{what} would be removed for good: give --yes if that is wanted, --dry-run to look only");
    }
    let mut out = std::io::stderr();
    write!(out, "remove {what} for good? Another management plane may have them [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
