//! `capstan backup` and `capstan restore`: objects and keys of a server in one file with checksums.

mod pause;
mod running;

pub use pause::PAUSED_BY_RESTORE;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capstan_apiserver::backup::{Backup, Summary, expect_empty, take};
use capstan_encryption::Encryption;
use capstan_env::Env;
use capstan_pki::Pki;
use capstan_store::{OpenError, Options, RealDisk, Store};
use tempfile::NamedTempFile;

use crate::encryption::{EncryptionArgs, cipher};
use crate::output::print_line;

/// Arguments of `capstan backup`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["data_dir", "kubeconfig"]))]
pub struct BackupArgs {
    /// Data directory to back up; a server that uses it makes the backup
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Administrator's kubeconfig of a running server, which makes the backup
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address of the running server, if not the one in the kubeconfig
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// File to write; must not exist
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    encryption: EncryptionArgs,
}

/// Arguments of `capstan restore`.
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// Backup to read
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Data directory to create; must not exist or be empty
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Do not pause the clusters: controllers reconcile them as soon as a server starts. Only safe if nothing has changed
    /// since the backup
    #[arg(long)]
    unpaused: bool,
    /// Check the backup and the directory; create nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    encryption: EncryptionArgs,
}

pub fn backup(args: &BackupArgs) -> Result<()> {
    if args.to.exists() {
        bail!("{} already exists: use another file", args.to.display());
    }
    let folder = args.to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Created with mode 0600, and removed on failure.
    let mut file =
        NamedTempFile::new_in(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    match (&args.kubeconfig, &args.data_dir) {
        (Some(kubeconfig), _) => running::fetch(kubeconfig, args.server.as_deref(), file.as_file_mut())?,
        (None, Some(dir)) => match lock(dir)? {
            Some(disk) => {
                let encryption = args.encryption.existing(dir)?;
                copy(dir, disk, file.as_file_mut(), encryption.as_ref())?;
            }
            None => running::fetch(&dir.join("admin.kubeconfig"), args.server.as_deref(), file.as_file_mut())
                .with_context(|| {
                    format!("{} is in use, and the server that uses it did not make a backup", dir.display())
                })?,
        },
        (None, None) => bail!("use --data-dir or --kubeconfig"),
    }
    file.as_file().sync_all()?;
    let written = verify(file.path()).context("the written file is not a valid backup: retry")?;
    file.persist_noclobber(&args.to).with_context(|| format!("cannot create {}", args.to.display()))?;
    File::open(folder)?.sync_all()?;
    let advice = match written.is_sealed {
        true => "encrypted; a restore needs the encryption key, which is not in it",
        false => "not encrypted: protect it like the server",
    };
    print_line(&format!(
        "{}: {} objects up to resource version {}, and the server's keys; {advice}",
        args.to.display(),
        written.objects,
        written.revision
    ))
}

pub fn restore(args: &RestoreArgs) -> Result<()> {
    let Summary { objects, revision, .. } = verify(&args.from)?;
    let dir = &args.data_dir;
    let known = args.encryption.existing(dir)?;
    let backup = read(&args.from, known.as_ref())?;
    if args.dry_run {
        let empty = match std::fs::read_dir(dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", dir.display())),
        };
        if !empty {
            bail!("{} is not empty: use another directory with --data-dir", dir.display());
        }
        return print_line(&format!(
            "{}: {objects} objects from resource version {revision} would be restored; the backup is valid",
            dir.display()
        ));
    }
    let what = format!("{objects} objects from resource version {revision}");
    make(backup, dir, args.unpaused, &what, &args.encryption.for_copy())
}

/// Makes an encrypted data directory, with its clusters paused or not, and says what to do next.
pub fn make(
    backup: Backup,
    dir: &Path,
    unpaused: bool,
    what: &str,
    encryption: &EncryptionArgs,
) -> Result<()> {
    let beside = dir.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    expect_empty(dir)?;
    std::fs::create_dir_all(beside)?;
    let keys = encryption.for_new(dir)?;
    let (backup, paused) =
        if unpaused { (backup, Vec::new()) } else { pause::pause_clusters(backup, beside, &keys)? };
    let restored = backup.restore(dir, std::time::SystemTime::now(), cipher(Some(&keys)))?;
    // Hints work from any directory.
    let shown = std::path::absolute(dir)?;
    let shown = shown.display();
    print_line(&format!(
        "{shown}: {what}; the restored server starts at {}, so that clients list again",
        restored.revision
    ))?;
    if !paused.is_empty() {
        print_line(&format!(
            "{} clusters are paused: nothing happens to them or their machines until you have compared and resumed them",
            paused.len()
        ))?;
    }
    print_line(&format!("next: capstan server --data-dir {shown}{}", encryption.flags()))?;
    if !paused.is_empty() {
        print_line(&format!(
            "      capstan orphans -A --data-dir {shown}          # drift between the backup and what exists\n      \
             capstan resume --restored --data-dir {shown}   # reconcile them again"
        ))?;
    }
    Ok(())
}

/// Locks a data directory; `None` if a server uses it.
fn lock(dir: &Path) -> Result<Option<RealDisk>> {
    if !dir.join("pki").is_dir() {
        bail!("{} is not a capstan data directory: it has no keys", dir.display());
    }
    match RealDisk::open(dir) {
        Ok(disk) => Ok(Some(disk)),
        Err(OpenError::InUse { .. }) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot open {}", dir.display())),
    }
}

/// Backs up a data directory that no server uses.
fn copy(dir: &Path, disk: RealDisk, out: &mut File, encryption: Option<&Arc<Encryption>>) -> Result<()> {
    let store = Store::open(disk, Options { cipher: cipher(encryption), ..Options::default() })?;
    let pki = Pki::load_or_create(&dir.join("pki"), Env::system())?;
    let mut out = BufWriter::new(out);
    take(&store, &pki)?.try_for_each(|piece| out.write_all(&piece))?;
    Ok(out.flush()?)
}

fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 18, file))
}

fn read(path: &Path, encryption: Option<&Arc<Encryption>>) -> Result<Backup> {
    let cipher = cipher(encryption);
    Backup::read(&mut open(path)?, cipher.as_deref()).with_context(|| path.display().to_string())
}

fn verify(path: &Path) -> Result<Summary> {
    Backup::verify(&mut open(path)?).with_context(|| path.display().to_string())
}
