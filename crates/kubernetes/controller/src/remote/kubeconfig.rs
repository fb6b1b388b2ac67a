//! Kubeconfigs, as far as a server needs to be reached.
//!
//! Those of workload clusters come out of Secrets and are not trusted with more than bytes: they name no files and
//! run no programs. Only the operator's own kubeconfig, a file, may.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::credential::{Authorization, CredentialPlugin};

/// Why a kubeconfig cannot be used. The text never holds what the kubeconfig says: it is a secret.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// It is not YAML of the right shape.
    #[error("it is not a kubeconfig")]
    Malformed,
    /// Something it refers to is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// Something in it is not what it should be.
    #[error("its {0} is malformed")]
    Bad(&'static str),
    /// It wants a program to be run, and may not.
    #[error("it uses a credential plugin, which only the kubeconfig of this process may")]
    Plugin,
    /// A file cannot be read: itself, or one that it names.
    #[error("{path} cannot be read")]
    File {
        /// The file.
        path: String,
        source: std::io::Error,
    },
}

/// Where the service account of a Pod is found inside of it.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How a server is reached.
#[derive(Clone)]
pub struct Access {
    /// Host name or address.
    pub host: String,
    pub port: u16,
    /// What stands before every path.
    pub prefix: String,
    /// The name the server proves, if not `host`.
    pub server_name: Option<String>,
    /// PEM of the authorities that vouch for the server.
    pub authorities: Vec<u8>,
    /// PEM of the client's certificate chain and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Where the value of the `Authorization` header comes from.
    pub authorization: Option<Authorization>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(default)]
    current_context: String,
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority_data: Option<String>,
    certificate_authority: Option<String>,
    tls_server_name: Option<String>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate_data: Option<String>,
    client_certificate: Option<String>,
    client_key_data: Option<String>,
    client_key: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    username: Option<String>,
    password: Option<String>,
    exec: Option<CredentialPlugin>,
}

impl Access {
    /// Reads the current context of a kubeconfig that somebody else wrote: nothing of this machine is touched.
    pub fn from_kubeconfig(text: &[u8]) -> Result<Self, KubeconfigError> {
        Self::read(text, None)
    }

    /// Reads the current context of the operator's own kubeconfig. It may name files, relative to itself, and a
    /// program that prints credentials.
    pub fn from_file(path: &Path) -> Result<Self, KubeconfigError> {
        Self::read(&file(path)?, Some(path.parent().unwrap_or(Path::new("."))))
    }

    /// The server of the cluster that this process is a Pod of; none if it is not.
    pub fn in_cluster() -> Result<Option<Self>, KubeconfigError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (Some(host), Some(port)) =
            (variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"))
        else {
            return Ok(None);
        };
        let port = port.parse().map_err(|_| KubeconfigError::Bad("port of the server"))?;
        Self::from_service_account(Path::new(SERVICE_ACCOUNT), host, port).map(Some)
    }

    fn from_service_account(folder: &Path, host: String, port: u16) -> Result<Self, KubeconfigError> {
        let token = folder.join("token");
        // Read again whenever it is used: it is renewed. An absent one is better known now.
        file(&token)?;
        Ok(Self {
            host,
            port,
            prefix: String::new(),
            server_name: None,
            authorities: file(&folder.join("ca.crt"))?,
            identity: None,
            authorization: Some(Authorization::TokenFile(token)),
        })
    }

    /// The same server, or another with the same authorities, by another URL.
    pub fn at(self, server: &str) -> Result<Self, KubeconfigError> {
        let (host, port, prefix) = address(server)?;
        Ok(Self { host, port, prefix, ..self })
    }

