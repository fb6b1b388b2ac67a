//! `capstan store`: the store of a data directory, when a server does not start from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capstan_apiserver::backup::Backup;
use capstan_encryption::Encryption;
use capstan_env::Env;
use capstan_pki::{Keys, Pki};
use capstan_store::{Options, RealDisk, Salvaged, Store, salvage};

use crate::backup;
use crate::encryption::{EncryptionArgs, cipher};
use crate::exit::Exit;
use crate::output::print_line;

/// Lost keys that are listed by name.
const LISTED: usize = 100;

/// Arguments of `capstan store`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Recover what is readable of a damaged data directory into a new one, and report what is lost. The old directory is
    /// not changed
    Salvage(SalvageArgs),
    /// Create an empty store in a directory that has keys and no store
    Init(InitArgs),
}

#[derive(clap::Args)]
struct SalvageArgs {
    /// Data directory to read; no server may be using it
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Data directory to create; must not exist or be empty
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    to: Option<PathBuf>,
    /// Report only
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    encryption: EncryptionArgs,
}

#[derive(clap::Args)]
struct InitArgs {
    /// Data directory with a folder `pki` and no store
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

pub fn run(args: &Args) -> Result<Exit> {
    match &args.verb {
        Verb::Salvage(args) => save(args),
        Verb::Init(args) => init(&args.data_dir).map(|()| Exit::Done),
    }
}

/// Checks that a directory which has keys also has a store, and creates the store of a new directory. The store comes
/// first: after a crash in between, the next start makes the keys.
pub fn expect(dir: &Path, encryption: Option<&Arc<Encryption>>) -> Result<()> {
    if RealDisk::holds_store(dir).with_context(|| format!("{} cannot be read", dir.display()))? {
        return expect_keys(dir, encryption);
    }
    if dir.join("pki/ca.key").exists() {
        let shown = dir.display();
        bail!(
            "{shown} has the keys of a server and no store: its objects are gone. Put the store's files back, or restore \
             a backup into an empty directory with capstan restore. If nothing was ever stored here, as with \
             --in-memory, run capstan store init --data-dir {shown}"
        );
    }
    create(dir, encryption)
}

/// Checks that a store with objects has its keys. A store without any is that of a first start which ended before it made
/// them.
fn expect_keys(dir: &Path, encryption: Option<&Arc<Encryption>>) -> Result<()> {
    let pki = dir.join("pki");
    // With the certificate there, opening the keys reports those that are lost.
    if pki.join("ca.crt").exists() || ["ca.key", "sa.key"].iter().all(|name| pki.join(name).exists()) {
        return Ok(());
    }
    let options = Options { cipher: cipher(encryption), ..Options::default() };
    let store = Store::<()>::open(RealDisk::open(dir)?, options);
    let store = store.with_context(|| format!("the store in {} cannot be opened", dir.display()))?;
    if store.buckets().is_empty() {
        return Ok(());
    }
    let (keys, shown) = (pki.display(), dir.display());
    bail!(
        "{shown} has objects and {keys} lacks the server's keys: with new ones every kubeconfig and token would be \
         invalid. Put {keys} back, or restore a backup into an empty directory with capstan restore. To go on with new \
         keys, run capstan store salvage --data-dir {shown} --to NEW-DIR"
    )
}

fn create(dir: &Path, encryption: Option<&Arc<Encryption>>) -> Result<()> {
    let options = Options { cipher: cipher(encryption), ..Options::default() };
    let store = Store::<()>::open(RealDisk::open(dir)?, options);
    store.map(drop).with_context(|| format!("no store can be created in {}", dir.display()))
}

fn init(dir: &Path) -> Result<()> {
    let shown = dir.display();
    if RealDisk::holds_store(dir).with_context(|| format!("{shown} cannot be read"))? {
        bail!("{shown} has a store");
    }
    if !dir.join("pki").is_dir() {
        bail!("{shown} has no keys: capstan server --data-dir {shown} creates both");
    }
    create(dir, None)?;
    print_line(&format!(
        "{shown}: an empty store was created next to the keys\nnext: capstan server --data-dir {shown}"
    ))
}

fn save(args: &SalvageArgs) -> Result<Exit> {
    let dir = &args.data_dir;
    let disk = RealDisk::read_only(dir)?;
    let keys_of_data = args.encryption.existing(dir)?;
    let keys_of_data = cipher(keys_of_data.as_ref());
    let saved = salvage(&disk, keys_of_data.as_deref())
        .with_context(|| format!("nothing of {} can be saved", dir.display()))?;
    let keys = Keys::read(&dir.join("pki"));
    report(dir, &saved)?;
    let keys = match keys {
        Ok(Some(keys)) => keys,
        unusable => {
            let why = unusable
                .err()
                .map_or_else(|| "are missing".to_owned(), |error| format!("cannot be used ({error})"));
            print_line(&format!(
                "keys: those in {}/pki {why}; new ones are created, and clients need new kubeconfigs",
                dir.display()
            ))?;
            Pki::ephemeral(Env::system()).keys()?
        }
    };
    let complete = saved.is_complete();
    let what =
        format!("{} objects up to resource version {}", saved.backup.entries(), saved.backup.revision());
    match args.to.as_deref().filter(|_| !args.dry_run) {
        None => print_line(&format!("{what} would be saved"))?,
        // Records that are older than the clusters they are about must not be acted upon.
        Some(to) => {
            backup::make(Backup::of(keys, saved.backup), to, complete, &what, &args.encryption.for_copy())?
        }
    }
    Ok(if complete { Exit::Done } else { Exit::Differs })
}

fn report(dir: &Path, saved: &Salvaged) -> Result<()> {
    for (file, problem) in &saved.files {
        print_line(&format!("file: {}/{file} {problem}", dir.display()))?;
    }
    if saved.is_complete() {
        return print_line("nothing is lost: every acknowledged change can be read");
    }
    for lost in &saved.lost_revisions {
        print_line(&format!(
            "lost: changes of resource versions {} to {}; objects deleted in them may be back",
            lost.start(),
            lost.end()
        ))?;
    }
    if let Some(from) = saved.lost_from {
        print_line(&format!(
            "lost: changes from resource version {from} on, if there were any; the end of the log is gone"
        ))?;
    }
    for (bucket, key) in saved.lost_keys.iter().take(LISTED) {
        let bucket = if bucket.is_empty() { "unknown kind" } else { bucket };
        print_line(&format!("lost or older than it was: {} {key}", bucket.trim_start_matches('/')))?;
    }
    if saved.lost_keys.len() > LISTED {
        print_line(&format!("lost or older than they were: {} more", saved.lost_keys.len() - LISTED))?;
    }
    if !saved.sealed.is_empty() {
        print_line(&format!(
            "lost: {} objects that cannot be decrypted; --encryption-key-file gives the key they were written with",
            saved.sealed.len()
        ))?;
    }
    if saved.unknown_keys {
        print_line("lost: further objects whose names cannot be read")?;
    }
    Ok(())
}
