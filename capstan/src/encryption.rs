//! Encryption at rest: where a server's keys come from, and `capstan encryption`.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capstan_encryption::{Configuration, Encryption, KeyFile, Usage, usage};
use capstan_provider_kit::Finding;
use capstan_store::{Cipher, CipherError, Digest, OpenError, Options, RealDisk, Store};
use zeroize::Zeroizing;

use crate::exit::Exit;
use crate::output::print_line;

/// Name of the systemd credential.
const CREDENTIAL: &str = "capstan-encryption";
/// Bucket of what is encrypted by default.
const SECRETS: &str = "/secrets";
/// How often a KMS is asked for its current key; kube-apiserver does it as often.
const REFRESH: Duration = Duration::from_secs(60);

/// How often a command that re-encrypts says how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// Where the keys of a data directory are.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct EncryptionArgs {
    /// Key file of the data directory, or of the server that a backup is of; created with a new directory. By default the
    /// systemd credential capstan-encryption, else DIR.key beside the directory
    #[arg(long, value_name = "FILE")]
    encryption_key_file: Option<PathBuf>,
    /// Encrypt as configured by an EncryptionConfiguration (apiserver.config.k8s.io/v1), for example with a KMS v2 plug-in
    #[arg(long, value_name = "FILE", conflicts_with = "encryption_key_file")]
    encryption_provider_config: Option<PathBuf>,
}

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A file that this program may write.
    KeyFile(PathBuf),
    /// A file of the operator.
    Given(PathBuf),
    /// A file of the service manager.
    Credential(PathBuf),
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::KeyFile(path) | Self::Given(path) | Self::Credential(path) => path,
        }
    }

    fn read(&self) -> Result<Arc<Encryption>> {
        let config = match self {
            Self::KeyFile(path) => KeyFile::configuration(path)?,
            Self::Given(path) => {
                let shown = path.display();
                let bytes = std::fs::read(path)
                    .map(Zeroizing::new)
                    .with_context(|| format!("cannot read the encryption configuration {shown}"))?;
                Configuration::parse_or_key(&bytes)
                    .with_context(|| format!("encryption configuration {shown}"))?
            }
            Self::Credential(path) => {
                let shown = path.display();
                let bytes = std::fs::read(path).map(Zeroizing::new).with_context(|| {
                    format!("cannot read the systemd credential {shown}: see LoadCredential= of the unit")
                })?;
                Configuration::parse_or_key(&bytes).with_context(|| {
                    format!(
                        "the systemd credential {shown} must be a key of 32 bytes (head -c 32 /dev/urandom | base64) or an \
                         EncryptionConfiguration"
                    )
                })?
            }
        };
        let made = Encryption::new(&config);
        Ok(Arc::new(made.with_context(|| format!("encryption with {} cannot begin", self.path().display()))?))
    }
}

impl EncryptionArgs {
    /// A key file in the directory itself, for data that is not worth more.
    pub fn inside(dir: &Path) -> Self {
        Self { encryption_key_file: Some(dir.join("encryption.key")), encryption_provider_config: None }
    }

    /// The file for a directory. It need not exist.
    fn source(&self, dir: &Path) -> Source {
        if let Some(path) = &self.encryption_provider_config {
            return Source::Given(path.clone());
        }
        if let Some(path) = &self.encryption_key_file {
            return Source::KeyFile(path.clone());
        }
        // One that cannot be looked for is taken, so that reading it says why: another key is no replacement.
        match credential().filter(|path| path.try_exists().unwrap_or(true)) {
            Some(path) => Source::Credential(path),
            None => Source::KeyFile(KeyFile::default_path(dir)),
        }
    }

    /// The encryption of a directory that exists; `None` if it has no keys.
    pub fn existing(&self, dir: &Path) -> Result<Option<Arc<Encryption>>> {
        match self.source(dir) {
            Source::KeyFile(path) if self.encryption_key_file.is_none() && !path.exists() => Ok(None),
            source => source.read().map(Some),
        }
    }

    /// The encryption of a directory that is to be made. Makes a key file if there is none.
    pub fn for_new(&self, dir: &Path) -> Result<Arc<Encryption>> {
        // The directory must be there: its file system decides where the key file is.
        let shown = dir.display();
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        created.with_context(|| format!("cannot create {shown}"))?;
        let source = self.source(dir);
        if let Source::KeyFile(path) = &source
            && !path.exists()
        {
            KeyFile::create(path)?;
            let file = path.display();
            tracing::info!(%file, "a key file for Secrets was created: keep a copy where the data is not");
            if path.starts_with(dir) {
                tracing::warn!(%file, "the key file is in the data directory; move it with --encryption-key-file");
            }
        }
        source.read()
    }

