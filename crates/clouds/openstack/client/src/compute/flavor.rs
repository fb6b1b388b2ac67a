//! Flavors: processors, memory and disk of a server.

use std::collections::BTreeMap;

use crate::id::Id;
use crate::loose::{Number, model, request};
use crate::microversion::{Microversion, Wanted};
use crate::resource::{List, Resource};
use crate::service::Service;

model! {
    /// Processors, memory and disk of a server.
    pub struct Flavor {
        /// Id of the flavor, any text.
        pub id: Id<Flavor>,
        /// Its name, unique in a cloud.
        pub name: String,
        /// Processors.
        pub vcpus: u32,
        /// Memory in MiB.
        pub ram: u64,
        /// Root disk in GiB; 0 means the size of the image, or a volume.
        pub disk: u64,
        /// A second disk in GiB.
        #[serde(rename = "OS-FLV-EXT-DATA:ephemeral")]
        pub ephemeral: u64,
        /// Swap in MiB.
        pub swap: Number,
        /// Cannot be used.
        #[serde(rename = "OS-FLV-DISABLED:disabled")]
        pub disabled: bool,
        /// Everybody may use it.
        #[serde(rename = "os-flavor-access:is_public")]
        pub is_public: bool,
        /// Settings; absent before microversion 2.61.
        pub extra_specs: BTreeMap<String, String>,
    }
}

request! {
    /// What flavors can be narrowed by. There is no filter by name.
    pub struct FlavorFilter {
        /// At least so much disk, GiB.
        #[serde(rename = "minDisk")]
        pub min_disk: Option<u64>,
        /// At least so much memory, MiB.
        #[serde(rename = "minRam")]
        pub min_ram: Option<u64>,
    }
}

impl Resource for Flavor {
    const SERVICE: Service = Service::Compute;
    const PATH: &'static str = "flavors";
    const ONE: Option<&'static str> = Some("flavor");
    const WANTED: Option<Wanted> = Some(Wanted::between(Microversion(2, 1), Microversion(2, 61)));
}

impl List for Flavor {
    const LIST_PATH: &'static str = "flavors/detail";
    const MANY: &'static str = "flavors";
    type Filter = FlavorFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}
