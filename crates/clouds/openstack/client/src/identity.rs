//! Keystone beyond tokens: application credentials, trusts, projects.

use capstan_cloud_http::Secret;
use http::Method;
use serde::Serialize;

use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{Time, model, request};
use crate::resource::{Create, Delete, Deletion, List, Resource, encoded, resources};
use crate::service::Service;
use crate::token::CatalogService;

model! {
    /// A secret made for a program.
    pub struct ApplicationCredential {
        /// Id of the application credential.
        pub id: Id<ApplicationCredential>,
        /// Its name, unique within a user.
        pub name: String,
        /// Description of the application credential.
        pub description: String,
        /// The project it is for.
        pub project_id: Option<String>,
        /// What it may be there.
        pub roles: Vec<Role>,
        /// When it ends.
        pub expires_at: Option<Time>,
        /// It may make others.
        pub unrestricted: bool,
        /// Shown once, when it is made.
        pub secret: Option<Secret>,
    }

    /// What somebody may be.
    pub struct Role {
        /// Id of the role.
        pub id: String,
        /// Its name, unique in a cloud.
        pub name: String,
    }

    /// A project.
    pub struct Project {
        /// Id of the project.
        pub id: Id<Project>,
        /// Its name, unique within a domain.
        pub name: String,
        /// Domain of the project.
        pub domain_id: String,
        /// It can be used.
        pub enabled: bool,
        /// Tags of the project.
        pub tags: Vec<String>,
    }

    /// What somebody entrusted to somebody else.
    pub struct Trust {
        /// Id of the trust.
        pub id: Id<Trust>,
        /// Who gives.
        pub trustor_user_id: String,
        /// Who takes.
        pub trustee_user_id: String,
        /// The project it is for.
        pub project_id: Option<String>,
        /// The trustee acts in the trustor's name.
        pub impersonation: bool,
        /// What the trustee may be there.
        pub roles: Vec<Role>,
        /// When it ends.
        pub expires_at: Option<Time>,
    }
}

/// A role, by id or by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleRef {
    /// By id.
    Id(String),
    /// By name.
    Name(String),
}

request! {
    /// A new application credential.
    pub struct NewApplicationCredential {
        /// Its name, unique within a user.
        pub name: String,
        /// Description of the application credential.
        pub description: Option<String>,
        /// What it may be; all that the user is if left out.
        pub roles: Vec<RoleRef>,
        /// When it ends, as `2026-01-31T00:00:00.000000`.
        pub expires_at: Option<String>,
        /// It may make others.
        pub unrestricted: Option<bool>,
    }

    /// A new trust. Application credentials may not make one.
    pub struct NewTrust {
        /// Who gives.
        pub trustor_user_id: String,
        /// Who takes.
        pub trustee_user_id: String,
        /// The project it is for.
        pub project_id: Option<String>,
        /// The trustee acts in the trustor's name; Keystone wants it said.
        pub impersonation: Option<bool>,
        /// What the trustee may be there.
        pub roles: Vec<RoleRef>,
        /// When it ends.
        pub expires_at: Option<String>,
    }

    /// What application credentials can be narrowed by.
    pub struct ApplicationCredentialFilter {
        /// Name of the application credential.
        pub name: Option<String>,
    }

    /// What projects can be narrowed by.
    pub struct ProjectFilter {
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// Domain of the project.
        pub domain_id: Option<String>,
    }
}

/// The path is below a user: see the methods of [`Client`].
impl Resource for ApplicationCredential {
    const SERVICE: Service = Service::Identity;
    const PATH: &'static str = "application_credentials";
    const ONE: Option<&'static str> = Some("application_credential");
}

impl List for ApplicationCredential {
    const MANY: &'static str = "application_credentials";
    type Filter = ApplicationCredentialFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}

impl Create for ApplicationCredential {
    type New = NewApplicationCredential;
}

resources! {
    Project: Identity "projects" Some("project"), "projects" by ProjectFilter;
}

impl Resource for Trust {
    const SERVICE: Service = Service::Identity;
    const PATH: &'static str = "OS-TRUST/trusts";
    const ONE: Option<&'static str> = Some("trust");
}

impl Create for Trust {
    type New = NewTrust;
}

impl Delete for Trust {}

impl Client {
    /// The application credentials of the user that this client is.
    pub async fn application_credentials(&self) -> Result<Vec<ApplicationCredential>, Error> {
        let path = self.credentials_path().await?;
        self.list_at(&path, &ApplicationCredentialFilter::default()).await
    }

    /// Makes an application credential for the user and the project that this client is in. The answer holds its secret.
    pub async fn create_application_credential(
        &self,
        new: &NewApplicationCredential,
    ) -> Result<ApplicationCredential, Error> {
        let path = self.credentials_path().await?;
        self.create_at(&path, new).await
    }

    /// Removes an application credential of the user that this client is. Its tokens end with it.
    pub async fn delete_application_credential(
        &self,
        id: &Id<ApplicationCredential>,
    ) -> Result<Deletion, Error> {
        let path = format!("{}/{}", self.credentials_path().await?, encoded(id.as_str()));
        let call = Call::change(Service::Identity, Method::DELETE, path, Body::None);
        self.checked_id(id, &call)?;
        self.remove(&call).await
    }

    async fn credentials_path(&self) -> Result<String, Error> {
        let token = self.token().await?;
        Ok(format!("users/{}/application_credentials", encoded(&token.user().id)))
    }

    /// The projects that the user may use.
    pub async fn own_projects(&self) -> Result<Vec<Project>, Error> {
        self.list_at("auth/projects", &ProjectFilter::default()).await
    }

    /// The catalog as Keystone has it now; that of the token is as old as the token.
    pub async fn catalog(&self) -> Result<Vec<CatalogService>, Error> {
        self.read(&Call::read(Service::Identity, "auth/catalog"), Some("catalog")).await
    }
}