    /// The encryption with which a server starts. Existing directories without it stay as they are.
    pub fn for_server(&self, dir: &Path) -> Result<Option<Arc<Encryption>>> {
        if !RealDisk::holds_store(dir).with_context(|| format!("{} cannot be read", dir.display()))?
            && !dir.join("pki/ca.key").exists()
        {
            return self.for_new(dir).map(Some);
        }
        let encryption = self.existing(dir)?;
        if encryption.is_none() {
            expect_no_lost_credential(dir)?;
            let command = format!("capstan encryption enable --data-dir {}", dir.display());
            tracing::warn!(command, "Secrets are stored in clear text; stop the server and run the command");
        }
        Ok(encryption)
    }

    /// For a directory that is made out of a backup or another directory, whose key file these arguments name: it gets
    /// a key file of its own.
    pub fn for_copy(&self) -> Self {
        Self {
            encryption_key_file: None,
            encryption_provider_config: self.encryption_provider_config.clone(),
        }
    }

    /// Flags for a hint, so that the next command finds the same keys.
    pub fn flags(&self) -> String {
        let flag = |name: &str, path: &Path| {
            format!(" {name} {}", std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display())
        };
        match (&self.encryption_key_file, &self.encryption_provider_config) {
            (Some(path), _) => flag("--encryption-key-file", path),
            (None, Some(path)) => flag("--encryption-provider-config", path),
            (None, None) => String::new(),
        }
    }
}

/// Where the service manager puts the credential of this unit, if it has any.
fn credential() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(CREDENTIAL))
}

/// Fails if a directory is encrypted, there is no key, and the service manager was to provide one.
fn expect_no_lost_credential(dir: &Path) -> Result<()> {
    let Some(credential) = credential() else { return Ok(()) };
    if !RealDisk::holds_store(dir)? || !usage(&RealDisk::shared(dir), None)?.is_sealed() {
        return Ok(());
    }
    bail!(
        "{} is encrypted and has no key: neither the systemd credential {} nor {} exists. Give the unit \
         LoadCredentialEncrypted={CREDENTIAL}:FILE again, or the server --encryption-key-file",
        dir.display(),
        credential.display(),
        KeyFile::default_path(dir).display()
    )
}

/// As the store takes it.
pub fn cipher(encryption: Option<&Arc<Encryption>>) -> Option<Arc<dyn Cipher>> {
    encryption.map(|encryption| encryption.clone() as Arc<dyn Cipher>)
}

/// Re-encrypts in the background what is not encrypted with the current key, and follows new keys of a KMS.
pub fn keep_current<D: Digest>(store: Store<D>, encryption: Arc<Encryption>) {
    let stale = store.metrics().stale_values;
    tokio::spawn(async move {
        if stale > 0 {
            tracing::info!(values = stale, "re-encrypting values that the current key has not encrypted");
            match store.checkpoint().await {
                Ok(()) => tracing::info!(
                    values = stale,
                    "re-encrypted; the log that has them with earlier keys is removed within an hour"
                ),
                Err(error) => tracing::warn!(%error, "cannot re-encrypt now; the next snapshot does"),
            }
        }
        while encryption.has_plugin() {
            tokio::time::sleep(REFRESH).await;
            let refreshed = encryption.clone();
            match tokio::task::spawn_blocking(move || refreshed.refresh()).await {
                Ok(Ok(true)) => {
                    tracing::info!("the KMS has a new key: re-encrypting");
                    match store.checkpoint().await {
                        Ok(()) => tracing::info!("re-encrypted with the new key of the KMS"),
                        Err(error) => tracing::warn!(%error, "cannot re-encrypt now; the next snapshot does"),
                    }
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the key of the KMS cannot be checked"),
                Err(_) => return,
            }
        }
    });
}

/// Arguments of `capstan encryption`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Show which keys the files of a data directory are encrypted with; a server may be using it
    Status(DirectoryArgs),
    /// Encrypt an unencrypted data directory: create a key file and re-encrypt
    Enable(DirectoryArgs),
    /// Add a new key and re-encrypt everything with it
    Rotate(RotateArgs),
    /// Re-encrypt everything with the first key of the configuration; repeat it if it was interrupted
    Reencrypt(DirectoryArgs),
}

#[derive(clap::Args)]
struct DirectoryArgs {
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    #[command(flatten)]
    encryption: EncryptionArgs,
}

