//! Errors of a site as errors of a controller.

use capstan_controller::{ObserveError, Outcome};
use capstan_provider_kit::decisions::Silence;
use capstan_sim_site::SiteCallError;

use crate::code;

/// The state of the site is unknown.
pub(crate) fn observe_error(error: SiteCallError) -> ObserveError {
    ObserveError::outside(code::SITE, error.to_string())
}

/// The same as an observation.
pub(crate) fn silence(error: &SiteCallError) -> Silence {
    Silence { code: code::SITE, why: error.to_string() }
}

/// The outcome of a failed call; a lost response is looked up later.
pub(crate) fn outcome(error: SiteCallError) -> Outcome {
    match error {
        SiteCallError::Refused(error) => Outcome::failed(code::REFUSED, error.to_string()),
        SiteCallError::Unreachable { .. } => Outcome::unknown(error.to_string()),
    }
}
