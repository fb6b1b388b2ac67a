//! What Keystone says about a token.

use std::time::Duration;

use capstan_cloud_http::Secret;
use jiff::Timestamp;

use crate::loose::{Time, model};

model! {
    /// A thing with an id and a name.
    pub struct Named {
        /// Id of the resource.
        pub id: String,
        /// Name of the resource.
        pub name: String,
        /// The domain of a user or a project.
        pub domain: Option<Box<Named>>,
    }

    /// A service in the catalog.
    pub struct CatalogService {
        /// Its type, such as `compute`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Its name, such as `nova`.
        pub name: String,
        /// Where it is reached.
        pub endpoints: Vec<CatalogEndpoint>,
    }

    /// Where a service is reached.
    pub struct CatalogEndpoint {
        /// `public`, `internal` or `admin`.
        pub interface: String,
        /// The region, in the words of older catalogs.
        pub region: String,
        /// The region.
        pub region_id: String,
        /// The URL, with or without a version and a project in its path.
        pub url: String,
    }
}

model! {
    /// The body of an answer with a token.
    pub struct TokenBody {
        /// What Keystone says about it.
        pub token: Description,
    }

    /// What Keystone says about a token.
    pub struct Description {
        /// When it ends.
        pub expires_at: Option<Time>,
        /// When it began.
        pub issued_at: Option<Time>,
        /// The project it is for, if it is for one.
        pub project: Option<Named>,
        /// Whose it is.
        pub user: Named,
        /// What the user may be there.
        pub roles: Vec<Named>,
        /// Where the services are; empty without a scope.
        pub catalog: Vec<CatalogService>,
        /// How it was got.
        pub methods: Vec<String>,
        /// The application credential it was got with.
        pub application_credential: Option<Named>,
    }
}

/// A token and what Keystone says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// What is sent with every request.
    pub(crate) value: Secret,
    /// What Keystone says about it.
    pub(crate) description: Description,
}

impl Token {
    /// The id of the project it is for.
    pub fn project_id(&self) -> Option<&str> {
        self.description.project.as_ref().map(|project| project.id.as_str())
    }

    /// The project it is for.
    pub fn project(&self) -> Option<&Named> {
        self.description.project.as_ref()
    }

    /// Whose it is.
    pub fn user(&self) -> &Named {
        &self.description.user
    }

    /// What the user may be in the project.
    pub fn roles(&self) -> &[Named] {
        &self.description.roles
    }

    /// Where the services are.
    pub fn catalog(&self) -> &[CatalogService] {
        &self.description.catalog
    }

    /// When it ends. Keystone always says so.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.description.expires_at.map(|time| time.0)
    }

    /// Whether it should be replaced at this time. It is replaced before it ends, because a request must not take longer
    /// than the rest of its lifetime.
    pub(crate) fn is_due(&self, now: Timestamp, before: Duration) -> bool {
        let Some(end) = self.expires_at() else {
            return false;
        };
        let issued = self.description.issued_at.map_or(now, |time| time.0);
        let lifetime = Duration::try_from(end.duration_since(issued)).unwrap_or_default();
        let rest = Duration::try_from(end.duration_since(now)).unwrap_or_default();
        rest <= before.min(lifetime / 5)
    }

    /// The value, to be sent as `X-Auth-Token`.
    pub fn value(&self) -> &Secret {
        &self.value
    }
}
