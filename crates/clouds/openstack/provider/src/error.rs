//! Errors of the cloud for users: the error code, the Secret or field to look at, and the fix.

use std::time::Duration;

use capstan_controller::{Code, Controller, Decision, ObserveError, Outcome, Wait};
use capstan_openstack_client::{Class, Error};

use crate::code;

/// Requeue interval after an error that a user or operator has to fix.
const RETRY: Duration = Duration::from_secs(30);

/// The cloud cannot be reached, refuses a request, or lacks what the manifest names.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudError {
    pub code: Code,
    /// Reason of the condition.
    pub reason: &'static str,
    /// What failed, where, and the fix. Contains no secrets.
    pub message: String,
}

impl CloudError {
    pub(crate) fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into() }
    }

    /// The meaning of a client error.
    pub(crate) fn of(error: &Error) -> Self {
        let with = |fix: &str| format!("{error}; {fix}");
        match error.class() {
            Class::Credentials => Self::new(
                code::CREDENTIALS,
                "OpenStackAuthenticationFailed",
                with("correct clouds.yaml in the Secret of identityRef"),
            ),
            Class::Permission => Self::new(
                code::PERMISSION,
                "OpenStackError",
                with("check the roles of the user in the project"),
            ),
            Class::Quota => {
                Self::new(code::QUOTA, "OpenStackError", with("raise the quota or delete what is not used"))
            }
            Class::Capacity => Self::new(code::CAPACITY, "OpenStackError", error.to_string()),
            Class::NotFound => Self::new(code::NOT_FOUND, "OpenStackError", error.to_string()),
            Class::Parameter => Self::new(code::REFUSED, "OpenStackError", error.to_string()),
            Class::Exists | Class::InUse | Class::Busy => {
                Self::new(code::BUSY, "OpenStackError", error.to_string())
            }
            Class::Unsupported => Self::new(code::UNSUPPORTED, "OpenStackError", error.to_string()),
            Class::Answer => Self::new(code::AMBIGUOUS, "OpenStackError", error.to_string()),
            Class::RateLimited | Class::Unavailable | Class::Protocol | Class::Network => Self::new(
                code::UNREACHABLE,
                "OpenStackError",
                with("check auth_url in clouds.yaml and the service behind it"),
            ),
            Class::Internal => Self::new(code::FAILED, "OpenStackError", error.to_string()),
        }
    }

    /// Whether the credentials are missing or rejected.
    pub(crate) fn concerns_credentials(&self) -> bool {
        [code::SECRET, code::IDENTITY, code::CREDENTIALS].contains(&self.code)
    }

    /// The outcome of a call that was not made.
    pub(crate) fn outcome(self) -> Outcome {
        Outcome::failed(self.code, self.message)
    }

    /// With its code, for conditions.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    /// Makes a decision wait and requeue until the cause is fixed.
    pub(crate) fn wait<C: Controller>(&self, decision: &mut Decision<C>) {
        decision.wait(Wait::on(self.reason, self.message.as_str()).code(self.code));
        decision.again_in(RETRY);
    }
}

impl From<ObserveError> for CloudError {
    fn from(error: ObserveError) -> Self {
        Self::new(capstan_controller::catalogue::OBSERVE, "ObserveFailed", error.to_string())
    }
}

impl From<Error> for CloudError {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

impl From<CloudError> for ObserveError {
    fn from(error: CloudError) -> Self {
        Self::outside(error.code, error.message)
    }
}

/// The outcome of a call that failed: unknown if the service may have carried it out.
pub(crate) fn failed(error: &Error) -> Outcome {
    let cause = CloudError::of(error);
    let lost = capstan_controller::Error { code: cause.code, message: cause.message };
    if error.is_ambiguous() { Outcome::Unknown(lost) } else { Outcome::Failed(lost) }
}
