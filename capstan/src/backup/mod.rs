//! `capstan backup` and `capstan restore`: a server, its objects and keys, as one self-checking file, and back.

mod hold;
mod running;

pub use hold::HELD;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capstan_apiserver::backup::{Backup, take};
use capstan_apiserver::env::Env;
use capstan_apiserver::pki::Pki;
use capstan_store::{OpenError, Options, RealDisk, Store};
use tempfile::NamedTempFile;

use crate::output::say;

/// Arguments of `capstan backup`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["data_dir", "kubeconfig"]))]
pub struct BackupArgs {
    /// Data directory to copy; if a server is using it, that server is asked
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Kubeconfig of an administrator of a running server, which is asked for the backup
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address of the running server, if not the kubeconfig's
    #[arg(long, value_name = "URL")]
    server: Option<String>,
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
    /// Leave clusters as they are in the backup: controllers act on them as soon as a server starts. Only if nothing was
    /// changed since the backup
    #[arg(long)]
    unpaused: bool,
    /// Check the backup and the directory, and make nothing
    #[arg(long)]
    dry_run: bool,
}

/// Copies a server to a file, whether it runs or not.
pub fn backup(args: &BackupArgs) -> Result<()> {
    if args.to.exists() {
        bail!("{} exists: choose another file", args.to.display());
    }
    let folder = args.to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Readable by its owner only, and gone unless it becomes the backup.
    let mut file = NamedTempFile::new_in(folder)
        .with_context(|| format!("{} cannot be written to", folder.display()))?;
    match (&args.kubeconfig, &args.data_dir) {
        (Some(kubeconfig), _) => running::fetch(kubeconfig, args.server.as_deref(), file.as_file_mut())?,
        (None, Some(dir)) => match lock(dir)? {
            Some(disk) => copy(dir, disk, file.as_file_mut())?,
            None => running::fetch(&dir.join("admin.kubeconfig"), args.server.as_deref(), file.as_file_mut())
                .with_context(|| {
                    format!("{} is in use and the server using it gave no backup", dir.display())
                })?,
        },
        (None, None) => bail!("say what to copy: --data-dir or --kubeconfig"),
    }
    file.as_file().sync_all()?;
    let written = read(file.path()).context("what was written is no backup: try again")?;
    file.persist_noclobber(&args.to).with_context(|| format!("{} cannot be made", args.to.display()))?;
    File::open(folder)?.sync_all()?;
    say(&format!(
        "{}: {} objects up to resource version {}, and the server's keys: keep it as safe as the server",
        args.to.display(),
        written.objects(),
        written.revision()
    ))
}

/// Makes a data directory from a backup.
pub fn restore(args: &RestoreArgs) -> Result<()> {
    let backup = read(&args.from)?;
    let (objects, revision) = (backup.objects(), backup.revision());
    let dir = &args.data_dir;
    if args.dry_run {
        let empty = match std::fs::read_dir(dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(error).with_context(|| format!("{} cannot be read", dir.display())),
        };
        if !empty {
            bail!("{} is not empty: choose another directory with --data-dir", dir.display());
        }
        return say(&format!(
            "{}: {objects} objects from resource version {revision} would be restored; the backup is whole",
            dir.display()
        ));
    }
    let beside = dir.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(beside)?;
    let (backup, held) = if args.unpaused { (backup, Vec::new()) } else { hold::held(backup, beside)? };
    let restored = backup.restore(dir, std::time::SystemTime::now())?;
    let shown = dir.display();
    say(&format!(
        "{shown}: {objects} objects from resource version {revision}; the restored server begins at {}, so clients list anew",
        restored.revision
    ))?;
    if !held.is_empty() {
        say(&format!(
            "{} clusters are paused: nothing is done to them, or to their machines, before you have compared and resumed them",
            held.len()
        ))?;
    }
    say(&format!("next: capstan server --data-dir {shown}"))?;
    if !held.is_empty() {
        say(&format!(
            "      capstan orphans -A --data-dir {shown}          # what differs between these records and what there is\n      \
             capstan resume --restored --data-dir {shown}   # go on"
        ))?;
    }
    Ok(())
}

/// The data directory, unless a server is using it.
fn lock(dir: &Path) -> Result<Option<RealDisk>> {
    if !dir.join("pki").is_dir() {
        bail!("{} is no data directory of capstan: it has no keys", dir.display());
    }
    match RealDisk::open(dir) {
        Ok(disk) => Ok(Some(disk)),
        Err(OpenError::InUse { .. }) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be opened", dir.display())),
    }
}

/// Copies a data directory that no server uses.
fn copy(dir: &Path, disk: RealDisk, out: &mut File) -> Result<()> {
    let store = Store::open(disk, Options::default())?;
    let pki = Pki::load_or_create(&dir.join("pki"), Env::system())?;
    let mut out = BufWriter::new(out);
    take(&store, &pki)?.try_for_each(|piece| out.write_all(&piece))?;
    Ok(out.flush()?)
}

fn read(path: &Path) -> Result<Backup> {
    let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    Backup::read(&mut BufReader::with_capacity(1 << 18, file)).with_context(|| path.display().to_string())
}
