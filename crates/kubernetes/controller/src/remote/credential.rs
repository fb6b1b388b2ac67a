//! What a client proves itself with, where that changes while it runs: tokens in files that somebody renews, and
//! programs that print tokens or certificates.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use capstan_env::Env;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

/// How long a token from a file is used before the file is read again, as client-go has it.
const REREAD: Duration = Duration::from_secs(60);
/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most that a program may print.
const MOST: u64 = 1 << 20;

/// Where the value of the `Authorization` header comes from.
#[derive(Clone)]
pub enum Authorization {
    /// It stays as it is.
    Fixed(String),
    /// A bearer token in a file that somebody renews, as for programs in a Pod.
    TokenFile(PathBuf),
    /// A program that prints a token, or a certificate instead.
    Plugin(CredentialPlugin),
}

/// A program that prints credentials, as kubeconfigs name them under `exec`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialPlugin {
    /// The version of `ExecCredential` it speaks.
    pub api_version: String,
    pub command: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub args: Vec<String>,
    /// Variables it gets besides ours.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub env: Vec<PluginVariable>,
    /// Whether it is passed information about the server.
    #[serde(default)]
    pub provide_cluster_info: bool,
    /// That information.
    #[serde(skip)]
    pub(super) cluster: Value,
}

/// A variable of a program.
#[derive(Clone, Deserialize)]
pub struct PluginVariable {
    pub name: String,
    pub value: String,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Why there are no credentials. The text never holds what a file or a program says: it is a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CredentialError {
    #[error("the token file {0} cannot be read: {1}")]
    File(String, String),
    #[error("the credential plugin {0} cannot be run: {1}")]
    Run(String, String),
    #[error("the credential plugin {0} {1}")]
    Useless(String, &'static str),
}

/// The current credential.
#[derive(Clone, Default)]
pub(super) struct Credential {
    /// Value of the `Authorization` header.
    pub authorization: Option<String>,
    /// PEM of a certificate chain and its key, if they come from a program.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Which of several in a row this is.
    pub generation: u64,
}

/// Gets credentials and keeps them as long as they are good.
pub(super) struct Credentials {
    source: Option<Authorization>,
    env: Env,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    credential: Option<Arc<Credential>>,
    /// When it must be had anew, if ever.
    until: Option<Timestamp>,
    generation: u64,
}

impl Credentials {
    pub fn new(source: Option<Authorization>, env: &Env) -> Self {
        Self { source, env: env.clone(), held: Mutex::default() }
    }

    /// The current credential; runs the plugin if it has expired.
    pub async fn current(&self) -> Result<Arc<Credential>, CredentialError> {
        let mut held = self.held.lock().await;
        if let Some(credential) = &held.credential
            && held.until.is_none_or(|until| self.env.now() < until)
        {
            return Ok(credential.clone());
        }
        let (mut credential, until) = match &self.source {
            None => (Credential::default(), None),
            Some(Authorization::Fixed(value)) => {
                (Credential { authorization: Some(value.clone()), ..Credential::default() }, None)
            }
            Some(Authorization::TokenFile(path)) => {
                let until = Some(self.env.now() + REREAD);
                match (std::fs::read_to_string(path), &held.credential) {
                    (Ok(token), _) => (bearer(token.trim()), until),
                    // The old one may still be good; whoever is asked will say if not.
                    (Err(error), Some(old)) => {
                        tracing::warn!(%error, path = %path.display(), "the token cannot be read again");
                        (Credential::clone(old), until)
                    }
                    (Err(error), None) => {
                        return Err(CredentialError::File(path.display().to_string(), error.to_string()));
                    }
                }
            }
            Some(Authorization::Plugin(plugin)) => plugin.run().await?,
        };
        held.generation += 1;
        credential.generation = held.generation;
        let credential = Arc::new(credential);
        *held = Held { credential: Some(credential.clone()), until, generation: held.generation };
        Ok(credential)
    }

    /// The server did not accept them: they are had anew for the next request.
    pub async fn refused(&self, credential: &Credential) {
        if matches!(self.source, Some(Authorization::TokenFile(_) | Authorization::Plugin(_))) {
            let mut held = self.held.lock().await;
            if held.generation == credential.generation {
                held.until = Some(Timestamp::MIN);
            }
        }
    }
}

fn bearer(token: &str) -> Credential {
    Credential { authorization: Some(format!("Bearer {token}")), ..Credential::default() }
}

#[derive(Deserialize)]
struct Printed {
    status: PrintedStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrintedStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

impl CredentialPlugin {
    /// Runs the program.
    async fn run(&self) -> Result<(Credential, Option<Timestamp>), CredentialError> {
        let failed = |why: String| CredentialError::Run(self.command.clone(), why);
        let mut spec = json!({"interactive": false});
        if self.provide_cluster_info {
            spec["cluster"] = self.cluster.clone();
        }
        let info = json!({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec});
        let mut command = tokio::process::Command::new(&self.command);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|variable| (&variable.name, &variable.value)))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, printed_by(command)).await;
        let output = output.map_err(|_| failed(format!("it takes longer than {PATIENCE:?}")))?;
        let (status, stdout) = output.map_err(|error| failed(error.to_string()))?;
        let useless = |why| CredentialError::Useless(self.command.clone(), why);
        let Some(status) = status else { return Err(useless("prints too much")) };
        if !status.success() {
            return Err(failed(status.to_string()));
        }
        let printed: Printed =
            serde_json::from_slice(&stdout).map_err(|_| useless("prints no ExecCredential"))?;
        let status = printed.status;
        let mut credential = match &status.token {
            Some(token) => bearer(token),
            None => Credential::default(),
        };
        if let (Some(chain), Some(key)) = (status.client_certificate_data, status.client_key_data) {
            credential.identity = Some((chain.into_bytes(), key.into_bytes()));
        }
        if credential.authorization.is_none() && credential.identity.is_none() {
            return Err(useless("prints neither a token nor a certificate with its key"));
        }
        let expires = status.expiration_timestamp.map(|text| text.parse()).transpose();
        Ok((credential, expires.map_err(|_| useless("prints no time when it expires"))?))
    }
}

