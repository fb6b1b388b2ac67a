//! Removal of secrets from objects and text.

use std::collections::BTreeSet;

use serde_json::Value;

/// Replaces redacted values.
pub const HIDDEN: &str = "(hidden)";

/// Fields that are, or may contain, secrets, at any depth.
const SECRET_FIELDS: [&str; 15] = [
    "apiKey",
    "bootstrapToken",
    "certificateKey",
    "client-key-data",
    "content",
    "data",
    "password",
    "passwd",
    "postKubeadmCommands",
    "preKubeadmCommands",
    "secretKey",
    "stringData",
    "token",
    "userData",
    "value",
];

/// Annotations that repeat whole objects.
const COPIES: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "cluster.x-k8s.io/conversion-data"];

/// Redacts secret fields of an object and removes annotations that repeat them.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("managedFields");
            for copy in COPIES {
                fields.remove(copy);
            }
            for (name, field) in fields {
                if SECRET_FIELDS.contains(&name.as_str()) {
                    hide(field);
                } else {
                    redact(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

/// Replaces all values, keeps field names.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Null | Value::Bool(_) => {}
        other => *other = HIDDEN.into(),
    }
}

/// Values of Secrets, to be redacted wherever else they occur: in messages, annotations, names.
#[derive(Debug, Default)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Shorter values are ordinary words, such as `default` or `true`.
    const SHORTEST: usize = 8;
    /// Fields of Secrets that are not secret.
    const PUBLIC: [&str; 9] = [
        "api-url",
        "auth-extra-groups",
        "ca.crt",
        "description",
        "expiration",
        "format",
        "namespace",
        "token-id",
        "verify-ssl",
    ];

    /// Adds a value of a Secret, line by line.
    pub fn add(&mut self, field: &str, value: &[u8]) {
        if Self::PUBLIC.contains(&field) {
            return;
        }
        let Ok(text) = std::str::from_utf8(value) else { return };
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
        let words = lines.filter(|line| line.len() >= Self::SHORTEST && !line.ends_with(':'));
        self.0.extend(words.map(str::to_owned));
    }

    pub fn redact_text(&self, text: String) -> String {
        self.0.iter().rev().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), HIDDEN) } else { text }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_redacted_and_names_are_kept() {
        let mut object = json!({
            "kind": "KubeadmConfig",
            "metadata": {
                "name": "a", "managedFields": [{"manager": "x"}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "sesame", "kept": "yes"},
            },
            "spec": {
                "files": [{"path": "/etc/x", "content": "sesame"}],
                "users": [{"name": "u", "passwd": "sesame", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}],
                "joinConfiguration": {"discovery": {"bootstrapToken": {"token": "sesame", "apiServerEndpoint": "e"}}},
                "preKubeadmCommands": ["echo sesame"],
            },
        });
        redact(&mut object);
        let text = object.to_string();
        assert!(!text.contains("sesame") && !text.contains("managedFields"), "{text}");
        for kept in ["/etc/x", "ssh-ed25519 AAAA", "\"kept\":\"yes\"", "\"token\"", "\"name\":\"u\""] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }

    #[test]
    fn values_of_secrets_are_redacted_in_other_text() {
        let mut secrets = Secrets::default();
        secrets.add("secret-key", b"s3cr3t-s3cr3t");
        secrets.add("tls.key", b"-----BEGIN KEY-----\nAAAABBBBCCCC\n-----END KEY-----\n");
        secrets.add("api-url", b"https://cloud.example");
        secrets.add("usage", b"true");
        let text =
            "signed with s3cr3t-s3cr3t at https://cloud.example: true AAAABBBBCCCC -----BEGIN KEY-----";
        assert_eq!(
            secrets.redact_text(text.to_owned()),
            "signed with (hidden) at https://cloud.example: true (hidden) -----BEGIN KEY-----"
        );
    }
}
