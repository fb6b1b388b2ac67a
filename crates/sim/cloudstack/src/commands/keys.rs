//! Public keys for machines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::machines::LENIENT;
use super::sync;
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::success;
use crate::model::compute::SshKey;
use crate::model::identity::Account;
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listSSHKeyPairs",
        "name fingerprint account domainid:domain projectid:project listall:flag id:sshkey",
        list,
    ),
    sync("registerSSHKeyPair", "name! publickey:long! account domainid:domain projectid:project", register),
    sync("createSSHKeyPair", "name! account domainid:domain projectid:project", create),
    sync("deleteSSHKeyPair", "name! account domainid:domain projectid:project", delete),
];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    let shown = cloud
        .ssh_keys
        .iter()
        .rev()
        .filter(|key| {
            cloud.shows(call, scope, key.account)
                && call.selects(&cloud.ssh_keys, "id", key.key)
                && call.names("name", &key.name)
                && call.names("fingerprint", &key.fingerprint)
                && call.keyword_in(&[&key.name, &key.fingerprint])
        })
        .map(|key| cloud.show_ssh_key(key.key).done())
        .collect();
    Ok(Answer::List("sshkeypair", shown))
}

fn register(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = cloud.owner(call)?;
    let text = call.text("publickey").unwrap_or_default().trim();
    let mut words = text.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let good = kind.starts_with("ssh-") || kind.starts_with("ecdsa-");
    let bytes = words.next().and_then(|body| LENIENT.decode(body).ok()).filter(|_| good);
    let Some(bytes) = bytes else { return Err(ApiError::invalid("Public key is invalid")) };
    let public_key: Vec<&str> = text.split_whitespace().take(2).collect();
    let fingerprint = fingerprint(&bytes);
    add(cloud, call, owner, public_key.join(" "), fingerprint, None)
}

/// A key whose private half is made up: no simulated machine is ever entered with it.
fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = cloud.owner(call)?;
    let seed = Sha256::digest(cloud.fresh_uuid());
    let body = STANDARD.encode([b"\0\0\0\x07ssh-rsa".as_slice(), seed.as_slice()].concat());
    let private = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        STANDARD.encode(seed)
    );
    add(cloud, call, owner, format!("ssh-rsa {body}"), fingerprint(&seed), Some(private))
}

fn fingerprint(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

fn add(
    cloud: &mut Cloud,
    call: &Call,
    owner: Key<Account>,
    public_key: String,
    fingerprint: String,
    private: Option<String>,
) -> Result<Answer> {
    let name = call.text("name").unwrap_or_default().to_owned();
    let taken =
        |same: &dyn Fn(&SshKey) -> bool| cloud.ssh_keys.iter().any(|key| key.account == owner && same(key));
    if taken(&|key| key.name == name) {
        return Err(ApiError::invalid(format!("A key pair with name '{name}' already exists.")));
    }
    if taken(&|key| key.public_key == public_key) {
        return Err(ApiError::invalid(format!(
            "A key pair with key '{public_key}' already exists for this account."
        )));
    }
    let uuid = cloud.fresh_uuid();
    let key =
        cloud.ssh_keys.insert(uuid, cloud.now, SshKey { name, account: owner, public_key, fingerprint });
    let mut fields = cloud.show_ssh_key(key);
    fields.maybe("privatekey", private);
    Ok(Answer::Object("keypair", fields.done()))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = cloud.owner(call)?;
    let name = call.text("name").unwrap_or_default();
    let Some(key) =
        cloud.ssh_keys.iter().find(|key| key.account == owner && key.name == name).map(|key| key.key)
    else {
        return Err(ApiError::invalid(format!(
            "A key pair with name '{name}' does not exist for account {} in specified domain id",
            cloud.accounts[owner].name
        ))
        .about(&cloud.domains[cloud.accounts[owner].domain].uuid, "domainId"));
    };
    cloud.ssh_keys.remove(key);
    Ok(Answer::Body(success()))
}
