//! The kubeconfig of a client.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Credential, Leaf, MASTERS, Pki, PkiError};

impl Pki {
    /// Kubeconfig of `admin`, who is in `system:masters`, for the server at a URL. JSON is YAML: kubectl reads
    /// it as it is.
    pub fn admin_kubeconfig(&self, cluster: &str, server: &str) -> Result<Value, PkiError> {
        let leaf = Leaf::Client { name: "admin".into(), groups: vec![MASTERS.into()] };
        self.kubeconfig(cluster, server, "admin", &self.credential("admin", &leaf)?)
    }

    /// Kubeconfig of a user with a client certificate.
    pub fn kubeconfig(
        &self,
        cluster: &str,
        server: &str,
        user: &str,
        credential: &Credential,
    ) -> Result<Value, PkiError> {
        let context = format!("{user}@{cluster}");
        Ok(json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": context,
            "clusters": [{"name": cluster, "cluster": {
                "server": server,
                "certificate-authority-data": STANDARD.encode(self.ca_pem()?),
            }}],
            "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
            "users": [{"name": user, "user": {
                "client-certificate-data": STANDARD.encode(credential.certificate_pem()),
                "client-key-data": STANDARD.encode(credential.key.to_pem()),
            }}],
        }))
    }
}
