//! Who there is: domains, accounts, users, projects.

use std::collections::BTreeSet;

use super::table::Key;

/// What a role may do; the stock roles carry these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleType {
    User,
    DomainAdmin,
    RootAdmin,
}

impl RoleType {
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::DomainAdmin => "DomainAdmin",
            Self::RootAdmin => "Admin",
        }
    }

    pub(crate) fn role_name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::DomainAdmin => "Domain Admin",
            Self::RootAdmin => "Root Admin",
        }
    }

    /// `accounttype` on the wire.
    pub(crate) fn account_type(self) -> i64 {
        match self {
            Self::User => 0,
            Self::RootAdmin => 1,
            Self::DomainAdmin => 2,
        }
    }

    pub(crate) fn of_account_type(number: i64) -> Option<Self> {
        [Self::User, Self::DomainAdmin, Self::RootAdmin]
            .into_iter()
            .find(|role| role.account_type() == number)
    }
}

/// A domain. The first one is ROOT.
pub(crate) struct Domain {
    pub(crate) name: String,
    pub(crate) parent: Option<Key<Domain>>,
    pub(crate) network_domain: Option<String>,
    pub(crate) limits: Limits,
}

/// An account, which owns things; a project has one of its own.
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) domain: Key<Domain>,
    pub(crate) role: RoleType,
    pub(crate) enabled: bool,
    pub(crate) limits: Limits,
    pub(crate) project: Option<Key<Project>>,
    pub(crate) default: bool,
    /// Commands of a custom role; without one the account has those of its stock role.
    pub(crate) permissions: Option<BTreeSet<String>>,
    /// Settings of the account's own, such as `allow.user.expunge.recover.vm`.
    pub(crate) may_expunge: Option<bool>,
    /// `allow.user.view.destroyed.vm` for this account.
    pub(crate) sees_destroyed: Option<bool>,
}

/// Somebody who calls the API.
pub(crate) struct User {
    pub(crate) account: Key<Account>,
    pub(crate) name: String,
    pub(crate) password: String,
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) email: Option<String>,
    pub(crate) keys: Option<Keys>,
}

/// An API key with its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) api: String,
    pub(crate) secret: String,
    /// Requests signed with it are refused from now on: a fault.
    pub(crate) expired: bool,
}

/// A project: an account that others share.
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) display_text: String,
    pub(crate) domain: Key<Domain>,
    pub(crate) account: Key<Account>,
    pub(crate) owner: Key<Account>,
    pub(crate) active: bool,
}

/// Something that is counted against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    UserVm,
    PublicIp,
    Volume,
    Snapshot,
    Template,
    Project,
    Network,
    Vpc,
    Cpu,
    Memory,
    PrimaryStorage,
    SecondaryStorage,
    Backup,
    BackupStorage,
    Bucket,
    ObjectStorage,
    Gpu,
}

impl Resource {
    /// In the order of their numbers on the wire.
    pub(crate) const ALL: [Self; 17] = [
        Self::UserVm,
        Self::PublicIp,
        Self::Volume,
        Self::Snapshot,
        Self::Template,
        Self::Project,
        Self::Network,
        Self::Vpc,
        Self::Cpu,
        Self::Memory,
        Self::PrimaryStorage,
        Self::SecondaryStorage,
        Self::Backup,
        Self::BackupStorage,
        Self::Bucket,
        Self::ObjectStorage,
        Self::Gpu,
    ];

    pub(crate) fn number(self) -> usize {
        self as usize
    }

    /// As in `resourcetypename`.
    pub(crate) fn name(self) -> &'static str {
        const NAMES: [&str; 17] = [
            "user_vm",
            "public_ip",
            "volume",
            "snapshot",
            "template",
            "project",
            "network",
            "vpc",
            "cpu",
            "memory",
            "primary_storage",
            "secondary_storage",
            "backup",
            "backup_storage",
            "bucket",
            "object_storage",
            "gpu",
        ];
        NAMES[self.number()]
    }

    /// First part of `vmlimit`, `vmtotal`, `vmavailable`.
    pub(crate) fn short(self) -> &'static str {
        const SHORT: [&str; 17] = [
            "vm",
            "ip",
            "volume",
            "snapshot",
            "template",
            "project",
            "network",
            "vpc",
            "cpu",
            "memory",
            "primarystorage",
            "secondarystorage",
            "backup",
            "backupstorage",
            "bucket",
            "objectstorage",
            "gpu",
        ];
        SHORT[self.number()]
    }

    /// What an account may have where nobody said otherwise.
    pub(crate) fn default_limit(self) -> i64 {
        match self {
            Self::Project => 10,
            Self::Cpu => 40,
            Self::Memory => 40960,
            Self::PrimaryStorage => 200,
            Self::SecondaryStorage | Self::BackupStorage | Self::ObjectStorage => 400,
            _ => 20,
        }
    }
}

/// Limits of an account or a domain, in the order in which they were set; -1 is none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits(Vec<(Resource, i64)>);

impl Limits {
    pub(crate) fn set(&mut self, resource: Resource, max: i64) {
        match self.0.iter_mut().find(|(held, _)| *held == resource) {
            Some(entry) => entry.1 = max,
            None => self.0.push((resource, max)),
        }
    }

    pub(crate) fn get(&self, resource: Resource) -> Option<i64> {
        self.0.iter().find(|(held, _)| *held == resource).map(|(_, max)| *max)
    }

    /// Those that were set, in that order.
    pub(crate) fn explicit(&self) -> impl Iterator<Item = Resource> + '_ {
        self.0.iter().map(|(resource, _)| *resource)
    }
}
