//! SSH keys.

use serde::Serialize;

use super::{Owner, Scope};
use crate::command::{calls, lists};
use crate::id::SshKeyPairId;
use crate::model::{Done, SshKeyPair};

/// SSH keys, newest first.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListSshKeyPairs {
    /// The key with this id.
    pub id: Option<SshKeyPairId>,
    /// The key with this name.
    pub name: Option<String>,
    /// The key with this fingerprint.
    pub fingerprint: Option<String>,
    /// Owner of the SSH key pairs.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Brings a public key. Names and keys are unique.
#[derive(Debug, Clone, Serialize)]
pub struct RegisterSshKeyPair {
    /// Name of the SSH key pair.
    pub name: String,
    /// The public key.
    pub publickey: String,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Has the server make a key; the private part is in the answer and nowhere else.
#[derive(Debug, Clone, Serialize)]
pub struct CreateSshKeyPair {
    /// Name of the SSH key pair.
    pub name: String,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Deletes a key. Machines that have it keep it.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteSshKeyPair {
    /// Name of the SSH key pair.
    pub name: String,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

lists! { ListSshKeyPairs: "listSSHKeyPairs" => "sshkeypair" SshKeyPair; }
calls! {
    RegisterSshKeyPair: "registerSSHKeyPair" => "keypair" SshKeyPair;
    CreateSshKeyPair: "createSSHKeyPair" => "keypair" SshKeyPair;
    DeleteSshKeyPair: "deleteSSHKeyPair" => Done;
}
