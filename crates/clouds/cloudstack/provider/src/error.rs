//! Errors of the cloud for users: the error code, the Secret or field to look at, and the fix.

use std::time::Duration;

use capstan_cloudstack_client::{Class, Code as ErrorCode, Error};
use capstan_controller::{Code, Controller, Decision, ObserveError, Outcome, Wait};
use capstan_object::Key;

use crate::code;

/// Requeue interval after an error that a user or operator has to fix.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The cloud cannot be reached, refuses a request, or lacks what the manifest names.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudError {
    pub code: Code,
    /// One word for conditions.
    pub reason: &'static str,
    /// What failed, where, and the fix. Contains no secrets.
    pub message: String,
}

impl CloudError {
    pub fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into() }
    }

    /// The meaning of a client error, for requests made with the keys of a Secret.
    pub fn of(error: &Error, secret: &Key) -> Self {
        let says = |mend: String| format!("{error}; {mend}");
        match error.class() {
            Class::Credentials => Self::new(
                code::CREDENTIALS,
                "CredentialsRefused",
                format!(
                    "CloudStack refuses the keys in Secret {secret}: put those of an enabled user into its fields api-key and secret-key"
                ),
            ),
            Class::Permission => Self::new(
                code::PERMISSION,
                "NotPermitted",
                says(format!("check the role of the user whose keys are in Secret {secret}")),
            ),
            Class::Limit => Self::new(
                code::QUOTA,
                "QuotaExceeded",
                says("raise the limit or delete what is not used".to_owned()),
            ),
            Class::Capacity => Self::new(
                code::CAPACITY,
                "NoCapacity",
                says("free capacity or choose another offering".to_owned()),
            ),
            Class::Network | Class::Unavailable | Class::RateLimited | Class::Protocol => Self::new(
                code::UNREACHABLE,
                "CloudUnreachable",
                says(format!("check api-url of Secret {secret} and the management server behind it")),
            ),
            Class::Parameter => Self::new(code::REFUSED, "Refused", error.to_string()),
            Class::Answer => Self::new(code::AMBIGUOUS, "Ambiguous", error.to_string()),
            Class::InUse | Class::Conflict | Class::Internal | Class::Pending => {
                Self::new(code::FAILED, "CloudFailed", error.to_string())
            }
        }
    }

    /// As the end of a call that did not happen.
    pub(crate) fn outcome(self) -> Outcome {
        Outcome::failed(self.code, self.message)
    }

    /// With its code, for conditions.
    pub fn text(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    /// Makes a decision wait and requeue until somebody has fixed the cause.
    pub(crate) fn wait<C: Controller>(&self, decision: &mut Decision<C>) {
        decision.wait(Wait::on(self.reason, self.message.as_str()).code(self.code));
        decision.again_in(PATIENCE);
    }
}

impl From<ObserveError> for CloudError {
    fn from(error: ObserveError) -> Self {
        Self::new(capstan_controller::catalogue::OBSERVE, "ObserveFailed", error.to_string())
    }
}

/// CloudStack refuses to delete what is there: what it says, and what to do.
pub(crate) fn kept(error: &Error, secret: &Key) -> Outcome {
    let Some(refusal) = error.refusal().filter(|refusal| refusal.code == ErrorCode::Parameter) else {
        return failed(error, secret);
    };
    let mend = match refusal.text.contains("delete protection") {
        true => "turn deleteprotection off in CloudStack, or detach a volume that is to be kept",
        false => "remove in CloudStack what holds it",
    };
    Outcome::failed(code::DELETE, format!("{error}; {mend}"))
}

/// How a call to the cloud ended that gave no result.
pub(crate) fn failed(error: &Error, secret: &Key) -> Outcome {
    let cause = CloudError::of(error, secret);
    let lost = capstan_controller::Error { code: cause.code, message: cause.message };
    if error.is_ambiguous() { Outcome::Unknown(lost) } else { Outcome::Failed(lost) }
}
