//! Kubeconfigs, as far as a server needs to be reached.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

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
    /// It wants a program to be run.
    #[error("it uses a credential plugin, which is not supported")]
    Plugin,
}

/// How a server is reached.
#[derive(Clone)]
pub struct Access {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What stands before every path.
    pub prefix: String,
    /// The name the server proves, if not `host`.
    pub server_name: Option<String>,
    /// PEM of the authorities that vouch for the server.
    pub authorities: Vec<u8>,
    /// PEM of the client's certificate chain and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Value of the `Authorization` header.
    pub authorization: Option<String>,
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
    client_key_data: Option<String>,
    token: Option<String>,
    username: Option<String>,
    password: Option<String>,
    exec: Option<serde::de::IgnoredAny>,
}

impl Access {
    /// Reads the current context of a kubeconfig.
    pub fn from_kubeconfig(text: &[u8]) -> Result<Self, KubeconfigError> {
        let text = std::str::from_utf8(text).map_err(|_| KubeconfigError::Malformed)?;
        let config: Kubeconfig = serde_saphyr::from_str(text).map_err(|_| KubeconfigError::Malformed)?;
        let context = config.contexts.iter().find(|context| context.name == config.current_context);
        let context = &context.ok_or(KubeconfigError::Missing("current context"))?.context;
        let cluster = config.clusters.iter().find(|cluster| cluster.name == context.cluster);
        let cluster = &cluster.ok_or(KubeconfigError::Missing("cluster of the current context"))?.cluster;
        let anonymous = User::default();
        let user = config.users.iter().find(|user| user.name == context.user);
        let user = user.map_or(&anonymous, |user| &user.user);
        if user.exec.is_some() {
            return Err(KubeconfigError::Plugin);
        }
        let uri: http::Uri = cluster.server.parse().map_err(|_| KubeconfigError::Bad("server"))?;
        if uri.scheme_str() != Some("https") {
            return Err(KubeconfigError::Bad("server"));
        }
        let host = uri.host().ok_or(KubeconfigError::Bad("server"))?;
        let authorities = cluster.certificate_authority_data.as_ref();
        let authorities = authorities.ok_or(KubeconfigError::Missing("certificate-authority-data"))?;
        let identity = match (&user.client_certificate_data, &user.client_key_data) {
            (Some(chain), Some(key)) => {
                Some((decode(chain, "client-certificate-data")?, decode(key, "client-key-data")?))
            }
            _ => None,
        };
        let authorization = match (&user.token, &user.username, &user.password) {
            (Some(token), ..) => Some(format!("Bearer {token}")),
            (None, Some(name), Some(password)) => {
                Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))
            }
            _ => None,
        };
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(443),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            server_name: cluster.tls_server_name.clone(),
            authorities: decode(authorities, "certificate-authority-data")?,
            identity,
            authorization,
        })
    }
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
        assert_eq!(access.authorization.as_deref(), Some("Bearer t"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_being_repeated() {
        for text in [
            "nonsense: [".to_owned(),
            "current-context: other".to_owned(),
            kubeconfig("http://10.0.0.1", "token: hidden"),
            kubeconfig("https://10.0.0.1", "client-certificate-data: '%', client-key-data: hidden"),
            kubeconfig("https://10.0.0.1", "exec: {command: hidden}"),
        ] {
            let error = Access::from_kubeconfig(text.as_bytes()).err().expect("an error");
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }
}
