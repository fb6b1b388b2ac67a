//! Variables that extensions define.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_capi_runtime::{CachePolicy, ExtensionError};
use capstan_capi_types::core::ClusterClass;
use capstan_capi_types::core::cluster_class::ClusterClassVariable;
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::hook::DiscoverVariablesResponse;
use capstan_capi_types::variables;
use capstan_controller::{ObserveError, View};
use capstan_object::Object;
use serde_json::json;

use super::ClusterClasses;

/// How often extensions are asked while nothing changes.
const INTERVAL: Duration = Duration::from_secs(600);

/// What extensions said about variables.
#[derive(Debug, Default)]
pub struct Discovered {
    /// Variables by patch, in the order of patches.
    pub found: Vec<(String, Vec<ClusterClassVariable>)>,
    pub errors: Vec<String>,
    /// When extensions are asked again.
    pub again: Option<Duration>,
}

/// The ExtensionConfigs whose handlers define variables of a class.
pub(super) fn extensions_of(class: &ClusterClass) -> Vec<String> {
    let external = class.spec.patches.iter().filter_map(|patch| patch.external.as_ref());
    let handlers = external.map(|external| external.discover_variables_extension.as_str());
    let names: BTreeSet<&str> = handlers.filter_map(|handler| Some(handler.split_once('.')?.1)).collect();
    names.into_iter().map(str::to_owned).collect()
}

pub(super) async fn variables(
    controller: &ClusterClasses,
    class: &ClusterClass,
    view: &View,
) -> Result<Discovered, ObserveError> {
    let mut discovered = Discovered::default();
    for patch in &class.spec.patches {
        let Some(external) = &patch.external else { continue };
        if external.discover_variables_extension.is_empty() {
            continue;
        }
        discovered.again = Some(INTERVAL);
        let handler = (Hook::DiscoverVariables, external.discover_variables_extension.as_str());
        let namespace = class.metadata.namespace.as_str();
        let request = json!({});
        let call = controller.extensions.call(
            view,
            namespace,
            handler,
            &external.settings,
            &request,
            CachePolicy::Reuse,
        );
        let response: Result<DiscoverVariablesResponse, _> = call.await.and_then(|reply| reply.read());
        match response {
            Ok(response) => {
                let path = format!("{}.variables", patch.name);
                let problems = variables::validate_definitions(&response.variables, &path);
                discovered.errors.extend(problems.iter().map(ToString::to_string));
                discovered.found.push((patch.name.clone(), response.variables));
            }
            Err(ExtensionError::Api(error)) => return Err(error.into()),
            Err(ExtensionError::Observe(error)) => return Err(error),
            Err(error) => discovered
                .errors
                .push(format!("failed to call DiscoverVariables for patch {}: {error}", patch.name)),
        }
    }
    match discovered.errors.is_empty() {
        true => controller.retries.succeeded(&class.key()),
        false => discovered.again = Some(controller.retries.failed(&class.key())),
    }
    Ok(discovered)
}
