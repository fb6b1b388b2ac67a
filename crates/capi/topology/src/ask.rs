//! What only extensions can answer, asked by pure functions.
//!
//! ```text
//! compute(blueprint, current, answers) ─┬─▶ Desired
//!            ▲                          └─▶ Stop::Ask ── observe: the call ──┐
//!            └───────────────── answers, one more ◀──────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_runtime::HookAnswer;
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::hook::GeneratedPatch;
use serde_json::Value;

use crate::desired::plan::{PlanQuestion, UpgradePlan};

/// A call that is needed.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// One handler about the templates of a cluster, for a patch of the class.
    Templates {
        hook: Hook,
        handler: String,
        /// Name of the patch.
        patch: String,
        settings: BTreeMap<String, String>,
        request: Value,
    },
    /// One handler about the versions that an upgrade passes through.
    UpgradePlan { handler: String, question: PlanQuestion, request: Value },
    /// All handlers of a lifecycle hook.
    Lifecycle { hook: Hook, request: Value },
}

/// Why there is no desired state.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// It cannot be said.
    Failed(String),
    /// Not before this is answered.
    Ask(Box<Ask>),
    /// A hook does not let the creation begin.
    CreationBlocked(HookAnswer),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Ask(_) => f.write_str("an extension must be asked first"),
            Self::CreationBlocked(answer) => f.write_str(&answer.message),
        }
    }
}

/// What extensions answered so far.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// Patches by name of the class's patch.
    pub patches: BTreeMap<String, Arc<Vec<GeneratedPatch>>>,
    /// The class's patches whose extension finds the templates valid.
    pub validated: Vec<String>,
    pub hooks: BTreeMap<Hook, HookAnswer>,
    pub upgrade_plan: Option<UpgradePlan>,
}