#[derive(clap::Args)]
struct RotateArgs {
    #[command(flatten)]
    directory: DirectoryArgs,
    /// Remove the old keys at the end; backups that were made with them need a copy of the old key file
    #[arg(long)]
    remove_old_keys: bool,
}

pub fn run(args: &Args) -> Result<Exit> {
    match &args.verb {
        Verb::Status(args) => status(args),
        Verb::Enable(args) => enable(args).map(|()| Exit::Done),
        Verb::Rotate(args) => rotate(args).map(|()| Exit::Done),
        Verb::Reencrypt(args) => {
            reencrypt(args)?;
            Ok(Exit::Done)
        }
    }
}

fn expect_store(dir: &Path) -> Result<()> {
    if !RealDisk::holds_store(dir).with_context(|| format!("{} cannot be read", dir.display()))? {
        bail!("{} has no store", dir.display());
    }
    Ok(())
}

/// Differs if something is not encrypted with the key in use.
fn status(args: &DirectoryArgs) -> Result<Exit> {
    let dir = &args.data_dir;
    expect_store(dir)?;
    let source = args.encryption.source(dir);
    let encryption = args.encryption.existing(dir)?;
    let found = usage(&RealDisk::shared(dir), encryption.as_deref())?;
    let shown = dir.display();
    match &encryption {
        None => print_line(&format!(
            "{shown}: not encrypted; capstan encryption enable --data-dir {shown} encrypts Secrets"
        ))?,
        Some(encryption) => {
            let path = source.path();
            print_line(&format!("configuration: {}", path.display()))?;
            if path.starts_with(dir) {
                print_line("  it is in the data directory: a copy of the directory has the keys too")?;
            }
            match encryption.writes_with(SECRETS) {
                Some(key) => print_line(&format!("new Secrets: {key}"))?,
                None => print_line("new Secrets: not encrypted")?,
            }
        }
    }
    for (key, count) in &found.by_key {
        print_line(&format!("{count} values: {key}"))?;
    }
    if found.plain > 0 {
        print_line(&format!("{} values: not encrypted, and should be", found.plain))?;
    }
    print_line(&format!("{} values: not to be encrypted", found.uncovered))?;
    if encryption.is_some() && !found.is_current() {
        print_line(
            "the rest is re-encrypted with the next snapshot, and the log that has it is removed within an hour;\n\
             capstan encryption reencrypt does it now, with the server stopped",
        )?;
    }
    Ok(if encryption.is_some() && found.is_current() { Exit::Done } else { Exit::Differs })
}

fn enable(args: &DirectoryArgs) -> Result<()> {
    let dir = &args.data_dir;
    expect_store(dir)?;
    if args.encryption.source(dir).path().exists() {
        print_line(&format!("{} has keys already", dir.display()))?;
    } else {
        // Locked for a moment, so that no running server is left without the key that its files need.
        drop(stopped(dir)?);
        args.encryption.for_new(dir)?;
        print_line(&format!("{}: created; keep a copy of it", args.encryption.source(dir).path().display()))?;
    }
    reencrypt(args)
}

fn rotate(args: &RotateArgs) -> Result<()> {
    let RotateArgs { directory, remove_old_keys } = args;
    let dir = &directory.data_dir;
    expect_store(dir)?;
    drop(stopped(dir)?);
    let source = directory.encryption.source(dir);
    let path = source.path();
    let mut file = match &source {
        Source::KeyFile(path) if path.exists() => KeyFile::open(path)?,
        Source::KeyFile(path) => bail!(
            "{} does not exist: capstan encryption enable --data-dir {} creates the first key",
            path.display(),
            dir.display()
        ),
        Source::Given(path) | Source::Credential(path) => bail!(
            "{} is yours to change: put a new key before the first one, then run capstan encryption reencrypt",
            path.display()
        ),
    };
    // An interrupted rotation is finished, not repeated: its new key is in the file and the old one in the data.
    let found = usage(&RealDisk::shared(dir), Some(&*source.read()?))?;
    if found.is_current() || !found.is_sealed() {
        let name = file.add_key()?.to_owned();
        print_line(&format!("{}: {name} added", path.display()))?;
    }
    reencrypt(directory)?;
    if *remove_old_keys {
        for name in file.remove_old_keys()? {
            print_line(&format!("{}: {name} removed", path.display()))?;
        }
    }
    Ok(())
}

