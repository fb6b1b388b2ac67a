//! Placement: how much of a cloud is in use.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::{Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{model, request};
use crate::microversion::{Microversion, Wanted};
use crate::pages::Paging;
use crate::resource::{List, Resource};
use crate::service::Service;

model! {
    /// A host, or a part of one, that has something to give.
    pub struct ResourceProvider {
        /// Id of the resource provider.
        pub uuid: Id<ResourceProvider>,
        /// Name of the resource provider.
        pub name: String,
        /// Grows with every change.
        pub generation: u64,
    }
}

request! {
    /// What providers can be narrowed by.
    pub struct ResourceProviderFilter {
        /// Name of the resource provider.
        pub name: Option<String>,
        /// It has so much to give: `VCPU:2,MEMORY_MB:4096`. Needs microversion 1.4.
        pub resources: Option<String>,
    }
}

impl Resource for ResourceProvider {
    const SERVICE: Service = Service::Placement;
    const PATH: &'static str = "resource_providers";
    const ONE: Option<&'static str> = None;
    const WANTED: Option<Wanted> = Some(Wanted::between(Microversion(1, 4), Microversion(1, 39)));
}

impl List for ResourceProvider {
    const MANY: &'static str = "resource_providers";
    const PAGING: Paging = Paging::Whole;
    type Filter = ResourceProviderFilter;

    fn marker(&self) -> &str {
        self.uuid.as_str()
    }
}

#[derive(Deserialize)]
struct Candidates {
    allocation_requests: Vec<serde::de::IgnoredAny>,
}

impl Client {
    /// What a project uses, by resource class. Members may ask about their own.
    pub async fn usages(&self, project: &str) -> Result<BTreeMap<String, u64>, Error> {
        let call = Call::read(Service::Placement, "usages")
            .wanting(Some(Wanted::between(Microversion(1, 9), Microversion(1, 37))))
            .with_query(vec![("project_id".to_owned(), project.to_owned())]);
        self.read(&call, Some("usages")).await
    }

    /// How many places there are for so much, such as `VCPU:2,MEMORY_MB:4096`; at most `limit`. For administrators.
    pub async fn allocation_candidates(&self, resources: &str, limit: u32) -> Result<usize, Error> {
        let call = Call::read(Service::Placement, "allocation_candidates")
            .wanting(Some(Wanted::between(Microversion(1, 16), Microversion(1, 39))))
            .with_query(vec![
                ("resources".to_owned(), resources.to_owned()),
                ("limit".to_owned(), limit.to_string()),
            ]);
        let candidates: Candidates = self.read(&call, None).await?;
        Ok(candidates.allocation_requests.len())
    }
}
