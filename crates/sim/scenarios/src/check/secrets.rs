//! Secrets stay in Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_controller::EffectOf;
use capstan_guest::Site;
use capstan_harness::{Checker, Objects, Step};

/// S13: no private key is written to anything but a Secret, no bootstrap token to a status, a condition or an event,
/// and neither is printed on a console.
pub struct KeepsSecrets {
    site: Site,
}

impl KeepsSecrets {
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone() }
    }
}

/// Contains a private key, as PEM or as base64 of PEM.
fn has_key(text: &str) -> bool {
    let encoded = |header: &str| {
        // Without the last group, which depends on what follows.
        let mut code = STANDARD.encode(header);
        code.truncate(header.len() / 3 * 4);
        text.contains(&code)
    };
    text.contains("PRIVATE KEY-----")
        || ["-----BEGIN EC PRIVATE KEY", "-----BEGIN PRIVATE KEY", "-----BEGIN RSA PRIVATE KEY"]
            .into_iter()
            .any(encoded)
}

/// Contains a bootstrap token: six letters or digits, a dot, sixteen more.
fn has_token(text: &str) -> bool {
    let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let words = text.split(|c: char| !(part(c) || c == '.'));
    words.into_iter().any(|word| {
        let mut pieces = word.split('.');
        matches!((pieces.next(), pieces.next(), pieces.next()), (Some(id), Some(secret), None) if id.len() == 6 && secret.len() == 16)
    })
}

impl Checker for KeepsSecrets {
    fn name(&self) -> &'static str {
        "S13"
    }

    fn before(&mut self, step: &Step<'_>, _: &Objects) -> Result<(), String> {
        let (kind, body, subresource) = match step.effect {
            EffectOf::Create { kind, body, .. } => (*kind, *body, None),
            EffectOf::Patch { kind, patch, subresource, .. } => (*kind, patch.body(), *subresource),
            EffectOf::Replace { kind, body, subresource, .. } => (*kind, *body, *subresource),
            EffectOf::Call { summary, .. } if has_key(summary) || has_token(summary) => {
                return Err(format!("the summary of a call contains a secret: {} letters", summary.len()));
            }
            _ => return Ok(()),
        };
        if kind.kind == "Secret" {
            return Ok(());
        }
        let text = body.to_string();
        if has_key(&text) {
            return Err(format!("{} writes a private key to {kind}", step.actor));
        }
        let is_public = subresource == Some("status") || kind.kind == "Event" || body.get("status").is_some();
        if is_public && has_token(&text) {
            return Err(format!("{} writes a bootstrap token to {kind}", step.actor));
        }
        Ok(())
    }

    fn idle(&mut self, _: &Objects) -> Result<(), String> {
        for vm in self.site.vms() {
            let console = self.site.console(&vm.id).unwrap_or_default();
            if has_key(&console) || has_token(&console) {
                return Err(format!("the console of {} shows a secret", vm.id));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_tokens_are_found_in_every_encoding() {
        let pem = "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\n";
        assert!(has_key(pem));
        assert!(has_key(&STANDARD.encode(pem)));
        assert!(!has_key(&STANDARD.encode("-----BEGIN CERTIFICATE-----\nabc")));
        assert!(has_token("token abcdef.0123456789abcdef is bad"));
        for harmless in ["v1.36.0", "infrastructure.cluster.x-k8s.io", "172.16.0.2", "2026-01-01T00:00:00Z"] {
            assert!(!has_token(harmless), "{harmless}");
        }
    }
}
