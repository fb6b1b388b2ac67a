//! How a deployment replaces its machines.

use capstan_capi_types::core::{MachineDeployment, MachineDeploymentRolloutStrategyType};
use capstan_object::IntOrString;

use super::rollout::Strategy;

/// The deployment's strategy with upstream's defaults.
pub(super) fn strategy(deployment: &MachineDeployment) -> Strategy {
    let strategy = &deployment.spec.rollout.strategy;
    if strategy.kind == Some(MachineDeploymentRolloutStrategyType::OnDelete) {
        return Strategy::OnDelete;
    }
    let rolling = &strategy.rolling_update;
    Strategy::RollingUpdate {
        max_surge: rolling.max_surge.clone().unwrap_or(IntOrString::Int(1)),
        max_unavailable: rolling.max_unavailable.clone().unwrap_or(IntOrString::Int(0)),
    }
}
