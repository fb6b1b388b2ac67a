//! Backups of a whole server: its objects and its keys in one stream with checksums, taken while it runs.
//!
//! ```text
//! magic (8) · format (4) · length of the keys (4) · keys, JSON · SHA-256 of all before · image of the store
//! ```
//!
//! A backup contains the CA's private key and every Secret. With encryption (format 2) the keys are sealed as Secrets
//! are, and whoever has it needs the encryption key too. Without (format 1), he is an administrator of the cluster.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{BufMut, Bytes, BytesMut};
use capstan_pki::{Keys, Pki, PkiError};
use capstan_store::{BackupSummary, Cipher, CipherError, Image, OpenError, RealDisk, Restored, Store};
use sha2::{Digest as _, Sha256};

use crate::digest::Digest;

/// Path of the backup endpoint, for administrators.
pub const PATH: &str = "/capstan/v1/backup";

const MAGIC: &[u8; 8] = b"capstanB";
/// The format of a backup with sealed keys, and the newest that this code reads.
const FORMAT: u32 = 2;
/// The format of a backup whose keys are in clear text.
const PLAIN: u32 = 1;
/// What the sealed keys are authenticated with.
const KEYS: &str = "capstan backup keys";
const HEAD: usize = MAGIC.len() + 4 + 4;
/// Limit of the size of the keys in bytes. Three PEM files are far smaller.
const MAX_KEYS: u32 = 1 << 20;
/// Names that an empty directory may contain: the store's lock, what a fresh file system has, and the key file where it
/// is in the directory.
const NOTHING: [&str; 3] = ["LOCK", "lost+found", "encryption.key"];

/// Why a backup cannot be taken, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("not a capstan backup")]
    NotABackup,
    #[error("the backup has format {found}, this program reads up to {FORMAT}: use the newer program")]
    Newer { found: u32 },
    /// The checksum of the keys is wrong.
    #[error("the backup is damaged: {0}; use another one")]
    Damaged(&'static str),
    #[error("the backup cannot be read")]
    Read(#[source] std::io::Error),
    /// The target directory is not empty.
    #[error("{} is not empty (it has {name}): restore into an empty directory", directory.display())]
    NotEmpty {
        directory: PathBuf,
        /// A name in the directory.
        name: String,
    },
    #[error("{} cannot be listed", directory.display())]
    List { directory: PathBuf, source: std::io::Error },
    /// The store's part of the backup, or the restored store.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The keys cannot be decrypted.
    #[error(
        "the backup is encrypted: {0}; use --encryption-key-file with the key file of the server that it is of"
    )]
    Sealed(CipherError),
    /// The keys cannot be read, created or written.
    #[error("the keys cannot be used")]
    Keys(#[from] PkiError),
}

/// A backup in progress, as a stream of chunks. It is a consistent snapshot; the server continues meanwhile.
pub struct BackupStream {
    head: Option<Bytes>,
    image: Image<Digest>,
}

/// Starts a backup of a server's store and keys.
pub fn take(store: &Store<Digest>, pki: &Pki) -> Result<BackupStream, BackupError> {
    let keys = serde_json::to_vec(&pki.keys()?).map_err(|_| BackupError::Damaged("the keys are no text"))?;
    let (format, keys) = match store.seal(KEYS, &keys) {
        Some(sealed) => (FORMAT, sealed),
        None => (PLAIN, keys),
    };
    let mut head = BytesMut::with_capacity(HEAD + keys.len() + 32);
    head.put_slice(MAGIC);
    head.put_u32_le(format);
    head.put_u32_le(u32::try_from(keys.len()).unwrap_or(u32::MAX));
    head.put_slice(&keys);
    let checksum = Sha256::digest(&head);
    head.put_slice(&checksum);
    Ok(BackupStream { head: Some(head.freeze()), image: store.image() })
}

impl BackupStream {
    /// The resource version of the backup.
    pub fn revision(&self) -> u64 {
        self.image.revision()
    }
}

impl Iterator for BackupStream {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        self.head.take().or_else(|| self.image.next())
    }
}

