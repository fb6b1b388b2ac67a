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

    /// Which pods are drained how.
    pub struct MachineDrainRuleSpec {
        /// How the pods are drained.
        #[schemars(extend("x-required" = true))]
        pub drain: MachineDrainRuleDrainConfig,
        /// Machines the rule is for; all if absent.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [rule(UNIQUE, "entries in machines must be unique")])
        )]
        pub machines: Vec<MachineDrainRuleMachineSelector>,
        /// Pods the rule is for; all if absent.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [rule(UNIQUE, "entries in pods must be unique")])
        )]
        pub pods: Vec<MachineDrainRulePodSelector>,
    }

    /// How pods are drained.
    pub struct MachineDrainRuleDrainConfig {
        /// Drain behavior of the pods.
        #[schemars(extend("x-required" = true))]
        pub behavior: Option<MachineDrainRuleDrainBehavior>,
        /// Pods of lower order are drained before those of higher.
        pub order: Option<i32>,
    }

    /// Machines, by their own labels and those of their cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDrainRuleMachineSelector {
        /// Labels of the machine.
        pub selector: Option<LabelSelector>,
        /// Labels of its cluster.
        pub cluster_selector: Option<LabelSelector>,
    }

    /// Pods, by their own labels and those of their namespace.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDrainRulePodSelector {
        /// Labels of the pod.
        pub selector: Option<LabelSelector>,
        /// Labels of its namespace.
        pub namespace_selector: Option<LabelSelector>,
    }
}

choice! {
    /// Drain behavior of pods.
    pub enum MachineDrainRuleDrainBehavior {
        /// Evicted.
        Drain = "Drain",
        /// Left alone.
        Skip = "Skip",
        /// Awaited until they are done.
        WaitCompleted = "WaitCompleted",
    }
}
