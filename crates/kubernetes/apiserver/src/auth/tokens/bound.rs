//! Tokens of the TokenRequest API: bound to a time, an audience, a ServiceAccount and optionally an object.

use capstan_pki::PkiError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{LEEWAY, ServiceAccountTokens, deleted_before, uid};
use crate::auth::service_account::{self, CREDENTIAL_ID, NODE_NAME, NODE_UID, POD_NAME, POD_UID};
use crate::auth::{User, bucket, jwt, key};

/// What a token is bound to in addition to its ServiceAccount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bindings {
    pub(super) pod: Option<Reference>,
    pub(super) secret: Option<Reference>,
    pub(super) node: Option<Reference>,
}

/// Name and uid of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) name: String,
    pub(super) uid: String,
}

impl Reference {
    pub(super) fn to(object: &Value) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Self { name: name.to_owned(), uid: uid(object).to_owned() }
    }

    fn claim(&self) -> Value {
        let mut claim = Map::new();
        for (field, value) in [("name", &self.name), ("uid", &self.uid)] {
            if !value.is_empty() {
                claim.insert(field.into(), value.as_str().into());
            }
        }
        Value::Object(claim)
    }

    fn from_claim(claim: &Value) -> Option<Self> {
        let text = |field: &str| claim[field].as_str().unwrap_or_default().to_owned();
        claim.is_object().then(|| Self { name: text("name"), uid: text("uid") })
    }
}

impl ServiceAccountTokens {
    /// Signs a token. `warn_after` is the requested lifetime if the actual one is longer.
    pub(super) fn issue(
        &self,
        account: &Value,
        bindings: &Bindings,
        audiences: &[String],
        lifetime: i64,
        warn_after: Option<i64>,
    ) -> Result<String, PkiError> {
        let now = self.env.now().as_second();
        let account_name = account["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = account["metadata"]["namespace"].as_str().unwrap_or_default();
        let mut private = json!({
            "namespace": namespace, "serviceaccount": Reference::to(account).claim(),
        });
        for (field, reference) in
            [("pod", &bindings.pod), ("secret", &bindings.secret), ("node", &bindings.node)]
        {
            if let Some(reference) = reference {
                private[field] = reference.claim();
            }
        }
        if let Some(seconds) = warn_after {
            private["warnafter"] = (now + seconds).into();
        }
        let claims = json!({
            "iss": self.issuer,
            "sub": service_account::user_name(namespace, account_name),
            "aud": audiences,
            "iat": now, "nbf": now, "exp": now + lifetime,
            "jti": self.env.uuid(),
            "kubernetes.io": private,
        });
        jwt::sign(&*self.pki.token_key()?, &claims)
    }

    /// Checks the time and every object that a token is bound to.
    pub(super) fn check_bound(&self, claims: &Value) -> Result<User, String> {
        let now = self.env.now();
        check_times(claims, now)?;
        let gone_since = now - LEEWAY;
        let private = &claims["kubernetes.io"];
        let namespace = private["namespace"].as_str().unwrap_or_default();
        let account = Reference::from_claim(&private["serviceaccount"]).unwrap_or_default();

        let stored = self.source.get(bucket::SERVICE_ACCOUNTS, &key(namespace, &account.name));
        let stored = stored.ok_or_else(|| format!("serviceaccounts {:?} not found", account.name))?;
        if uid(&stored) != account.uid {
            return Err(format!(
                "service account UID ({}) does not match claim ({})",
                uid(&stored),
                account.uid
            ));
        }
        if deleted_before(&stored, gone_since) {
            return Err(format!("service account {namespace}/{} has been deleted", account.name));
        }

        let check = |kind: &str, bucket: &str, key: String, reference: &Reference| {
            let invalidated = || "service account token has been invalidated".to_owned();
            let object = self.source.get(bucket, &key).ok_or_else(invalidated)?;
            if uid(&object) != reference.uid {
                return Err(format!(
                    "{kind} UID ({}) does not match service account {kind} ref claim ({})",
                    uid(&object),
                    reference.uid
                ));
            }
            if deleted_before(&object, gone_since) { Err(invalidated()) } else { Ok(()) }
        };
        let secret = Reference::from_claim(&private["secret"]);
        let pod = Reference::from_claim(&private["pod"]);
        let node = Reference::from_claim(&private["node"]);
        if let Some(secret) = &secret {
            check("secret", bucket::SECRETS, key(namespace, &secret.name), secret)?;
        }
        if let Some(pod) = &pod {
            check("pod", bucket::PODS, key(namespace, &pod.name), pod)?;
        }
        // The node of a pod-bound token is informational: it may be gone before the pod is.
        if let (Some(node), None) = (&node, &pod) {
            check("node", bucket::NODES, node.name.clone(), node)?;
        }

        let mut user = service_account::user(namespace, &account.name, &account.uid);
        let mut add_extra = |key: &str, value: String| user.extra.insert(key.to_owned(), vec![value]);
        if let Some(pod) = pod.filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty()) {
            add_extra(POD_NAME, pod.name);
            add_extra(POD_UID, pod.uid);
        }
        if let Some(id) = claims["jti"].as_str().filter(|id| !id.is_empty()) {
            add_extra(CREDENTIAL_ID, format!("JTI={id}"));
        }
        if let Some(node) = node.filter(|node| !node.name.is_empty()) {
            add_extra(NODE_NAME, node.name);
            if !node.uid.is_empty() {
                add_extra(NODE_UID, node.uid);
            }
        }
        Ok(user)
    }
}

fn check_times(claims: &Value, now: Timestamp) -> Result<(), String> {
    // Fractions of a second are valid in a NumericDate and ignored here.
    let claimed = |name: &str| claims[name].as_f64().map(|second| second as i64);
    let (early, late) = ((now + LEEWAY).as_second(), (now - LEEWAY).as_second());
    if claimed("nbf").is_some_and(|from| early < from) {
        return Err("service account token is not valid yet".into());
    }
    if claimed("exp").is_some_and(|to| late > to) {
        return Err("service account token has expired".into());
    }
    if claimed("iat").is_some_and(|at| early < at) {
        return Err("service account token is issued in the future".into());
    }
    Ok(())
}