/// What a backup contains, as far as it is known without an encryption key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The resource version of the backup.
    pub revision: u64,
    pub objects: u64,
    /// It cannot be restored without an encryption key.
    pub is_sealed: bool,
}

/// A backup that was read completely and verified.
pub struct Backup {
    keys: Keys,
    store: capstan_store::Backup,
}

impl Backup {
    /// Reads and verifies a backup. Fails if it is damaged or truncated, or cannot be decrypted.
    pub fn read(input: &mut dyn Read, cipher: Option<&dyn Cipher>) -> Result<Self, BackupError> {
        let (format, bytes) = read_head(input)?;
        let keys = match format {
            PLAIN => parse_keys(&bytes)?,
            _ => {
                let cipher = cipher.ok_or(CipherError::NoKey);
                let opened = cipher.and_then(|cipher| cipher.open(KEYS.as_bytes(), &bytes));
                parse_keys(&opened.map_err(BackupError::Sealed)?)?
            }
        };
        Ok(Self { keys, store: capstan_store::Backup::read(input, cipher)? })
    }

    /// Verifies a backup without an encryption key. Fails if it is damaged or truncated.
    pub fn verify(input: &mut dyn Read) -> Result<Summary, BackupError> {
        let (format, bytes) = read_head(input)?;
        if format == PLAIN {
            parse_keys(&bytes)?;
        }
        let BackupSummary { revision, entries, sealed } = capstan_store::Backup::verify(input)?;
        Ok(Summary { revision, objects: entries, is_sealed: format != PLAIN || sealed > 0 })
    }

    /// A backup from separately obtained keys and objects.
    pub fn of(keys: Keys, store: capstan_store::Backup) -> Self {
        Self { keys, store }
    }

    /// The resource version of the backup.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Number of objects.
    pub fn objects(&self) -> u64 {
        self.store.entries()
    }

    /// Creates a data directory, encrypted with a cipher. If it is interrupted, no server starts from what is left.
    pub fn restore(
        self,
        directory: &Path,
        now: SystemTime,
        cipher: Option<Arc<dyn Cipher>>,
    ) -> Result<Restored, BackupError> {
        let disk = RealDisk::open(directory)?;
        expect_empty(directory)?;
        let restore = self.store.begin(disk, now, cipher)?;
        self.keys.write(&directory.join("pki"))?;
        Ok(restore.finish()?)
    }
}

/// The format and the keys, after their checksum was verified.
fn read_head(input: &mut dyn Read) -> Result<(u32, Vec<u8>), BackupError> {
    let mut head = [0; HEAD];
    fill(input, &mut head)?;
    let (magic, numbers) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(BackupError::NotABackup);
    }
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| numbers[at + i]));
    let (format, length) = (number(0), number(4));
    if format > FORMAT {
        return Err(BackupError::Newer { found: format });
    }
    if format == 0 || length > MAX_KEYS {
        return Err(BackupError::Damaged("its header is invalid"));
    }
    let mut keys = vec![0; length as usize];
    let mut checksum = [0; 32];
    fill(input, &mut keys)?;
    fill(input, &mut checksum)?;
    if Sha256::new().chain_update(head).chain_update(&keys).finalize().as_slice() != checksum {
        return Err(BackupError::Damaged("the checksum of its keys is wrong"));
    }
    Ok((format, keys))
}

fn parse_keys(json: &[u8]) -> Result<Keys, BackupError> {
    let keys: Keys =
        serde_json::from_slice(json).map_err(|_| BackupError::Damaged("its keys are invalid"))?;
    keys.check()?;
    Ok(keys)
}

/// Fails if a directory has anything that a restore would not expect. One that does not exist is empty.
pub fn expect_empty(directory: &Path) -> Result<(), BackupError> {
    let failed = |source| BackupError::List { directory: directory.to_owned(), source };
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if !NOTHING.contains(&name.as_str()) {
            return Err(BackupError::NotEmpty { directory: directory.to_owned(), name });
        }
    }
    Ok(())
}

fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> Result<(), BackupError> {
    input.read_exact(buffer).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => BackupError::Damaged("it is cut off"),
        _ => BackupError::Read(error),
    })
}
