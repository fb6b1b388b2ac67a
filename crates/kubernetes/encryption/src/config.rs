//! EncryptionConfiguration files.

use std::time::Duration;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use crate::resources::Pattern;

/// Largest configuration in bytes.
const MAX_BYTES: usize = 1 << 20;
const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";
/// What kube-apiserver waits for a plug-in.
const KMS_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a configuration is refused. Names the field, never a key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not YAML, or not this kind. The parser's text is not passed on: it may quote the line, and the line may be a key.
    #[error("this is not an EncryptionConfiguration in YAML{0}")]
    Syntax(String),
    #[error("{field}: {problem}")]
    Field { field: String, problem: String },
}

fn refused<T>(field: impl Into<String>, problem: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Field { field: field.into(), problem: problem.into() })
}

/// A configuration that was read and checked.
pub struct Configuration {
    pub(crate) entries: Vec<Entry>,
}

/// Resources and the providers for them. The first provider encrypts.
pub(crate) struct Entry {
    pub patterns: Vec<Pattern>,
    pub providers: Vec<Provider>,
}

pub(crate) enum Provider {
    /// Plain values.
    Identity,
    /// Keys in the configuration; the first one encrypts.
    Local {
        algorithm: Algorithm,
        keys: Vec<NamedKey>,
    },
    Kms(KmsConfig),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    AesGcm,
    /// Where kube-apiserver uses XSalsa20-Poly1305, data keys are wrapped with ChaCha20-Poly1305 here.
    Secretbox,
}

pub(crate) struct NamedKey {
    pub name: String,
    pub secret: Zeroizing<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) struct KmsConfig {
    pub name: String,
    /// Path of the unix socket; one that begins with `@` is abstract.
    pub socket: String,
    pub timeout: Duration,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    resources: Vec<ResourceFile>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ResourceFile {
    resources: Vec<String>,
    providers: Vec<ProviderFile>,
}

#[derive(Deserialize, Serialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ProviderFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    aesgcm: Option<KeysFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aescbc: Option<KeysFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secretbox: Option<KeysFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms: Option<KmsFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentityFile>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    keys: Vec<KeyEntry>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    name: String,
    secret: String,
}

impl Drop for KeyEntry {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KmsFile {
    #[serde(default)]
    api_version: String,
    name: String,
    endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    /// Of v1 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cachesize: Option<i64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct IdentityFile {}

impl Configuration {
    /// Reads a configuration.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        if text.len() > MAX_BYTES {
            return Err(ConfigError::Syntax(": it is larger than 1 MiB".to_owned()));
        }
        let file: File = serde_saphyr::from_str(text).map_err(|error| {
            let place = error.location().map(|at| format!(": see line {}", at.line()));
            ConfigError::Syntax(place.unwrap_or_default())
        })?;
        if file.api_version != API_VERSION || file.kind != KIND {
            return refused("apiVersion, kind", format!("must be {API_VERSION} and {KIND}"));
        }
        if file.resources.is_empty() {
            return refused("resources", "must have an entry");
        }
        let entries = file.resources.into_iter().enumerate();
        let entries: Vec<Entry> = entries
            .map(|(index, entry)| entry.check(&format!("resources[{index}]")))
            .collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// A configuration that encrypts Secrets with one key.
    pub fn of_key(secret: Zeroizing<Vec<u8>>) -> Result<Self, ConfigError> {
        let keys = vec![NamedKey { name: "key1".to_owned(), secret }];
        check_keys(Algorithm::AesGcm, &keys, "the key")?;
        let providers = vec![Provider::Local { algorithm: Algorithm::AesGcm, keys }, Provider::Identity];
        let patterns = vec![Pattern::Resource { group: String::new(), resource: "secrets".to_owned() }];
        Ok(Self { entries: vec![Entry { patterns, providers }] })
    }

