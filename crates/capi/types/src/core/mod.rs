//! `cluster.x-k8s.io/v1beta2`: clusters and machines.

pub mod cluster;
pub mod cluster_class;
pub mod common;
pub mod machine;
pub mod machine_deployment;
pub mod machine_drain_rule;
pub mod machine_health_check;
pub mod machine_pool;
pub mod machine_set;
pub mod naming;
pub mod topology;

pub use cluster::{
    APIEndpoint, Cluster, ClusterAvailabilityGate, ClusterInitializationStatus, ClusterNetwork, ClusterPhase,
    ClusterReplicas, ClusterSpec, ClusterStatus, ClusterV1Beta1DeprecatedStatus, FailureDomain,
    NetworkRanges, StatusUpgradePlanVersion,
};
pub use cluster_class::ClusterClass;
pub use common::{
    CLUSTER_SECRET_TYPE, ConditionPolarity, ContractVersionedObjectReference, Deprecated, MachineTaint,
    MachineTaintPropagation, StatusVersion, TEMPLATE_SUFFIX, TaintEffect, TemplateMeta, V1Beta1Condition,
    V1Beta1Conditions, annotation, condition, label, reason,
};
pub use machine::{
    Bootstrap, Machine, MachineAddress, MachineAddressType, MachineDeletionSpec, MachineDeletionStatus,
    MachineInitializationStatus, MachineNodeReference, MachinePhase, MachineReadinessGate, MachineSpec,
    MachineStatus, MachineV1Beta1DeprecatedStatus,
};
pub use machine_deployment::{
    MachineDeployment, MachineDeploymentPhase, MachineDeploymentRemediationSpec,
    MachineDeploymentRolloutSpec, MachineDeploymentRolloutStrategy,
    MachineDeploymentRolloutStrategyRollingUpdate, MachineDeploymentRolloutStrategyType,
    MachineDeploymentSpec, MachineDeploymentStatus, MachineDeploymentV1Beta1DeprecatedStatus,
};
pub use machine_drain_rule::{
    MachineDrainRule, MachineDrainRuleDrainBehavior, MachineDrainRuleDrainConfig,
    MachineDrainRuleMachineSelector, MachineDrainRulePodSelector, MachineDrainRuleSpec,
};
pub use machine_health_check::{
    MachineHealthCheck, MachineHealthCheckChecks, MachineHealthCheckRemediation,
    MachineHealthCheckRemediationTemplateReference, MachineHealthCheckRemediationTriggerIf,
    MachineHealthCheckSpec, MachineHealthCheckStatus, UnhealthyMachineCondition, UnhealthyNodeCondition,
};
pub use machine_pool::{
    MachinePool, MachinePoolInitializationStatus, MachinePoolPhase, MachinePoolSpec, MachinePoolStatus,
    MachinePoolV1Beta1DeprecatedStatus,
};
pub use machine_set::{
    MachineNamingSpec, MachineSet, MachineSetDeletionOrder, MachineSetDeletionSpec, MachineSetPreflightCheck,
    MachineSetSpec, MachineSetStatus, MachineSetV1Beta1DeprecatedStatus, MachineTemplateSpec,
};