fn stopped(dir: &Path) -> Result<RealDisk> {
    match RealDisk::open(dir) {
        Err(OpenError::InUse { .. }) => bail!(
            "a server uses {}: stop it first; its data stays readable with the old key meanwhile",
            dir.display()
        ),
        disk => Ok(disk?),
    }
}

fn reencrypt(args: &DirectoryArgs) -> Result<()> {
    let dir = &args.data_dir;
    expect_store(dir)?;
    let Some(encryption) = args.encryption.existing(dir)? else {
        bail!("{} has no keys: capstan encryption enable creates them", dir.display());
    };
    let before = usage(&RealDisk::shared(dir), Some(&encryption))?;
    print_line(&format!(
        "1/3 {} values to re-encrypt: {} in clear text, {} with earlier keys",
        before.plain + before.outdated,
        before.plain,
        before.outdated
    ))?;
    let counting = Arc::new(Counting { encryption: encryption.clone(), sealed: AtomicU64::new(0) });
    let options =
        Options { cipher: Some(counting.clone()), ..Options::with_clock(std::time::SystemTime::now) };
    let store: Store<()> = Store::open(stopped(dir)?, options)?;
    let objects = store.metrics().entries;
    print_line(&format!("2/3 writing a snapshot of {objects} objects"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let count = || counting.sealed.load(Ordering::Relaxed);
        let done = with_progress(store.reseal(), || {
            print_line(&format!("    {} values are encrypted so far", count()))
        });
        let done = done.await;
        store.close().await;
        done
    })?;
    drop(store);
    let after = usage(&RealDisk::shared(dir), Some(&encryption))?;
    if !after.is_current() {
        bail!(
            "{} values are still not encrypted with the first key: free space on the disk, then repeat it",
            after.plain + after.outdated
        );
    }
    print_line(&format!("3/3 old files removed; {}", summary(&after)))
}

/// Counts the values that are encrypted.
struct Counting {
    encryption: Arc<Encryption>,
    sealed: AtomicU64,
}

impl Cipher for Counting {
    fn covers(&self, bucket: &str) -> bool {
        self.encryption.covers(bucket)
    }

    fn overhead(&self) -> usize {
        self.encryption.overhead()
    }

    fn seal(&self, bucket: &str, context: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.sealed.fetch_add(1, Ordering::Relaxed);
        self.encryption.seal(bucket, context, value, out);
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        self.encryption.open(context, sealed)
    }

    fn is_current(&self, sealed: &[u8]) -> bool {
        self.encryption.is_current(sealed)
    }
}

/// Does something that may take long, and reports at intervals. A report that cannot be printed ends nothing.
async fn with_progress<T>(work: impl Future<Output = T>, report: impl Fn() -> Result<()>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(PROGRESS) => drop(report()),
        }
    }
}

fn summary(usage: &Usage) -> String {
    match usage.by_key.iter().next() {
        None => "there is nothing to encrypt yet".to_owned(),
        Some((key, count)) => format!("{count} values are encrypted with {key}"),
    }
}

/// What `capstan doctor` says of a directory. It does not know the flags of the server.
pub fn findings(dir: &Path) -> Vec<Finding> {
    let (shown, path) = (dir.display(), KeyFile::default_path(dir));
    let mut found = Vec::new();
    let (mut sealed, mut plain) = (0u64, 0u64);
    let counted = capstan_store::survey(&RealDisk::shared(dir), &mut |value| {
        sealed += u64::from(value.sealed.is_some());
        plain += u64::from(value.sealed.is_none() && value.bucket == SECRETS);
    });
    found.push(match counted {
        Err(error) => Finding::warning(format!("the files in {shown} cannot be read: {error}"), ""),
        Ok(()) if plain > 0 => Finding::warning(
            format!("{plain} values of Secrets in {shown} are in clear text"),
            format!("stop the server and run capstan encryption enable --data-dir {shown}"),
        ),
        Ok(()) => Finding::fine(format!("Secrets in {shown} are encrypted ({sealed} values)")),
    });
    if path.starts_with(dir) && path.exists() {
        found.push(Finding::warning(
            format!("the key file {} is in the data directory", path.display()),
            "move it elsewhere and start the server with --encryption-key-file",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn long_work_is_reported_on_and_short_work_is_not() {
        for (seconds, expected) in [(1, 0), (7, 3)] {
            let reports = AtomicU64::new(0);
            with_progress(tokio::time::sleep(Duration::from_secs(seconds)), || {
                reports.fetch_add(1, Ordering::Relaxed);
                bail!("stdout is closed")
            })
            .await;
            assert_eq!(reports.into_inner(), expected, "{seconds} s");
        }
    }
}