    /// Reads a configuration, or a single key: 32 bytes in base64 or as they are.
    pub fn parse_or_key(bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() == 32 {
            return Self::of_key(Zeroizing::new(bytes.to_vec()));
        }
        let Ok(text) = str::from_utf8(bytes) else {
            return Err(ConfigError::Syntax(", and no key of 32 bytes".to_owned()));
        };
        match base64::engine::general_purpose::STANDARD.decode(text.trim()) {
            Ok(key) => Self::of_key(Zeroizing::new(key)),
            Err(_) => Self::parse(text),
        }
    }
}

impl ResourceFile {
    fn check(self, at: &str) -> Result<Entry, ConfigError> {
        if self.resources.is_empty() {
            return refused(format!("{at}.resources"), "must have an entry");
        }
        if self.providers.is_empty() {
            return refused(format!("{at}.providers"), "must have an entry; identity stores plain values");
        }
        let patterns = self.resources.iter().enumerate().map(|(index, text)| {
            Pattern::parse(text).or_else(|problem| refused(format!("{at}.resources[{index}]"), problem))
        });
        let patterns = patterns.collect::<Result<_, _>>()?;
        let providers = self.providers.into_iter().enumerate();
        let providers =
            providers.map(|(index, provider)| provider.check(&format!("{at}.providers[{index}]")));
        Ok(Entry { patterns, providers: providers.collect::<Result<_, _>>()? })
    }
}

impl ProviderFile {
    fn check(self, at: &str) -> Result<Provider, ConfigError> {
        let given = [
            self.aesgcm.is_some(),
            self.aescbc.is_some(),
            self.secretbox.is_some(),
            self.kms.is_some(),
            self.identity.is_some(),
        ];
        if given.iter().filter(|is_given| **is_given).count() != 1 {
            return refused(at, "must have exactly one of aesgcm, secretbox, kms, identity");
        }
        match self {
            Self { aesgcm: Some(file), .. } => file.check(Algorithm::AesGcm, &format!("{at}.aesgcm")),
            Self { secretbox: Some(file), .. } => {
                file.check(Algorithm::Secretbox, &format!("{at}.secretbox"))
            }
            Self { kms: Some(file), .. } => file.check(&format!("{at}.kms")),
            Self { aescbc: Some(_), .. } => refused(
                format!("{at}.aescbc"),
                "is not supported, because it does not detect changes: use aesgcm or secretbox",
            ),
            _ => Ok(Provider::Identity),
        }
    }
}

impl KeysFile {
    fn check(self, algorithm: Algorithm, at: &str) -> Result<Provider, ConfigError> {
        let mut keys = Vec::new();
        for (index, key) in self.keys.into_iter().enumerate() {
            let at = format!("{at}.keys[{index}]");
            let Ok(secret) = base64::engine::general_purpose::STANDARD.decode(key.secret.as_bytes()) else {
                return refused(format!("{at}.secret"), "is not base64");
            };
            keys.push(NamedKey { name: key.name.clone(), secret: Zeroizing::new(secret) });
        }
        check_keys(algorithm, &keys, at)?;
        Ok(Provider::Local { algorithm, keys })
    }
}

fn check_keys(algorithm: Algorithm, keys: &[NamedKey], at: &str) -> Result<(), ConfigError> {
    if keys.is_empty() {
        return refused(format!("{at}.keys"), "must have a key");
    }
    for (index, NamedKey { name, secret }) in keys.iter().enumerate() {
        let at = format!("{at}.keys[{index}]");
        if name.is_empty() || name.len() > 200 {
            return refused(format!("{at}.name"), "must have 1 to 200 characters");
        }
        if keys[..index].iter().any(|other| other.name == *name) {
            return refused(format!("{at}.name"), format!("{name:?} is used twice"));
        }
        let fits = match algorithm {
            Algorithm::AesGcm => [16, 32].contains(&secret.len()),
            Algorithm::Secretbox => secret.len() == 32,
        };
        if !fits {
            let length = secret.len();
            let problem = format!("has {length} bytes: use 32 (head -c 32 /dev/urandom | base64)");
            return refused(format!("{at}.secret"), problem);
        }
    }
    Ok(())
}

impl KmsFile {
    fn check(self, at: &str) -> Result<Provider, ConfigError> {
        let Self { api_version, name, endpoint, timeout, cachesize } = self;
        if api_version != "v2" {
            return refused(format!("{at}.apiVersion"), "must be v2: plug-ins of v1 are not supported");
        }
        if cachesize.is_some() {
            return refused(format!("{at}.cachesize"), "is a field of v1");
        }
        if name.is_empty() || name.contains(':') || name.len() > 200 {
            return refused(format!("{at}.name"), "must have 1 to 200 characters and no colon");
        }
        let Some(socket) = endpoint.strip_prefix("unix://").filter(|path| path.starts_with(['/', '@']))
        else {
            return refused(format!("{at}.endpoint"), "must be unix:// and the path of a socket");
        };
        let timeout = match timeout.as_deref() {
            None => KMS_TIMEOUT,
            Some(text) => match duration(text).filter(|timeout| !timeout.is_zero()) {
                Some(timeout) => timeout,
                None => return refused(format!("{at}.timeout"), "must be a duration such as 3s or 500ms"),
            },
        };
        Ok(Provider::Kms(KmsConfig { name, socket: socket.to_owned(), timeout }))
    }
}

/// Go's durations of one unit.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(milliseconds)?))
}

