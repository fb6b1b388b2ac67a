//! Discovery of `kubeadm join`: finds the cluster and verifies it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_apiserver::LocalTransport;
use capstan_controller::{Access, ApiError, Authorization, Client, Dial, KindName, Remote};
use capstan_object::Key;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::kubeadm::Kubeadm;
use super::retry::Retry;
use crate::cluster::{GuestCluster, ListenerState, token};
use crate::request::{Discovery, KubeadmError};

/// Discovery timeout.
const DISCOVERY: Duration = Duration::from_secs(5 * 60);

/// A discovered and trusted cluster.
pub(super) struct Found {
    pub(super) cluster: Arc<GuestCluster>,
    /// Authenticates with the bootstrap token.
    pub(super) client: Client,
}

impl Kubeadm {
    /// Discovers the cluster and verifies its identity.
    pub(super) async fn discover(
        &self,
        discovery: &Discovery,
        bootstrap_token: Option<&str>,
    ) -> Result<Found, KubeadmError> {
        let found = match discovery {
            Discovery::Token { endpoint, token, ca_cert_hashes, unsafe_skip_ca_verification } => {
                let pins = if *unsafe_skip_ca_verification { &[][..] } else { ca_cert_hashes };
                self.by_token(endpoint, token, pins, bootstrap_token.unwrap_or(token)).await
            }
            Discovery::File { kubeconfig } => self.by_file(kubeconfig, bootstrap_token).await,
        };
        found.map_err(|why| KubeadmError {
            phase: "preflight",
            why: format!("couldn't validate the identity of the API Server: {why}"),
        })
    }

    async fn by_token(
        &self,
        endpoint: &str,
        token: &str,
        pins: &[String],
        bootstrap_token: &str,
    ) -> Result<Found, String> {
        let (host, port) = host_and_port(endpoint).ok_or_else(|| format!("invalid endpoint {endpoint:?}"))?;
        let (id, secret) = token::parts(token).ok_or_else(|| {
            format!("the bootstrap token {:?} was not of the form {:?}", "<redacted>", FORM)
        })?;
        let retry = Retry::with_timeout(DISCOVERY);
        let (cluster, info) = loop {
            match self.unverified(&host, port, id).await {
                Ok(found) => break found,
                Err(why) => retry.wait_or(why).await?,
            }
        };
        let (text, authorities) = trusted(&info, id, secret, pins)?;
        let access = |authorization: Option<Authorization>| Access {
            host: host.clone(),
            port,
            prefix: String::new(),
            server_name: None,
            authorities: authorities.clone(),
            identity: None,
            authorization,
        };
        if !pins.is_empty() {
            let client = self.client(access(None))?;
            let retry = Retry::with_timeout(DISCOVERY);
            let again = loop {
                match cluster_info(&client, endpoint).await {
                    Ok(info) => break info,
                    Err(why) => retry.wait_or(why).await?,
                }
            };
            if again["data"]["kubeconfig"].as_str() != Some(&text) {
                return Err(
                    "the second kubeconfig from the cluster-info ConfigMap (using validated TLS) was \
                            different from the first"
                        .to_owned(),
                );
            }
        }
        let client = self.client(access(Some(bearer(bootstrap_token))))?;
        Ok(Found { cluster, client })
    }

    async fn by_file(&self, kubeconfig: &Value, bootstrap_token: Option<&str>) -> Result<Found, String> {
        let mut access =
            Access::from_kubeconfig(kubeconfig.to_string().as_bytes()).map_err(|error| error.to_string())?;
        if let Some(token) = bootstrap_token {
            access.identity = None;
            access.authorization = Some(bearer(token));
        }
        let endpoint = format!("{}:{}", access.host, access.port);
        let (host, port) = (access.host.clone(), access.port);
        let client = self.client(access)?;
        let retry = Retry::with_timeout(DISCOVERY);
        loop {
            let found = match self.server_at(&host, port) {
                Ok(cluster) => cluster_info(&client, &endpoint).await.map(|_| cluster),
                Err(why) => Err(why),
            };
            match found {
                Ok(cluster) => return Ok(Found { cluster, client }),
                Err(why) => retry.wait_or(why).await?,
            }
        }
    }

    /// `cluster-info` of an unverified server, as kubeadm reads it: the token's signature verifies it later. It is
    /// signed a little after its creation.
    async fn unverified(
        &self,
        host: &str,
        port: u16,
        id: &str,
    ) -> Result<(Arc<GuestCluster>, Value), String> {
        let cluster = self.server_at(host, port)?;
        let anonymous = Arc::new(LocalTransport::anonymous(cluster.server().clone()));
        let anonymous = Client::new(anonymous, "kubeadm");
        let info = cluster_info(&anonymous, &format!("{host}:{port}")).await?;
        if info["data"][format!("jws-kubeconfig-{id}")].is_null() {
            return Err(format!(
                "could not find a JWS signature in the cluster-info ConfigMap for token ID {id:?}"
            ));
        }
        Ok((cluster, info))
    }

