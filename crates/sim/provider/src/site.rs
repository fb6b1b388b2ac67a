//! What a site's errors mean to a controller.

use capstan_controller::{ObserveError, Outcome};
use capstan_sim_site::GroundError;

use crate::code;

/// The state of the site cannot be told.
pub(crate) fn unseen(error: GroundError) -> ObserveError {
    ObserveError::outside(code::SITE, error.to_string())
}

/// A call did not succeed; one that nobody heard the end of is looked up.
pub(crate) fn outcome(error: GroundError) -> Outcome {
    match error {
        GroundError::Refused(error) => Outcome::failed(code::REFUSED, error.to_string()),
        GroundError::Unreachable { .. } => Outcome::unknown(error.to_string()),
    }
}
