//! Who is who, and how much they may have.

use capstan_cloud_http::{Secret, exposed};
use serde::Serialize;

use super::Scope;
use crate::command::{calls, jobs, lists};
use crate::id::{AccountId, DomainId, ProjectId, UserId};
use crate::model::{Account, Domain, Project, ResourceLimit, User, UserKeys};

/// Domains. Ordinary users may not ask.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListDomains {
    /// The domain with this id.
    pub id: Option<DomainId>,
    /// Domains with this name.
    pub name: Option<String>,
    /// So far below the root.
    pub level: Option<u32>,
    /// Everything that the caller may see.
    pub listall: Option<bool>,
}

/// Accounts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListAccounts {
    /// The account with this id.
    pub id: Option<AccountId>,
    /// Accounts with this name.
    pub name: Option<String>,
    /// In this domain.
    pub domainid: Option<DomainId>,
    /// Everything that the caller may see.
    pub listall: Option<bool>,
}

/// Users.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListUsers {
    /// The user with this id.
    pub id: Option<UserId>,
    /// Users with this name.
    pub username: Option<String>,
    /// Of this account.
    pub account: Option<String>,
    /// In this domain.
    pub domainid: Option<DomainId>,
    /// Everything that the caller may see.
    pub listall: Option<bool>,
}

/// The user whom a key names. Ordinary users may not ask.
#[derive(Debug, Clone, Serialize)]
pub struct GetUser {
    /// The key.
    #[serde(serialize_with = "exposed")]
    pub userapikey: Secret,
}

/// The keys of a user, in clear.
#[derive(Debug, Clone, Serialize)]
pub struct GetUserKeys {
    /// The user.
    pub id: UserId,
}

/// Projects that the caller is in.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListProjects {
    /// The project with this id.
    pub id: Option<ProjectId>,
    /// Projects with this name.
    pub name: Option<String>,
    /// In this domain.
    pub domainid: Option<DomainId>,
    /// Everything that the caller may see.
    pub listall: Option<bool>,
}

/// Makes a project: what is made in it belongs to it, and its members share it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CreateProject {
    /// Its name, unique in its domain.
    pub name: String,
    /// Description of the project.
    pub displaytext: Option<String>,
}

/// Limits as they were set.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListResourceLimits {
    /// Of this kind, by number.
    pub resourcetype: Option<u32>,
    /// Of this kind, by name.
    pub resourcetypename: Option<String>,
    /// Owner of the resource limits.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Sets a limit of an account. For administrators.
#[derive(Debug, Clone, Serialize)]
pub struct UpdateResourceLimit {
    /// The kind, by number: 0 machines, 1 public addresses, 2 volumes, 6 networks, 8 processors, 9 memory.
    pub resourcetype: u32,
    /// The most it may have; -1 for no limit.
    pub max: i64,
    /// Name of the account.
    pub account: String,
    /// Domain of the account.
    pub domainid: DomainId,
}

lists! {
    ListDomains: "listDomains" => "domain" Domain;
    ListAccounts: "listAccounts" => "account" Account;
    ListUsers: "listUsers" => "user" User;
    ListProjects: "listProjects" => "project" Project;
    ListResourceLimits: "listResourceLimits" => "resourcelimit" ResourceLimit;
}
jobs! {
    CreateProject: "createProject" [ProjectId] => "project" Project;
}
calls! {
    GetUser: "getUser" => "user" User;
    GetUserKeys: "getUserKeys" => "userkeys" UserKeys;
    UpdateResourceLimit: "updateResourceLimit" => "resourcelimit" ResourceLimit;
}
