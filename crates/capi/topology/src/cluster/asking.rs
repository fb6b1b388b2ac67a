//! Asks extensions what a desired state needs of them.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_runtime::{CachePolicy, ExtensionError, HookAnswer};
use capstan_capi_types::core::Cluster;
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::hook::{GeneratePatchesResponse, GenerateUpgradePlanResponse};
use capstan_capi_types::runtime::pending::OK_TO_DELETE;
use capstan_controller::{ObserveError, View};
use capstan_object::Object;
use serde_json::json;

use super::ClusterTopologies;
use super::observed::{DeletionHook, Observed};
use crate::ask::{Answers, Ask, Stop};
use crate::blueprint::Blueprint;
use crate::current::Current;
use crate::desired::{self, Desired, hooks};

/// Most questions about one desired state: the patches of a class, twice, and the hooks.
const MOST_QUESTIONS: usize = 2 * 1000 + 32;

/// The desired state, or what stands in its way.
pub(super) async fn desired(
    controller: &ClusterTopologies,
    view: &View,
    blueprint: &Blueprint,
    current: &Current,
) -> Result<Result<Desired, Observed>, ObserveError> {
    let cluster = &current.cluster;
    let mut answers = Answers::default();
    for _ in 0..MOST_QUESTIONS {
        let ask = match desired::compute(blueprint, current, &answers) {
            Ok(desired) => {
                controller.retries.succeeded(&cluster.key());
                return Ok(Ok(desired));
            }
            Err(Stop::Ask(ask)) => ask,
            Err(Stop::Failed(why)) => return Ok(Err(Observed::Failed(why))),
            Err(Stop::CreationBlocked(answer)) => {
                controller.retries.succeeded(&cluster.key());
                return Ok(Err(Observed::CreationBlocked(answer)));
            }
        };
        if let Err(error) = answer(controller, view, cluster, &ask, &mut answers).await {
            let what = match &*ask {
                Ask::Templates { hook, patch, .. } => format!("{hook} of patch {patch:?}"),
                Ask::UpgradePlan { .. } => Hook::GenerateUpgradePlan.to_string(),
                Ask::Lifecycle { hook, .. } => hook.to_string(),
            };
            return Ok(Err(failed(controller, cluster, &what, error)?));
        }
    }
    Ok(Err(Observed::Failed("the patches of the ClusterClass call extensions too often".to_owned())))
}

async fn answer(
    controller: &ClusterTopologies,
    view: &View,
    cluster: &Cluster,
    ask: &Ask,
    answers: &mut Answers,
) -> Result<(), ExtensionError> {
    let extensions = &controller.extensions;
    match ask {
        Ask::Lifecycle { hook, request } => {
            let answer = extensions.call_all(view, cluster, *hook, request).await?;
            answers.hooks.insert(*hook, answer);
        }
        Ask::UpgradePlan { handler, question, request } => {
            let namespace = cluster.metadata.namespace.as_str();
            let hook = Hook::GenerateUpgradePlan;
            // The Cluster in the request changes while it is upgraded; the plan is about these versions.
            let subject = format!("{} {question}", cluster.metadata.uid);
            let plan = extensions
                .call_checked(view, namespace, (hook, handler), (&subject, request), |reply| {
                    let response: GenerateUpgradePlanResponse =
                        reply.read().map_err(|error| error.to_string())?;
                    question.answered(&response)
                })
                .await?;
            answers.upgrade_plan = Some(plan);
        }
        Ask::Templates { hook, handler, patch, settings, request } => {
            let namespace = cluster.metadata.namespace.as_str();
            let reply = extensions
                .call(view, namespace, (*hook, handler), settings, request, CachePolicy::Reuse)
                .await?;
            match hook {
                Hook::GeneratePatches => {
                    let response: GeneratePatchesResponse = reply.read()?;
                    answers.patches.insert(patch.clone(), Arc::new(response.items));
                }
                _ => answers.validated.push(patch.clone()),
            }
        }
    }
    Ok(())
}

/// An extension that does not answer is reported and asked again; an API server that does not is the runtime's.
fn failed(
    controller: &ClusterTopologies,
    cluster: &Cluster,
    what: &str,
    error: ExtensionError,
) -> Result<Observed, ObserveError> {
    match error {
        ExtensionError::Api(error) => Err(error.into()),
        ExtensionError::Observe(error) => Err(error),
        error => {
            let again: Duration = controller.retries.failed(&cluster.key());
            Ok(Observed::ExtensionFailed { why: format!("{what}: {error}"), again })
        }
    }
}

/// Whether a cluster may be deleted.
pub(super) async fn deletion(
    controller: &ClusterTopologies,
    view: &View,
    cluster: &Cluster,
) -> Result<Observed, ObserveError> {
    if cluster.metadata.annotations.contains_key(OK_TO_DELETE) {
        return Ok(Observed::Deleting(DeletionHook::Passed));
    }
    let hook = Hook::BeforeClusterDelete;
    let request = json!({"cluster": hooks::sent(cluster)});
    match controller.extensions.call_all(view, cluster, hook, &request).await {
        Ok(answer) => {
            controller.retries.succeeded(&cluster.key());
            Ok(Observed::Deleting(deletion_hook(answer)))
        }
        Err(error) => failed(controller, cluster, hook.name(), error),
    }
}

fn deletion_hook(answer: HookAnswer) -> DeletionHook {
    if answer.is_blocking() { DeletionHook::Blocks(answer) } else { DeletionHook::Passed }
}
