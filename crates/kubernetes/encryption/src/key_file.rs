//! Key files that this program makes and rotates: an EncryptionConfiguration with keys of `aesgcm`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::config::{Algorithm, ConfigError, Configuration, NamedKey, Provider, text};
use crate::resources::Pattern;

const HEAD: &str = "# Keys of the Secrets in a capstan data directory. Without this file they are lost: keep a copy\n\
                    # where the data directory and its backups are not. `capstan encryption rotate` adds keys.\n";

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot {operation} the key file {}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
    #[error("key file {}", path.display())]
    Config { path: PathBuf, source: ConfigError },
    #[error("the operating system has no randomness for a key")]
    Random,
    #[error("the key file {} can be read by others (mode {mode:o}): chmod o= it", path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error(
        "{} was not created by capstan: add a key before the first one yourself, restart the server, then run capstan \
         encryption reencrypt",
        path.display()
    )]
    Foreign { path: PathBuf },
}

pub struct KeyFile {
    path: PathBuf,
    resources: Vec<String>,
    /// The first one encrypts.
    keys: Vec<NamedKey>,
}

impl KeyFile {
    /// Where the key file of a data directory is by default: beside the directory, so that a copy of the directory does
    /// not have it. On another file system than the directory it may not live as long, as in a container with a
    /// volume; then it is in the directory.
    pub fn default_path(data_dir: &Path) -> PathBuf {
        let inside = data_dir.join("encryption.key");
        let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else { return inside };
        let mut sibling = name.to_owned();
        sibling.push(".key");
        let beside = parent.join(sibling);
        if beside.exists() {
            return beside;
        }
        if inside.exists() {
            return inside;
        }
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
        match (device(&absolute), device(parent)) {
            (Ok(own), Ok(of_parent)) if own != of_parent => inside,
            _ if is_writable(parent) => beside,
            _ => inside,
        }
    }

    /// Reads the configuration in a key file. One that others can read is refused.
    pub fn configuration(path: &Path) -> Result<Configuration, KeyFileError> {
        let text = read(path)?;
        Configuration::parse_or_key(&text)
            .map_err(|source| KeyFileError::Config { path: path.to_owned(), source })
    }

    /// Makes a key file with one key for Secrets. Fails if the file exists.
    pub fn create(path: &Path) -> Result<Self, KeyFileError> {
        let key = new_key("key1".to_owned())?;
        let file = Self { path: path.to_owned(), resources: vec!["secrets".to_owned()], keys: vec![key] };
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(|source| file.failed("create the directory of", source))?;
        }
        file.write(true)?;
        Ok(file)
    }

    /// Reads a key file that this program has made.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let foreign = || KeyFileError::Foreign { path: path.to_owned() };
        let mut config = Self::configuration(path)?;
        if config.entries.len() != 1 || !read(path)?.starts_with(HEAD.as_bytes()) {
            return Err(foreign());
        }
        let entry = config.entries.remove(0);
        let resources = entry.patterns.iter().map(|pattern| match pattern {
            Pattern::All => "*.*".to_owned(),
            Pattern::Group(group) => format!("*.{group}"),
            Pattern::Resource { group, resource } if group.is_empty() => resource.clone(),
            Pattern::Resource { group, resource } => format!("{resource}.{group}"),
        });
        let resources = resources.collect();
        let mut providers = entry.providers.into_iter();
        match (providers.next(), providers.next(), providers.next()) {
            (
                Some(Provider::Local { algorithm: Algorithm::AesGcm, keys }),
                None | Some(Provider::Identity),
                None,
            ) => Ok(Self { path: path.to_owned(), resources, keys }),
            _ => Err(foreign()),
        }
    }

    /// Puts a new key before the others. The file is replaced as a whole: after a crash it has either content.
    pub fn add_key(&mut self) -> Result<&str, KeyFileError> {
        let number = |key: &NamedKey| key.name.strip_prefix("key")?.parse::<u32>().ok();
        let last = self.keys.iter().filter_map(number).max().unwrap_or(0);
        self.keys.insert(0, new_key(format!("key{}", last.saturating_add(1)))?);
        self.write(false)?;
        Ok(&self.keys[0].name)
    }

    /// Removes all keys but the first. Returns the names of those removed.
    pub fn remove_old_keys(&mut self) -> Result<Vec<String>, KeyFileError> {
        let removed: Vec<String> = self.keys.drain(1..).map(|key| key.name).collect();
        if !removed.is_empty() {
            self.write(false)?;
        }
        Ok(removed)
    }

    /// Names of the keys; the first one encrypts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.name.as_str())
    }

    fn failed(&self, operation: &'static str, source: io::Error) -> KeyFileError {
        KeyFileError::Io { operation, path: self.path.clone(), source }
    }

    fn write(&self, is_new: bool) -> Result<(), KeyFileError> {
        let body = text(&self.resources, &self.keys)
            .map_err(|source| KeyFileError::Config { path: self.path.clone(), source })?;
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".tmp");
        let beside = self.path.with_file_name(name);
        let written = (|| {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(HEAD.as_bytes())?;
            file.write_all(body.as_bytes())?;
            file.sync_all()?;
            if is_new {
                // Unlike a rename, a link never replaces a key file that somebody else has just made.
                fs::hard_link(&beside, &self.path)?;
                fs::remove_file(&beside)?;
            } else {
                fs::rename(&beside, &self.path)?;
            }
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
        })();
        written.map_err(|source| {
            let _ = fs::remove_file(&beside);
            self.failed("write", source)
        })
    }
}

