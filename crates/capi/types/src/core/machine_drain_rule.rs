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
    /// Says how pods are treated when the node of a machine is drained.
    pub struct MachineDrainRule {
        /// Name, labels, owners and the rest of what every object has.
        #[schemars(extend("x-required" = true))]
        pub metadata: ObjectMeta,
        /// What is wanted.
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
        /// What is done with the pods.
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
    /// What is done with pods when their node is drained.
    pub enum MachineDrainRuleDrainBehavior {
        /// Evicted.
        Drain = "Drain",
        /// Left alone.
        Skip = "Skip",
        /// Awaited until they are done.
        WaitCompleted = "WaitCompleted",
    }
}