/// The text of a configuration that encrypts resources with keys of `aesgcm`, and reads plain values too.
pub(crate) fn text(resources: &[String], keys: &[NamedKey]) -> Result<Zeroizing<String>, ConfigError> {
    let entry = |key: &NamedKey| KeyEntry {
        name: key.name.clone(),
        secret: base64::engine::general_purpose::STANDARD.encode(&*key.secret),
    };
    let aesgcm = Some(KeysFile { keys: keys.iter().map(entry).collect() });
    let file = File {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        resources: vec![ResourceFile {
            resources: resources.to_vec(),
            providers: vec![
                ProviderFile { aesgcm, ..ProviderFile::default() },
                ProviderFile { identity: Some(IdentityFile {}), ..ProviderFile::default() },
            ],
        }],
    };
    let text = serde_saphyr::to_string(&file).map_err(|_| ConfigError::Syntax(String::new()))?;
    Ok(Zeroizing::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(providers: &str) -> String {
        format!(
            "apiVersion: {API_VERSION}\nkind: {KIND}\nresources:\n- resources: [secrets, '*.apps']\n  providers:\n{providers}"
        )
    }

    const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

    #[test]
    fn what_kube_apiserver_reads_is_read() {
        let text = file(&format!(
            "  - kms: {{apiVersion: v2, name: vault, endpoint: 'unix:///run/kms.sock', timeout: 500ms}}\n  \
             - secretbox: {{keys: [{{name: a, secret: {KEY}}}]}}\n  \
             - aesgcm: {{keys: [{{name: a, secret: {KEY}}}, {{name: b, secret: c2VjcmV0IGlzIHNlY3VyZQ==}}]}}\n  \
             - identity: {{}}\n"
        ));
        let config = Configuration::parse(&text).unwrap();
        let providers = &config.entries[0].providers;
        assert_eq!(providers.len(), 4);
        let Provider::Kms(kms) = &providers[0] else { panic!("no plug-in") };
        assert_eq!((kms.socket.as_str(), kms.timeout), ("/run/kms.sock", Duration::from_millis(500)));
    }

    #[test]
    fn a_refusal_names_the_field_and_no_key() {
        let cases = [
            (
                format!("  - aescbc: {{keys: [{{name: a, secret: {KEY}}}]}}\n"),
                "resources[0].providers[0].aescbc: is not",
            ),
            (
                "  - kms: {name: a, endpoint: 'unix:///a'}\n".to_owned(),
                "resources[0].providers[0].kms.apiVersion: must",
            ),
            (
                "  - kms: {apiVersion: v2, name: a, endpoint: 'tcp://a'}\n".to_owned(),
                "resources[0].providers[0].kms.endpoint: must",
            ),
            (
                "  - aesgcm: {keys: [{name: a, secret: c2hvcnQ=}]}\n".to_owned(),
                "resources[0].providers[0].aesgcm.keys[0].secret: has 5 bytes",
            ),
            (
                format!("  - aesgcm: {{keys: [{{name: a, secret: {KEY}}}]}}\n    identity: {{}}\n"),
                "resources[0].providers[0]: must have exactly one",
            ),
            ("  - {}\n".to_owned(), "resources[0].providers[0]: must have exactly one"),
            (
                format!(
                    "  - secretbox: {{keys: [{{name: a, secret: {KEY}}}, {{name: a, secret: {KEY}}}]}}\n"
                ),
                "resources[0].providers[0].secretbox.keys[1].name: \"a\" is used twice",
            ),
            (
                format!("  - aesgcm: {{keys: [{{name: a, secrets: {KEY}}}]}}\n"),
                "this is not an EncryptionConfiguration",
            ),
        ];
        for (providers, expected) in cases {
            let error = Configuration::parse(&file(&providers)).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{providers}: {error}");
            assert!(!error.contains("MDEy"), "{error}");
        }
    }

    #[test]
    fn a_bare_key_encrypts_secrets() {
        for bytes in [KEY.as_bytes(), b"01234567890123456789012345678901"] {
            let config = Configuration::parse_or_key(bytes).unwrap();
            assert!(config.entries[0].patterns[0].covers("/secrets"));
        }
        assert!(Configuration::parse_or_key(b"c2hvcnQ=").is_err());
    }
}
