//! Errors of the cloud for users: the error code, the Secret or field to look at, and the fix.

use std::time::Duration;

use capstan_controller::{Code, Controller, Decision, ObserveError, Outcome, Wait};
use capstan_openstack_client::{Class, Error, Refusal};

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
        let what = described(error);
        let with = |fix: &str| format!("{what}; {fix}");
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
            Class::Capacity => Self::new(code::CAPACITY, "OpenStackError", what),
            Class::NotFound => Self::new(code::NOT_FOUND, "OpenStackError", what),
            Class::Parameter => Self::new(code::REFUSED, "OpenStackError", what),
            Class::Exists | Class::InUse | Class::Busy => Self::new(code::BUSY, "OpenStackError", what),
            Class::Unsupported => Self::new(code::UNSUPPORTED, "OpenStackError", what),
            Class::Answer => Self::new(code::AMBIGUOUS, "OpenStackError", what),
            Class::RateLimited | Class::Unavailable | Class::Protocol | Class::Network => Self::new(
                code::UNREACHABLE,
                "OpenStackError",
                with("check auth_url in clouds.yaml and the service behind it"),
            ),
            Class::Internal => Self::new(code::FAILED, "OpenStackError", what),
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

/// The error without its request id and without times: conditions must not change with every attempt, because a changed
/// condition is a write, and a write is a reason to reconcile.
fn described(error: &Error) -> String {
    match error.refusal() {
        Some(refusal) => {
            let refusal = Refusal { request_id: None, ..refusal.clone() };
            format!("{} {}: {refusal}", error.service, error.operation)
        }
        None => error.to_string(),
    }
}

/// The outcome of a call that failed: unknown if the service may have carried it out.
pub(crate) fn failed(error: &Error) -> Outcome {
    let cause = CloudError::of(error);
    let lost = capstan_controller::Error { code: cause.code, message: cause.message };
    if error.is_ambiguous() { Outcome::Unknown(lost) } else { Outcome::Failed(lost) }
}
