//! Who is who, and how much they may have.

use serde::{Deserialize, Serialize};

use super::{Amount, Tag, words};
use crate::id::{AccountId, DomainId, ProjectId, SshKeyPairId, UserId};
use crate::loose;
use capstan_cloud_http::Secret;

/// What is left of the limits of an account, domain or project. Absent where the caller may not know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Processors.
    pub cpuavailable: Option<Amount>,
    /// Megabytes of memory.
    pub memoryavailable: Option<Amount>,
    /// Machines.
    pub vmavailable: Option<Amount>,
    /// Public addresses.
    pub ipavailable: Option<Amount>,
    /// Networks.
    pub networkavailable: Option<Amount>,
    /// Volumes.
    pub volumeavailable: Option<Amount>,
    /// Gigabytes of primary storage.
    pub primarystorageavailable: Option<Amount>,
    /// Most processors.
    pub cpulimit: Option<Amount>,
    /// Most megabytes of memory.
    pub memorylimit: Option<Amount>,
    /// Most machines.
    pub vmlimit: Option<Amount>,
}

/// A domain of the tree that accounts hang in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Id of the domain.
    pub id: DomainId,
    /// Name of the domain.
    pub name: String,
    /// From the root: `ROOT/a/b`.
    pub path: Option<String>,
    /// 0 is the root.
    #[serde(default, deserialize_with = "loose::number")]
    pub level: Option<u32>,
    /// The domain above.
    pub parentdomainid: Option<DomainId>,
    /// `Active` or `Inactive`.
    pub state: Option<String>,
    /// What is left of its limits.
    #[serde(flatten)]
    pub quota: Quota,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Id of the account.
    pub id: AccountId,
    /// Its name, unique in its domain.
    pub name: String,
    /// 0 user, 1 root administrator, 2 domain administrator.
    #[serde(default, deserialize_with = "loose::number")]
    pub accounttype: Option<u32>,
    /// Domain of the account.
    pub domainid: Option<DomainId>,
    /// The domain's name.
    pub domain: Option<String>,
    /// The domain's path.
    pub domainpath: Option<String>,
    /// `enabled`, `disabled` or `locked`.
    pub state: Option<String>,
    /// What it may do.
    pub rolename: Option<String>,
    /// What is left of its limits.
    #[serde(flatten)]
    pub quota: Quota,
}

words! {
    /// Whether a user can sign in.
    UserState {
        /// Yes.
        Enabled = "enabled",
        /// No.
        Disabled = "disabled",
        /// No, after too many wrong passwords.
        Locked = "locked",
    }
}

/// A user of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Id of the user.
    pub id: UserId,
    /// Name of the user.
    pub username: String,
    /// Account of the user.
    pub account: Option<String>,
    /// The account's id.
    pub accountid: Option<AccountId>,
    /// The account's domain.
    pub domainid: Option<DomainId>,
    /// The domain's name.
    pub domain: Option<String>,
    /// Whether it can sign in.
    pub state: Option<UserState>,
    /// Its public key, if it has keys.
    pub apikey: Option<Secret>,
    /// What it may do.
    pub rolename: Option<String>,
    /// `User`, `DomainAdmin` or `Admin`.
    pub roletype: Option<String>,
}

/// The keys of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserKeys {
    /// Names the user.
    pub apikey: Option<Secret>,
    /// Signs in its name.
    pub secretkey: Option<Secret>,
}

words! {
    /// Whether a project can be used.
    ProjectState {
        /// Yes.
        Active = "Active",
        /// Not now.
        Suspended = "Suspended",
        /// Not any more.
        Disabled = "Disabled",
    }
}

/// A project: things that several accounts share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Id of the project.
    pub id: ProjectId,
    /// Its name, unique in its domain.
    pub name: String,
    /// Description of the project.
    pub displaytext: Option<String>,
    /// Domain of the project.
    pub domainid: Option<DomainId>,
    /// Whether it can be used.
    pub state: Option<ProjectState>,
    /// What is left of its limits.
    #[serde(flatten)]
    pub quota: Quota,
    /// Tags of the project.
    #[serde(default)]
    pub tags: Vec<Tag>,
}

/// A limit as it was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// The number of the kind of resource.
    #[serde(default, deserialize_with = "loose::number")]
    pub resourcetype: Option<u32>,
    /// Its name: `user_vm`, `cpu`, ….
    pub resourcetypename: Option<String>,
    /// How many there may be.
    pub max: Option<Amount>,
    /// Whose limit it is.
    pub account: Option<String>,
    /// The domain.
    pub domainid: Option<DomainId>,
    /// The project.
    pub projectid: Option<ProjectId>,
}

/// An SSH key that machines can be given. Machines name it by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshKeyPair {
    /// Id of the SSH key pair.
    pub id: Option<SshKeyPairId>,
    /// Name of the SSH key pair.
    pub name: String,
    /// Of the public key.
    pub fingerprint: Option<String>,
    /// The private key, in the answer that makes it only.
    pub privatekey: Option<Secret>,
    /// Account that owns the SSH key pair.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
}