    fn client(&self, access: Access) -> Result<Client, String> {
        let env = self.site().map_err(|error| error.to_string())?.env.clone();
        let remote = Remote::new(access, Arc::new(self.clone()) as Arc<dyn Dial>, &env);
        Ok(Client::new(Arc::new(remote.map_err(|error| error.to_string())?), "kubeadm"))
    }

    /// The cluster whose API server listens at an address.
    pub(super) fn server_at(&self, host: &str, port: u16) -> Result<Arc<GuestCluster>, String> {
        let failed = |why: &dyn std::fmt::Display| {
            format!(
                "failed to request the cluster-info ConfigMap: Get \
                 \"https://{host}:{port}/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s\": \
                 dial tcp {host}:{port}: {why}"
            )
        };
        let site = self.site().map_err(|error| failed(&error))?;
        let address = site.network.lock().resolve(host);
        let address = address.ok_or_else(|| failed(&format!("lookup {host}: no such host")))?;
        let (cluster, vm) = site.route_from(&self.vm, address, port).map_err(|error| failed(&error))?;
        match cluster.listener(&vm) {
            ListenerState::Open => Ok(cluster),
            ListenerState::Broken | ListenerState::Closed => Err(failed(&"connect: connection refused")),
        }
    }
}

fn bearer(token: &str) -> Authorization {
    Authorization::Fixed(format!("Bearer {token}"))
}

/// The form of a bootstrap token.
const FORM: &str = r"\A([a-z0-9]{6})\.([a-z0-9]{16})\z";

/// Verifies `cluster-info` with the token and the trusted CA hashes; returns the kubeconfig and its CA certificates.
fn trusted(info: &Value, id: &str, secret: &str, pins: &[String]) -> Result<(String, Vec<u8>), String> {
    let text = info["data"]["kubeconfig"].as_str().filter(|text| !text.is_empty()).ok_or(
        "there is no kubeconfig key in the cluster-info ConfigMap. This API Server isn't set up for token \
         bootstrapping, can't connect",
    )?;
    let signature = info["data"][format!("jws-kubeconfig-{id}")].as_str().unwrap_or_default();
    if signature.is_empty() {
        return Err(format!(
            "token id {id:?} is invalid for this cluster or it has expired. Use \"kubeadm token create\" on the \
             control-plane node to create a new valid token"
        ));
    }
    if !token::verifies(id, secret, text, signature) {
        return Err(
            "failed to verify JWS signature of received cluster info object, can't trust this API Server"
                .to_owned(),
        );
    }
    let malformed = || "malformed kubeconfig in the cluster-info ConfigMap".to_owned();
    let kubeconfig: Value = serde_saphyr::from_str(text).map_err(|_| malformed())?;
    let authority = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
    let authority = authority.and_then(|data| STANDARD.decode(data).ok()).ok_or_else(malformed)?;
    if !pins.is_empty() {
        let hashes = public_key_hashes(&authority)
            .ok_or("failed to parse cluster CA from the cluster-info ConfigMap")?;
        for pin in pins {
            if !pin.to_ascii_lowercase().starts_with("sha256:") {
                return Err("invalid discovery token CA certificate hash: invalid hash, expected \
                            \"format:hex-value\". Known format(s) are: sha256"
                    .to_owned());
            }
        }
        if !hashes.iter().any(|hash| pins.iter().any(|pin| pin.eq_ignore_ascii_case(hash))) {
            return Err(format!(
                "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys {:?} are pinned",
                hashes.join(":")
            ));
        }
    }
    Ok((text.to_owned(), authority))
}

/// `sha256:…` of the public keys of certificates.
fn public_key_hashes(pem: &[u8]) -> Option<Vec<String>> {
    CertificateDer::pem_slice_iter(pem)
        .map(|certificate| {
            let certificate = certificate.ok()?;
            let (_, parsed) = X509Certificate::from_der(&certificate).ok()?;
            let hash = Sha256::digest(parsed.public_key().raw);
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            Some(format!("sha256:{hash}"))
        })
        .collect()
}

async fn cluster_info(client: &Client, endpoint: &str) -> Result<Value, String> {
    let kind = KindName::namespaced("", "v1", "ConfigMap", "configmaps");
    let failed = |why: &dyn std::fmt::Display| format!("failed to request the cluster-info ConfigMap: {why}");
    match client.get_raw(&kind, &Key::new("kube-public", "cluster-info")).await {
        Ok(Some(reply)) => reply.parse().map_err(|error| failed(&error)),
        Ok(None) => Err(failed(&"configmaps \"cluster-info\" not found")),
        Err(error) => Err(failed(&described(&error, endpoint))),
    }
}

/// An error with the cause from the network.
pub(super) fn described(error: &ApiError, endpoint: &str) -> String {
    match error {
        ApiError::Transport(transport) => format!("Get \"https://{endpoint}/\": {transport}"),
        other => other.to_string(),
    }
}

/// Host and port of `host:port` or `https://host:port`.
pub(super) fn host_and_port(endpoint: &str) -> Option<(String, u16)> {
    let rest = endpoint.strip_prefix("https://").unwrap_or(endpoint);
    let (host, port) = rest.trim_end_matches('/').rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
}