    /// Host and port as they stand in a URL.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// `folder` is where the kubeconfig lies, if it may name files and programs.
    fn read(text: &[u8], folder: Option<&Path>) -> Result<Self, KubeconfigError> {
        let text = std::str::from_utf8(text).map_err(|_| KubeconfigError::Malformed)?;
        let config: Kubeconfig = serde_saphyr::from_str(text).map_err(|_| KubeconfigError::Malformed)?;
        let context = config.contexts.iter().find(|context| context.name == config.current_context);
        let context = &context.ok_or(KubeconfigError::Missing("current context"))?.context;
        let cluster = config.clusters.iter().find(|cluster| cluster.name == context.cluster);
        let cluster = &cluster.ok_or(KubeconfigError::Missing("cluster of the current context"))?.cluster;
        let anonymous = User::default();
        let user = config.users.iter().find(|user| user.name == context.user);
        let user = user.map_or(&anonymous, |user| &user.user);
        let (host, port, prefix) = address(&cluster.server)?;
        // What is written down goes before what is named.
        let content = |data: &Option<String>, path: &Option<String>, what| match (data, path, folder) {
            (Some(data), ..) => decode(data, what).map(Some),
            (None, Some(path), Some(folder)) => file(&folder.join(path)).map(Some),
            _ => Ok(None),
        };
        let authorities = content(
            &cluster.certificate_authority_data,
            &cluster.certificate_authority,
            "certificate-authority-data",
        )?;
        let authorities = authorities.ok_or(KubeconfigError::Missing("certificate-authority-data"))?;
        let identity =
            content(&user.client_certificate_data, &user.client_certificate, "client-certificate-data")?
                .zip(content(&user.client_key_data, &user.client_key, "client-key-data")?);
        let authorization = match (&user.token, &user.token_file, folder) {
            (_, Some(path), Some(folder)) => Some(Authorization::TokenFile(folder.join(path))),
            (Some(token), ..) => Some(Authorization::Fixed(format!("Bearer {token}"))),
            _ => match (&user.username, &user.password, &user.exec) {
                (Some(name), Some(password), _) => {
                    let words = STANDARD.encode(format!("{name}:{password}"));
                    Some(Authorization::Fixed(format!("Basic {words}")))
                }
                (_, _, Some(_)) if folder.is_none() => return Err(KubeconfigError::Plugin),
                (_, _, Some(plugin)) => {
                    let mut plugin = plugin.clone();
                    plugin.cluster = json!({
                        "server": cluster.server,
                        "certificate-authority-data": STANDARD.encode(&authorities),
                    });
                    if let Some(name) = &cluster.tls_server_name {
                        plugin.cluster["tls-server-name"] = name.as_str().into();
                    }
                    // A path with folders in it is relative to the kubeconfig; a bare name is looked up.
                    if let Some(folder) = folder
                        && plugin.command.contains('/')
                    {
                        plugin.command = folder.join(&plugin.command).to_string_lossy().into_owned();
                    }
                    Some(Authorization::Plugin(plugin))
                }
                _ => None,
            },
        };
        Ok(Self {
            host,
            port,
            prefix,
            server_name: cluster.tls_server_name.clone(),
            authorities,
            identity,
            authorization,
        })
    }
}

/// Host, port and path of the URL of a server.
fn address(server: &str) -> Result<(String, u16, String), KubeconfigError> {
    let bad = || KubeconfigError::Bad("server");
    let uri: http::Uri = server.parse().map_err(|_| bad())?;
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https")).ok_or_else(bad)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok((host, uri.port_u16().unwrap_or(443), uri.path().trim_end_matches('/').to_owned()))
}

fn file(path: &Path) -> Result<Vec<u8>, KubeconfigError> {
    std::fs::read(path).map_err(|source| KubeconfigError::File { path: path.display().to_string(), source })
}

