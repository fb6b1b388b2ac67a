//! `capstan orphans --delete`: has clouds give up what carries the mark and is in no record. What a record names, and what
//! does not carry the mark, stays.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Result, bail};
use capstan_cloudstack_provider::{Clouds, Removal};
use capstan_cloudstack_types::v1beta3::CloudStackFailureDomainSpec;

use super::Secret;
use crate::exit::Exit;
use crate::output::{say, talk};

/// What of an account is in no record, and how the account is reached.
pub struct Account {
    /// A failure domain that works there.
    pub domain: CloudStackFailureDomainSpec,
    /// Its keys.
    pub keys: Secret,
    /// What is to go.
    pub removal: Removal,
}

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
pub async fn remove(args: &DeleteArgs, clouds: &Clouds, accounts: &[Account]) -> Result<Exit> {
    let machines: usize = accounts.iter().map(|account| account.removal.machines.len()).sum();
    let networks: usize = accounts.iter().map(|account| account.removal.networks.len()).sum();
    let what = counted(machines, networks);
    if machines + networks == 0 {
        say("nothing to remove")?;
        return Ok(Exit::Done);
    }
    if args.dry_run {
        say(&format!("{what} would be removed"))?;
        return Ok(Exit::Differs);
    }
    if !args.yes && !agreed(&what)? {
        say("nothing was removed")?;
        return Ok(Exit::Differs);
    }
    let (mut gone, mut kept) = ((0, 0), 0);
    for Account { domain, keys, removal } in accounts {
        let removed = match clouds.remove(domain, keys, removal).await {
            Ok(removed) => removed,
            Err(trouble) => bail!("{} removed; then: {}", counted(gone.0, gone.1), trouble.message),
        };
        gone = (gone.0 + removed.machines, gone.1 + removed.networks);
        for (thing, why) in &removed.kept {
            talk(&format!("{} ({}) stays: {why}", thing.name, thing.id));
        }
        kept += removed.kept.len();
    }
    let rest = if kept > 0 { format!(", {kept} left") } else { String::new() };
    say(&format!("{} removed{rest}", counted(gone.0, gone.1)))?;
    Ok(if kept > 0 { Exit::Differs } else { Exit::Done })
}

/// Asks whoever sits there; nobody else can agree.
fn agreed(what: &str) -> Result<bool> {
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

fn counted(machines: usize, networks: usize) -> String {
    let many = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    format!("{} and {}", many(machines, "virtual machine"), many(networks, "network"))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn what_goes_is_counted_in_words() {
        assert_eq!(counted(1, 0), "1 virtual machine and 0 networks");
        assert_eq!(counted(3, 1), "3 virtual machines and 1 network");
    }
}
