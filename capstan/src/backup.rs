//! `capstan backup` and `capstan restore`: a data directory as one self-checking file, and back.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use capstan_apiserver::Digest;
use capstan_store::{Options, RealDisk, Store};

/// Arguments of `capstan backup`.
#[derive(clap::Args)]
pub struct BackupArgs {
    /// Data directory to copy; no server may be using it
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// File to write; must not exist
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Arguments of `capstan restore`.
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// Backup to read
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Data directory to make; must not exist or be empty
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// Copies a data directory to a file.
pub fn backup(args: &BackupArgs) -> Result<()> {
    let store = open(&args.data_dir)?;
    let file = File::create_new(&args.to).with_context(|| {
        format!("{} cannot be made: choose a file that does not exist", args.to.display())
    })?;
    let mut out = BufWriter::new(file);
    let revision = store.backup(&mut out)?;
    let file = out.into_inner().context("the backup could not be written to its end")?;
    file.sync_all()?;
    say(&format!("{}: everything up to resource version {revision}", args.to.display()))
}

/// Makes a data directory from a backup.
pub fn restore(args: &RestoreArgs) -> Result<()> {
    let file = File::open(&args.from).with_context(|| format!("{} cannot be read", args.from.display()))?;
    std::fs::create_dir_all(&args.data_dir)
        .with_context(|| format!("{} cannot be made", args.data_dir.display()))?;
    let disk = RealDisk::open(&args.data_dir)
        .with_context(|| format!("{} cannot be used", args.data_dir.display()))?;
    let restored = capstan_store::restore(&mut BufReader::new(file), disk, std::time::SystemTime::now())?;
    say(&format!(
        "{}: {} objects from resource version {}; the restored plane begins at {}, so clients list anew\n\
         next: capstan server --data-dir {}",
        args.data_dir.display(),
        restored.entries,
        restored.backed_up,
        restored.revision,
        args.data_dir.display()
    ))
}

fn open(dir: &std::path::Path) -> Result<Store<Digest>> {
    let disk = RealDisk::open(dir).with_context(|| {
        format!("{} cannot be opened: stop the server that uses it, then try again", dir.display())
    })?;
    Ok(Store::open(disk, Options::default())?)
}

fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
