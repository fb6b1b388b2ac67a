//! What a manifest may contain: checked without asking CloudStack, and without other objects. Each error names the field
//! and how to correct it. Nothing is filled in here but what belongs to the user's own object; the rest of the defaults
//! are part of generation, so that an object stays as its owner wrote it.

mod cluster;
mod control_plane;
mod datacenter;
mod machine_config;
mod network;
#[cfg(test)]
mod tests;
mod unsupported;
mod update;
mod workers;

use capstan_capi_types::admission::{FieldError, Rules};

use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};

pub fn rules() -> Vec<Rules> {
    vec![
        Rules::of::<Cluster>(),
        Rules::of::<CloudStackDatacenterConfig>(),
        Rules::of::<CloudStackMachineConfig>(),
    ]
}

type Errors = Vec<FieldError>;
