//! Bootstrap tokens: Secrets in `kube-system` with which new nodes request their first certificate.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::legacy::same;
use crate::auth::{ObjectSource, User, bucket, key};

const GROUP: &str = "system:bootstrappers";

/// The user of a bootstrap token; `None` if the text is not such a token or no stored Secret matches.
pub(in crate::auth) fn check_bootstrap_token(
    source: &dyn ObjectSource,
    now: Timestamp,
    token: &str,
) -> Option<User> {
    let (id, token_secret) = token.split_once('.')?;
    let well_formed = |text: &str, length: usize| text.len() == length && text.chars().all(in_alphabet);
    if !well_formed(id, 6) || !well_formed(token_secret, 16) {
        return None;
    }
    let secret = source.get(bucket::SECRETS, &key("kube-system", &format!("bootstrap-token-{id}")))?;
    if !secret["metadata"]["deletionTimestamp"].is_null() || secret["type"] != "bootstrap.kubernetes.io/token"
    {
        return None;
    }
    let data = |name: &str| {
        let held = secret["data"][name].as_str().and_then(|held| STANDARD.decode(held).ok());
        held.and_then(|held| String::from_utf8(held).ok()).unwrap_or_default()
    };
    let expired = match data("expiration").as_str() {
        "" => false,
        // An invalid expiration counts as expired.
        text => !text.parse::<Timestamp>().is_ok_and(|ends| ends > now),
    };
    if !same(data("token-secret").as_bytes(), token_secret.as_bytes())
        || data("token-id") != id
        || expired
        || data("usage-bootstrap-authentication") != "true"
    {
        return None;
    }
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    match data("auth-extra-groups").as_str() {
        "" => {}
        extra => {
            for group in extra.split(',') {
                groups.insert(valid_group(group)?.to_owned());
            }
        }
    }
    Some(User::new(format!("system:bootstrap:{id}"), groups))
}

fn in_alphabet(c: char) -> bool {
    c.is_ascii_digit() || c.is_ascii_lowercase()
}

/// `system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]`
fn valid_group(group: &str) -> Option<&str> {
    let name = group.strip_prefix(GROUP)?.strip_prefix(':')?;
    let legal = |c: char| in_alphabet(c) || c == ':' || c == '-';
    let valid = name.len() <= 256 && name.chars().all(legal) && name.ends_with(in_alphabet);
    valid.then_some(group)
}
