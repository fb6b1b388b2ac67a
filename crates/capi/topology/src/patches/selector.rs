//! Which templates a patch is for.

use capstan_capi_types::admission::selects_class;
use capstan_capi_types::core::cluster_class::{PatchSelector, PatchSelectorMatchClass};
use serde_json::Value;

/// Where a template is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    InfrastructureCluster,
    ControlPlane,
    ControlPlaneMachines,
    /// A MachineDeployment of a class.
    Deployment {
        class: String,
    },
    /// A MachinePool of a class.
    Pool {
        class: String,
    },
}

impl Holder {
    pub fn is_selected(&self, template: &Value, selector: &PatchSelector) -> bool {
        let wanted = &selector.match_resources;
        let names = |classes: &Option<PatchSelectorMatchClass>, class: &str| {
            classes.iter().flat_map(|classes| &classes.names).any(|name| selects_class(name, class))
        };
        template["apiVersion"] == selector.api_version.as_str()
            && template["kind"] == selector.kind.as_str()
            && match self {
                Self::InfrastructureCluster => wanted.infrastructure_cluster == Some(true),
                Self::ControlPlane | Self::ControlPlaneMachines => wanted.control_plane == Some(true),
                Self::Deployment { class } => names(&wanted.machine_deployment_class, class),
                Self::Pool { class } => names(&wanted.machine_pool_class, class),
            }
    }
}
