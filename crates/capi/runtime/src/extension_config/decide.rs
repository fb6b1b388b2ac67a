//! Decides about an ExtensionConfig.

use capstan_capi_core::conditions::{self, ConditionState};
use capstan_capi_core::paused;
use capstan_capi_types::core::condition as shared;
use capstan_capi_types::runtime::extension_config::{condition, reason};
use capstan_controller::{Decision, Look, Wait};
use capstan_object::ConditionStatus;

use super::ExtensionConfigs;

pub(super) fn decide(look: &Look<ExtensionConfigs>) -> Decision<ExtensionConfigs> {
    let mut decision = Decision::rest(look);
    if look.object.metadata.is_deleting() {
        return decision;
    }
    let paused = paused::condition(look.paused.as_deref());
    conditions::set_state(look, &mut decision.object.status.conditions, shared::PAUSED, paused, None);
    if look.paused.is_some() {
        return decision;
    }
    if let Some(bundle) = &look.seen.ca_bundle {
        decision.object.spec.client_config.ca_bundle.clone_from(bundle);
    }
    let Some(discovery) = &look.seen.discovery else { return decision };
    let state = match discovery {
        Ok(handlers) => {
            decision.object.status.handlers.clone_from(handlers);
            ConditionState::new(ConditionStatus::True, reason::DISCOVERED, "")
        }
        // What it answered before stays: a server that is down for a while must not unblock what it blocks.
        Err(why) => {
            let message = format!("Error in discovery: {why}");
            decision.wait(Wait::on(reason::NOT_DISCOVERED, message.clone()));
            ConditionState::new(ConditionStatus::False, reason::NOT_DISCOVERED, message)
        }
    };
    conditions::set_state(look, &mut decision.object.status.conditions, condition::DISCOVERED, state, None);
    if let Some(again) = look.seen.again {
        decision.again_in(again);
    }
    decision
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_capi_types::runtime::{ExtensionConfig, ExtensionHandler};
    use jiff::Timestamp;

    use super::super::Observed;
    use super::*;

    fn decided(config: ExtensionConfig, seen: Observed) -> Decision<ExtensionConfigs> {
        decide(&Look::new(Arc::new(config), seen, Timestamp::UNIX_EPOCH))
    }

    fn discovered(decision: &Decision<ExtensionConfigs>) -> (&str, &str) {
        let conditions = &decision.object.status.conditions;
        let found = conditions.iter().find(|it| it.kind == "Discovered").expect("a condition");
        (&found.reason, &found.message)
    }

    #[test]
    fn handlers_are_reported_and_survive_a_failed_discovery() {
        let handler = ExtensionHandler { name: "a.ext".to_owned(), ..ExtensionHandler::default() };
        let seen = Observed { discovery: Some(Ok(vec![handler.clone()])), ..Observed::default() };
        let decision = decided(ExtensionConfig::default(), seen);
        assert_eq!(discovered(&decision), ("Discovered", ""));
        assert_eq!(decision.object.status.handlers, std::slice::from_ref(&handler));

        let seen = Observed { discovery: Some(Err("refused".to_owned())), ..Observed::default() };
        let decision = decided(decision.object, seen);
        assert_eq!(discovered(&decision), ("NotDiscovered", "Error in discovery: refused"));
        assert_eq!(decision.object.status.handlers, [handler]);
    }

    #[test]
    fn the_authority_comes_from_the_secret() {
        let seen = Observed { ca_bundle: Some("Y2E=".to_owned()), ..Observed::default() };
        let decision = decided(ExtensionConfig::default(), seen);
        assert_eq!(decision.object.spec.client_config.ca_bundle, "Y2E=");
        assert!(!decision.object.status.conditions.iter().any(|it| it.kind == "Discovered"));
    }
}
