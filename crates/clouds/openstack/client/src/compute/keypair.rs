//! SSH keys. They belong to a user, not to a project.

use capstan_cloud_http::Secret;
use serde::Deserialize;

use crate::client::Client;
use crate::error::Error;
use crate::id::Id;
use crate::loose::{model, request};
use crate::microversion::{Microversion, Wanted};
use crate::pages::Paging;
use crate::resource::{Create, Delete, List, Resource};
use crate::service::Service;

model! {
    /// An SSH key.
    pub struct Keypair {
        /// Its name, which is its id.
        pub name: Id<Keypair>,
        /// The public half.
        pub public_key: String,
        /// MD5 of the public half.
        pub fingerprint: String,
        /// `ssh` or `x509`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Whose it is; shown of one, not in lists.
        pub user_id: String,
        /// The private half, shown once when Nova made it.
        pub private_key: Option<Secret>,
    }
}

request! {
    /// A new key.
    pub struct NewKeypair {
        /// Name of the keypair.
        pub name: String,
        /// The public half. Without it Nova makes a pair, before microversion 2.92.
        pub public_key: Option<String>,
        /// `ssh` or `x509`.
        #[serde(rename = "type")]
        pub kind: Option<String>,
    }

    /// Keys cannot be narrowed.
    pub struct KeypairFilter {
    }
}

const VERSIONS: Option<Wanted> = Some(Wanted::between(Microversion(2, 2), Microversion(2, 10)));

impl Resource for Keypair {
    const SERVICE: Service = Service::Compute;
    const PATH: &'static str = "os-keypairs";
    const ONE: Option<&'static str> = Some("keypair");
    const WANTED: Option<Wanted> = VERSIONS;
}

impl Create for Keypair {
    type New = NewKeypair;
}

impl Delete for Keypair {}

/// An entry of the list, which wraps each key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Entry {
    keypair: Keypair,
}

impl Resource for Entry {
    const SERVICE: Service = Service::Compute;
    const PATH: &'static str = "os-keypairs";
    const ONE: Option<&'static str> = None;
    const WANTED: Option<Wanted> = VERSIONS;
}

impl List for Entry {
    const MANY: &'static str = "keypairs";
    /// Pages came with microversion 2.35.
    const PAGING: Paging = Paging::Whole;
    type Filter = KeypairFilter;

    fn marker(&self) -> &str {
        self.keypair.name.as_str()
    }
}

impl Client {
    /// The user's keys.
    pub async fn keypairs(&self) -> Result<Vec<Keypair>, Error> {
        let entries = self.list::<Entry>(&KeypairFilter::default()).await?;
        Ok(entries.into_iter().map(|entry| entry.keypair).collect())
    }
}