/// How a program ended and what it printed; it has no end if it prints more than is read, and is stopped.
async fn printed_by(mut command: tokio::process::Command) -> io::Result<(Option<ExitStatus>, Vec<u8>)> {
    let mut child = command.spawn()?;
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST + 1).read_to_end(&mut printed).await?;
    }
    if printed.len() as u64 > MOST {
        return Ok((None, printed));
    }
    Ok((Some(child.wait().await?), printed))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// A clock that is moved by hand.
    fn clock() -> (Env, Arc<AtomicI64>) {
        let seconds = Arc::new(AtomicI64::new(1_000));
        let clock = seconds.clone();
        let now = move || Timestamp::from_second(clock.load(Ordering::Relaxed)).expect("a time");
        (Env::simulated(now, 1), seconds)
    }

    async fn presented(credentials: &Credentials) -> String {
        let credential = credentials.current().await.map_err(|error| error.to_string());
        credential.map_or_else(|error| error, |c| c.authorization.clone().unwrap_or_default())
    }

    #[tokio::test]
    async fn a_token_in_a_file_is_read_again_after_a_minute_or_a_refusal() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let (env, seconds) = clock();
        let credentials = Credentials::new(Some(Authorization::TokenFile(path.clone())), &env);
        assert!(presented(&credentials).await.starts_with("the token file "));
        std::fs::write(&path, "one\n").expect("written");
        assert_eq!(presented(&credentials).await, "Bearer one");
        std::fs::write(&path, "two").expect("written");
        assert_eq!(presented(&credentials).await, "Bearer one");
        seconds.fetch_add(61, Ordering::Relaxed);
        assert_eq!(presented(&credentials).await, "Bearer two");
        std::fs::write(&path, "three").expect("written");
        let used = credentials.current().await.expect("credentials");
        credentials.refused(&used).await;
        assert_eq!(presented(&credentials).await, "Bearer three");
        // A file that is gone for a moment stops nothing.
        std::fs::remove_file(&path).expect("removed");
        seconds.fetch_add(61, Ordering::Relaxed);
        assert_eq!(presented(&credentials).await, "Bearer three");
    }

    fn plugin(script: &str) -> CredentialPlugin {
        CredentialPlugin {
            api_version: "client.authentication.k8s.io/v1".into(),
            command: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![PluginVariable { name: "SAID".into(), value: "token".into() }],
            provide_cluster_info: true,
            cluster: json!({"server": "https://there"}),
        }
    }

    async fn printed(script: &str) -> String {
        presented(&Credentials::new(Some(Authorization::Plugin(plugin(script))), &Env::system())).await
    }

    #[tokio::test]
    async fn a_plugin_receives_its_cluster_and_is_trusted_until_it_expires() {
        let script = r#"echo "$KUBERNETES_EXEC_INFO" | grep -q '"server":"https://there"' || exit 1
            printf '{"kind":"ExecCredential","status":{"token":"%s","expirationTimestamp":"1970-01-01T00:20:00Z"}}' "$SAID""#;
        let (env, seconds) = clock();
        let credentials = Credentials::new(Some(Authorization::Plugin(plugin(script))), &env);
        assert_eq!(presented(&credentials).await, "Bearer token");
        let first = credentials.current().await.expect("credentials").generation;
        assert_eq!(credentials.current().await.expect("credentials").generation, first);
        seconds.fetch_add(500, Ordering::Relaxed);
        assert_ne!(credentials.current().await.expect("credentials").generation, first);
    }

    #[tokio::test]
    async fn a_plugin_that_fails_is_named_and_what_it_says_is_not() {
        for (script, why) in [
            ("echo hidden; exit 3", "cannot be run: exit status: 3"),
            ("echo hidden", "prints no ExecCredential"),
            ("yes hidden", "prints too much"),
            (
                r#"echo '{"status":{"clientKeyData":"hidden"}}'"#,
                "prints neither a token nor a certificate with its key",
            ),
        ] {
            assert_eq!(printed(script).await, format!("the credential plugin /bin/sh {why}"));
        }
        let certificate = r#"echo '{"status":{"clientCertificateData":"c","clientKeyData":"k"}}'"#;
        let source = Authorization::Plugin(plugin(certificate));
        let credential = Credentials::new(Some(source), &Env::system()).current().await.expect("credentials");
        assert_eq!(credential.identity, Some((b"c".to_vec(), b"k".to_vec())));
    }
}
