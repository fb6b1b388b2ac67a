//! Certificates of the webhooks: a CA and a serving certificate in a Secret that all replicas share.
//!
//! Both are renewed when a third of their lifetime is left. A new CA is put before the old one in `ca.crt`, so that API
//! servers trust both until the old one expires.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_controller::{Client, Env, KindName};
use capstan_object::Key;
use capstan_pki::{Authority, Credential, Leaf, PkiError, PrivateKey};
use serde_json::{Value, json};

pub struct Certificates {
    /// CA bundle in PEM, the signing one first.
    pub authorities: String,
    pub serving: Credential,
}

/// Content of the Secret.
struct Stored {
    authorities: String,
    authority: Authority,
    serving: Credential,
}

/// Reads the certificates; creates or renews and stores what is missing or due.
pub async fn current(client: &Client, secret: &Key, names: &[String], env: &Env) -> Result<Certificates> {
    let kind = KindName::namespaced("", "v1", "Secret", "secrets");
    // Replicas may start together: the second one uses what the first one created.
    for _ in 0..5 {
        let reply = client.get_raw(&kind, secret).await.context("cannot read it")?;
        let found: Option<Value> = reply.map(|reply| reply.parse()).transpose()?;
        let kept = found.as_ref().and_then(|found| read(found).ok());
        let (kept, changed) = renewed(kept, names, env)?;
        if !changed {
            return Ok(Certificates { authorities: kept.authorities, serving: kept.serving });
        }
        let body = body(secret, &kept, found.as_ref());
        let written = match found {
            Some(_) => client.replace(&kind, secret, None, &body).await,
            None => client.create(&kind, &secret.namespace, &body).await,
        };
        match written {
            Ok(_) => return Ok(Certificates { authorities: kept.authorities, serving: kept.serving }),
            Err(error) if error.is_conflict() || error.is_already_exists() => {}
            Err(error) => return Err(error).context("cannot write it"),
        }
    }
    bail!("too many conflicts")
}

/// Renews what is missing or due; returns whether anything changed.
fn renewed(kept: Option<Stored>, names: &[String], env: &Env) -> Result<(Stored, bool), PkiError> {
    let leaf = Leaf::Server { names: names.to_vec() };
    let due = |credential: &Credential| credential.renew_at().is_ok_and(|at| env.now() >= at);
    let (authority, older) = match kept {
        Some(kept) if !due(kept.authority.credential()) => {
            let serving = &kept.serving;
            if kept.authority.issued(&serving.certificate, &leaf) && !due(serving) {
                return Ok((kept, false));
            }
            let serving = kept.authority.issue(env, &leaf)?;
            return Ok((Stored { serving, ..kept }, true));
        }
        Some(kept) => {
            (Authority::create(env, PrivateKey::generate()?)?, kept.authority.credential().certificate_pem())
        }
        None => (Authority::create(env, PrivateKey::generate()?)?, String::new()),
    };
    let serving = authority.issue(env, &leaf)?;
    let authorities = format!("{}{older}", authority.credential().certificate_pem());
    Ok((Stored { authorities, authority, serving }, true))
}

fn read(secret: &Value) -> Result<Stored> {
    let text = |field: &str| -> Result<String> {
        let data = secret["data"][field].as_str().context("a field is missing")?;
        Ok(String::from_utf8(STANDARD.decode(data)?)?)
    };
    let authorities = text("ca.crt")?;
    let authority = Authority::new(Credential::from_pem(&authorities, &text("ca.key")?)?);
    let serving = Credential::from_pem(&text("tls.crt")?, &text("tls.key")?)?;
    Ok(Stored { authorities, authority, serving })
}

fn body(key: &Key, kept: &Stored, found: Option<&Value>) -> Value {
    let encode = |text: String| STANDARD.encode(text);
    let mut metadata = json!({"name": key.name, "namespace": key.namespace});
    if let Some(found) = found {
        metadata["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls",
        "data": {
            "ca.crt": encode(kept.authorities.clone()),
            "ca.key": encode(kept.authority.credential().key.to_pem()),
            "tls.crt": encode(kept.serving.certificate_pem()),
            "tls.key": encode(kept.serving.key.to_pem()),
        },
    })
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    fn at(days: i64) -> Env {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * (20_000 + days));
        Env::simulated(move || now, 1)
    }

    #[test]
    fn certificates_are_renewed_when_due_or_when_names_change() {
        let names = ["a.svc".to_owned()];
        let (first, made) = renewed(None, &names, &at(0)).unwrap();
        assert!(made);
        let body = body(&Key::new("n", "s"), &first, None);
        let again = || read(&body).ok();
        assert!(!renewed(again(), &names, &at(200)).unwrap().1);
        let (renamed, made) = renewed(again(), &["b.svc".to_owned()], &at(0)).unwrap();
        assert!(made && renamed.authorities == first.authorities);
        let (later, made) = renewed(again(), &names, &at(300)).unwrap();
        assert!(made && later.authorities == first.authorities);
        assert_ne!(later.serving.certificate, first.serving.certificate);
    }

    #[test]
    fn a_new_ca_is_trusted_together_with_the_old_one() {
        let names = ["a.svc".to_owned()];
        let (first, _) = renewed(None, &names, &at(0)).unwrap();
        let old = first.authorities.clone();
        let (second, made) = renewed(Some(first), &names, &at(3000)).unwrap();
        assert!(made && second.authorities.ends_with(&old) && second.authorities.len() > old.len());
        let kept = read(&body(&Key::new("n", "s"), &second, None)).unwrap();
        assert!(!renewed(Some(kept), &names, &at(3000)).unwrap().1);
    }
}