fn is_writable(directory: &Path) -> bool {
    // A permission bit says little about read-only file systems and root: try.
    let probe = directory.join(format!(".capstan-{}", std::process::id()));
    let created = OpenOptions::new().write(true).create_new(true).open(&probe).is_ok();
    if created {
        let _ = fs::remove_file(&probe);
    }
    created
}

fn new_key(name: String) -> Result<NamedKey, KeyFileError> {
    let mut secret = Zeroizing::new(vec![0; 32]);
    SystemRandom::new().fill(&mut secret).map_err(|_| KeyFileError::Random)?;
    Ok(NamedKey { name, secret })
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let failed = |source| KeyFileError::Io { operation: "read", path: path.to_owned(), source };
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
    // Systemd credentials and mounted Secrets are readable by the group at most.
    if mode & 0o007 != 0 {
        return Err(KeyFileError::Open { path: path.to_owned(), mode });
    }
    fs::read(path).map(Zeroizing::new).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encryption;
    use capstan_store::Cipher as _;

    #[test]
    fn a_key_file_is_made_rotated_and_pruned() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.key");
        KeyFile::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(KeyFile::create(&path).is_err(), "an existing key is never replaced");
        let load = || Encryption::new(&KeyFile::configuration(&path).unwrap()).unwrap();
        let first = load();
        let mut sealed = Vec::new();
        first.seal("/secrets", b"a", b"hunter2", &mut sealed);

        let mut file = KeyFile::open(&path).unwrap();
        assert_eq!(file.add_key().unwrap(), "key2");
        assert_eq!(file.names().collect::<Vec<_>>(), ["key2", "key1"]);
        let second = load();
        assert_eq!(second.open(b"a", &sealed).unwrap(), b"hunter2");
        assert!(!second.is_current(&sealed));
        assert_eq!(KeyFile::open(&path).unwrap().remove_old_keys().unwrap(), ["key1"]);
        assert!(load().open(b"a", &sealed).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_key_file_that_everybody_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.key");
        KeyFile::create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = KeyFile::configuration(&path).err().unwrap().to_string();
        assert!(error.contains("chmod o="), "{error}");
    }

    #[test]
    fn the_default_is_beside_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(KeyFile::default_path(&data), dir.path().join("data.key"));
        // One that exists is used wherever it is.
        fs::create_dir(&data).unwrap();
        fs::write(data.join("encryption.key"), "").unwrap();
        assert_eq!(KeyFile::default_path(&data), data.join("encryption.key"));
    }

    #[test]
    fn a_file_of_somebody_else_is_not_rotated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.yaml");
        KeyFile::create(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(HEAD, "")).unwrap();
        assert!(KeyFile::configuration(&path).is_ok());
        assert!(matches!(KeyFile::open(&path), Err(KeyFileError::Foreign { .. })));
    }
}