fn decode(text: &str, what: &'static str) -> Result<Vec<u8>, KubeconfigError> {
    STANDARD.decode(text.trim()).map_err(|_| KubeconfigError::Bad(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(server: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: k, cluster: {{server: \"{server}\", certificate-authority-data: Y2E=}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    #[test]
    fn the_current_context_says_where_and_as_whom() {
        let text =
            kubeconfig("https://10.0.0.1:6443/k8s/", "client-certificate-data: Yw==, client-key-data: aw==");
        let access = Access::from_kubeconfig(text.as_bytes()).expect("a kubeconfig");
        assert_eq!((access.host.as_str(), access.port, access.prefix.as_str()), ("10.0.0.1", 6443, "/k8s"));
        assert_eq!(access.identity, Some((b"c".to_vec(), b"k".to_vec())));
        let text = kubeconfig("https://[fd00::1]", "token: t");
        let access = Access::from_kubeconfig(text.as_bytes()).expect("a kubeconfig");
        assert_eq!((access.host.as_str(), access.port), ("fd00::1", 443));
        assert_eq!(access.authority(), "[fd00::1]:443");
        let elsewhere = access.clone().at("https://10.0.0.2:6443").expect("a URL");
        assert_eq!(elsewhere.authority(), "10.0.0.2:6443");
        assert!(access.clone().at("http://10.0.0.2").is_err());
        assert!(matches!(access.authorization, Some(Authorization::Fixed(value)) if value == "Bearer t"));
    }

    #[test]
    fn a_kubeconfig_of_ones_own_may_name_files_and_programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let read = |user: &str| {
            let text = kubeconfig("https://10.0.0.1", user)
                .replace("certificate-authority-data: Y2E=", "certificate-authority: ca.pem");
            std::fs::write(&path, text).expect("written");
            Access::from_file(&path)
        };
        assert_eq!(
            read("token: t").err().expect("an error").to_string(),
            format!("{} cannot be read", folder.path().join("ca.pem").display())
        );
        std::fs::write(folder.path().join("ca.pem"), "ca").expect("written");
        let access = read("token: old, tokenFile: tok").expect("a kubeconfig");
        assert_eq!(access.authorities, b"ca");
        let Some(Authorization::TokenFile(file)) = access.authorization else { panic!("a token file") };
        assert_eq!(file, folder.path().join("tok"));
        let access =
            read("exec: {apiVersion: v, command: bin/login, args: [a], env: null}").expect("a kubeconfig");
        let Some(Authorization::Plugin(plugin)) = access.authorization else { panic!("a plugin") };
        assert_eq!(plugin.command, folder.path().join("bin/login").to_str().expect("text"));
        assert_eq!(
            plugin.cluster,
            json!({"server": "https://10.0.0.1", "certificate-authority-data": "Y2E="})
        );
    }

    #[test]
    fn a_kubeconfig_of_somebody_else_reads_no_file() {
        let text = kubeconfig("https://10.0.0.1", "tokenFile: /etc/hostname")
            .replace("certificate-authority-data: Y2E=", "certificate-authority: /etc/hostname");
        let error = Access::from_kubeconfig(text.as_bytes()).err().expect("an error");
        assert_eq!(error.to_string(), "it has no certificate-authority-data");
        let text = kubeconfig("https://10.0.0.1", "tokenFile: /etc/hostname, client-key: /etc/hostname");
        let access = Access::from_kubeconfig(text.as_bytes()).expect("a kubeconfig");
        assert!(access.authorization.is_none() && access.identity.is_none());
    }

    #[test]
    fn a_pod_finds_its_server_and_a_token_that_is_renewed() {
        let folder = tempfile::tempdir().expect("a folder");
        let access = || Access::from_service_account(folder.path(), "10.96.0.1".into(), 443);
        assert!(access().is_err());
        std::fs::write(folder.path().join("token"), "t").expect("written");
        std::fs::write(folder.path().join("ca.crt"), "ca").expect("written");
        let access = access().expect("access");
        assert_eq!(
            (access.host.as_str(), access.port, &access.authorities[..]),
            ("10.96.0.1", 443, &b"ca"[..])
        );
        assert!(matches!(access.authorization, Some(Authorization::TokenFile(_))));
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_being_repeated() {
        for text in [
            "nonsense: [".to_owned(),
            "current-context: other".to_owned(),
            kubeconfig("http://10.0.0.1", "token: hidden"),
            kubeconfig("https://10.0.0.1", "client-certificate-data: '%', client-key-data: hidden"),
            kubeconfig("https://10.0.0.1", "exec: {apiVersion: v, command: hidden}"),
        ] {
            let error = Access::from_kubeconfig(text.as_bytes()).err().expect("an error");
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }

    /// Mutations of a kubeconfig: whatever a tenant writes into a Secret, it is read or refused.
    fn fuzz_one(text: &[u8]) {
        if let Err(error) = Access::from_kubeconfig(text) {
            assert!(!error.to_string().contains("hunter2"), "an error repeats a secret");
        }
    }

    #[test]
    fn fuzz_a_kubeconfig_with_any_byte_changed_is_read_or_refused() {
        let whole = kubeconfig("https://10.0.0.1:6443", "token: hunter2, client-key-data: aHVudGVyMg==");
        for at in 0..whole.len() {
            fuzz_one(&whole.as_bytes()[..at]);
            for with in [0, b'{', b'[', b'"', b':', b'&', b'*', b'!', b'\n', 0xff] {
                let mut changed = whole.clone().into_bytes();
                changed[at] = with;
                fuzz_one(&changed);
                changed.insert(at, with);
                fuzz_one(&changed);
            }
        }
    }

    #[test]
    fn fuzz_a_kubeconfig_that_grows_is_refused() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let line = |n: usize| {
            let below = format!("*a{}", n - 1);
            format!("a{n}: &a{n} [{below}, {below}]\n")
        };
        let bomb: String = (1..30).map(line).collect();
        for text in [deep, format!("a0: &a0 x\n{bomb}"), "x: ".repeat(100_000), "- ".repeat(100_000)] {
            assert!(Access::from_kubeconfig(text.as_bytes()).is_err());
        }
    }
}
