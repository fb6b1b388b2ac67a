//! `capstan orphans --delete`: deletes cloud resources that have our ownership mark and are in no record. Everything else is
//! kept.

use std::io::IsTerminal as _;

use anyhow::{Context, Result, bail};
use capstan_provider_kit::{Counted, Unrecorded};

use crate::exit::Exit;
use crate::output::{eprint_line, print_line};
use crate::prompt;

#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Delete cloud resources that have the ownership mark and are in no record
    #[arg(long, conflicts_with = "cluster")]
    pub delete: bool,
    /// With --delete: do not ask for confirmation
    #[arg(long, requires = "delete")]
    yes: bool,
    /// With --delete: print what would be deleted; delete nothing
    #[arg(long, requires = "delete", conflicts_with = "yes")]
    dry_run: bool,
}

pub async fn remove(args: &DeleteArgs, accounts: &[Box<dyn Unrecorded>]) -> Result<Exit> {
    let mut all = Counted::default();
    accounts.iter().for_each(|account| all.extend(&account.counts()));
    if all.sum() == 0 {
        print_line("nothing to delete")?;
        return Ok(Exit::Done);
    }
    if args.dry_run {
        print_line(&format!("{all} would be deleted"))?;
        return Ok(Exit::Differs);
    }
    if !args.yes && !confirmed(&all)? {
        print_line("nothing was deleted")?;
        return Ok(Exit::Differs);
    }
    let (mut gone, mut kept) = (all.none_of(), 0);
    for account in accounts {
        let removed = account.remove().await.with_context(|| format!("{gone} deleted; then"))?;
        gone.extend(&removed.gone);
        for thing in &removed.kept {
            eprint_line(&format!("{} is kept: {}", thing.what, thing.why));
        }
        kept += removed.kept.len();
    }
    let rest = if kept > 0 { format!(", {kept} kept") } else { String::new() };
    print_line(&format!("{gone} deleted{rest}"))?;
    Ok(if kept > 0 { Exit::Differs } else { Exit::Done })
}

/// Asks on the terminal; fails if there is none.
fn confirmed(what: &Counted) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{what} would be deleted permanently: use --yes to confirm, or --dry-run to preview");
    }
    prompt::confirm(&format!("delete {what} permanently? Another management plane may own them"))
}
