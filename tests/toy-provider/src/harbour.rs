//! `ToyCluster`: a directory, which carries our mark. Owns ToyClusters; reads their Clusters. It outlives its object.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use capstan_capi_core::owners;
use capstan_capi_types::core::{APIEndpoint, Cluster, condition};
use capstan_controller::{Call, Controller, Decision, Look, ObserveError, Outcome, View, Watches};
use capstan_object::ConditionStatus::False;
use capstan_provider_kit::{Infrastructure, decide_cluster, decisions, watch_cluster};
use serde::{Deserialize, Serialize};

use crate::types::{ToyCluster, ToyMachine};
use crate::{Toy, code};

/// The file that says that a directory is ours.
pub const MARK: &str = ".harbour";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Make(String);

impl Call for Make {
    fn idempotency_key(&self) -> String {
        self.0.clone()
    }

    fn journalled(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        format!("make-harbour {}", self.0)
    }
}

impl Controller for Toy {
    const NAME: &'static str = "toycluster";
    type Kind = ToyCluster;
    /// Whether its directory is there; `None` without an owner.
    type Seen = Option<bool>;
    type Call = Make;

    fn watches(&self, watches: &mut Watches<ToyCluster>) {
        watch_cluster::<ToyCluster, ToyMachine>(watches);
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED]
    }

    async fn observe(&self, object: &Arc<ToyCluster>, view: &View) -> Result<Self::Seen, ObserveError> {
        let owner = owners::of::<Cluster>(&object.metadata, view)?;
        Ok(owner.map(|_| Path::new(&object.spec.directory).join(MARK).exists()))
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let keep = |look: &Look<Self>, decision: &mut Decision<Self>| {
            let endpoint = APIEndpoint { host: "127.0.0.1".to_owned(), port: 6443 };
            let call = Make(look.object.spec.directory.clone());
            if look.seen == Some(false) {
                decisions::ready(look, decision, False, "MakingHarbour", decisions::failure(look, &call));
                decision.call(call);
            } else if decisions::set_endpoint(look, decision, "the harbour", &endpoint) {
                decisions::provisioned(look, decision);
            }
        };
        decide_cluster(look, Infrastructure::conditions_mut, |_, _| {}, look.seen.map(|_| keep))
    }

    async fn call(&self, Make(directory): &Make, _: &Arc<ToyCluster>, _: &View) -> Outcome {
        let mark = || std::fs::write(Path::new(directory).join(MARK), "");
        if let Err(error) = std::fs::create_dir_all(directory).and_then(|()| mark()) {
            return Outcome::failed(code::HARBOUR, format!("{directory}: {error}"));
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Outcome::done()
    }
}
