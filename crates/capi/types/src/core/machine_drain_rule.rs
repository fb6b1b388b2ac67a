//! `MachineDrainRule`: how pods are treated when a node is drained.

use capstan_object::{LabelSelector, ObjectMeta, object};

use crate::schema::{UNIQUE, rule};
use crate::wire::{choice, wire};

object!(
    MachineDrainRule,
    "cluster.x-k8s.io" / "v1beta2",
    "MachineDrainRule",
    "machinedrainrules",
    Namespaced
);

wire! {
    /// Drain behavior of pods on the nodes of matching machines.
    pub struct MachineDrainRule {
        /// Standard object metadata.
        #[schemars(extend("x-required" = true))]
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: MachineDrainRuleSpec,
    }

    /// Desired state of a MachineDrainRule.
    pub struct MachineDrainRuleSpec {
        /// Settings of the drain.
        #[schemars(extend("x-required" = true))]
        pub drain: MachineDrainRuleDrainConfig,
        /// Machines that the rule applies to. Defaults to all.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [rule(UNIQUE, "entries in machines must be unique")])
        )]
        pub machines: Vec<MachineDrainRuleMachineSelector>,
        /// Pods that the rule applies to. Defaults to all.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [rule(UNIQUE, "entries in pods must be unique")])
        )]
        pub pods: Vec<MachineDrainRulePodSelector>,
    }

    /// Settings of the drain.
    pub struct MachineDrainRuleDrainConfig {
        /// Drain behavior of the pods.
        #[schemars(extend("x-required" = true))]
        pub behavior: Option<MachineDrainRuleDrainBehavior>,
        /// Pods of lower order are drained before those of higher.
        pub order: Option<i32>,
    }

    /// Selects machines by their labels and those of their cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDrainRuleMachineSelector {
        /// Label selector of the machines.
        pub selector: Option<LabelSelector>,
        /// Label selector of the clusters.
        pub cluster_selector: Option<LabelSelector>,
    }

    /// Selects pods by their labels and those of their namespace.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDrainRulePodSelector {
        /// Label selector of the pods.
        pub selector: Option<LabelSelector>,
        /// Label selector of the namespaces.
        pub namespace_selector: Option<LabelSelector>,
    }
}

choice! {
    /// Drain behavior of pods.
    pub enum MachineDrainRuleDrainBehavior {
        /// Pods are evicted.
        Drain = "Drain",
        /// Pods are not evicted.
        Skip = "Skip",
        /// The drain waits for the pods to complete.
        WaitCompleted = "WaitCompleted",
    }
}
