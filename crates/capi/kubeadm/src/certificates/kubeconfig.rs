//! The admin kubeconfig.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::bootstrap::EncryptionAlgorithmType as Algorithm;
use capstan_object::OwnerReference;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Authority, PrivateKey, Purpose, Seed, expiry};
use crate::Error;
use crate::yaml;
use capstan_capi_core::secret::{Secret, cluster_secret};

/// Validity of client certificates in days.
pub const CLIENT_CERTIFICATE_DAYS: i32 = 365;
/// Key of the kubeconfig in its Secret.
const VALUE: &str = "value";

/// Inputs of the admin kubeconfig.
#[derive(Debug, Clone, Copy)]
pub struct AdminKubeconfig<'a> {
    pub cluster: &'a str,
    /// URL of the API server.
    pub server: &'a str,
    /// Algorithm of the client's key.
    pub algorithm: Algorithm,
}

impl AdminKubeconfig<'_> {
    /// Renders the kubeconfig with a new client certificate signed by the cluster CA.
    pub fn render(&self, authority: &Authority, seed: &Seed, now: Timestamp) -> Result<String, Error> {
        let purpose = format!("{}/{}", Purpose::Kubeconfig.suffix(), now.as_second());
        let key = PrivateKey::from_seed(self.algorithm, &seed.derive(&purpose))?;
        let certificate = authority.client_certificate(
            &key,
            "kubernetes-admin",
            &["system:masters"],
            CLIENT_CERTIFICATE_DAYS,
            now,
        )?;
        let user = format!("{}-admin", self.cluster);
        let context = format!("{user}@{}", self.cluster);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": context,
            "clusters": [{"name": self.cluster, "cluster": {
                "server": self.server,
                "certificate-authority-data": STANDARD.encode(authority.certificate_pem()),
            }}],
            "contexts": [{"name": context, "context": {"cluster": self.cluster, "user": user}}],
            "users": [{"name": user, "user": {
                "client-certificate-data": STANDARD.encode(certificate),
                "client-key-data": STANDARD.encode(key.to_pem()),
            }}],
        });
        Ok(yaml::document(&config))
    }

    pub fn to_secret(&self, namespace: &str, owner: OwnerReference, kubeconfig: &str) -> Secret {
        let name = Purpose::Kubeconfig.secret_name(self.cluster);
        cluster_secret(namespace, &name, self.cluster, owner, [(VALUE, kubeconfig.as_bytes())])
    }
}

/// Whether less than half of the client certificate's lifetime is left.
pub fn is_due_for_renewal(secret: &Secret, now: Timestamp) -> Result<bool, Error> {
    let half = SignedDuration::from_hours(24) * CLIENT_CERTIFICATE_DAYS / 2;
    let config = read(secret)?;
    for user in list(&config, "users") {
        let Some(data) = user.pointer("/user/client-certificate-data").and_then(Value::as_str) else {
            return Err(Error::Kubeconfig("has a user without client certificate"));
        };
        let pem = STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let pem = pem.ok_or(Error::Kubeconfig("has a client certificate that cannot be read"))?;
        if expiry(&pem)?.duration_since(now) < half {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The API server URL in a kubeconfig; a renewal keeps it.
pub fn server_of(secret: &Secret, cluster: &str) -> Result<String, Error> {
    let config = read(secret)?;
    list(&config, "clusters")
        .iter()
        .find(|entry| entry["name"] == cluster)
        .and_then(|entry| entry.pointer("/cluster/server"))
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or(Error::Kubeconfig("does not name the cluster's server"))
}

fn read(secret: &Secret) -> Result<Value, Error> {
    let text = secret.text(VALUE)?;
    serde_saphyr::from_str(&text).map_err(|_| Error::Kubeconfig("is not valid YAML"))
}

fn list<'a>(config: &'a Value, field: &str) -> &'a [Value] {
    config[field].as_array().map_or(&[], Vec::as_slice)
}
