//! Why the cloud cannot be asked, or says no: with the code, the Secret or field to look at, and the mend.

use std::time::Duration;

use capstan_cloudstack_client::{Class, Error};
use capstan_controller::{Code, Controller, Decision, ObserveError, Outcome, Wait};
use capstan_object::Key;

use crate::code;

/// How soon something that users or operators mend is looked at again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Something stands in the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// Its code.
    pub code: Code,
    /// One word for conditions.
    pub reason: &'static str,
    /// What, where, and the mend. Never a secret.
    pub message: String,
}

impl Trouble {
    pub(crate) fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into() }
    }

    /// What an error of the cloud means, asked with the keys of a Secret.
    pub(crate) fn of(error: &Error, secret: &Key) -> Self {
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
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    /// Has a decision wait for whoever can mend it.
    pub(crate) fn wait<C: Controller>(&self, decision: &mut Decision<C>) {
        decision.wait(Wait::on(self.reason, self.message.as_str()).code(self.code));
        decision.again_in(PATIENCE);
    }
}

impl From<ObserveError> for Trouble {
    fn from(error: ObserveError) -> Self {
        Self::new(capstan_controller::catalogue::OBSERVE, "ObserveFailed", error.to_string())
    }
}

/// How a call to the cloud ended that gave no result.
pub(crate) fn failed(error: &Error, secret: &Key) -> Outcome {
    let trouble = Trouble::of(error, secret);
    let lost = capstan_controller::Error { code: trouble.code, message: trouble.message };
    if error.is_ambiguous() { Outcome::Unknown(lost) } else { Outcome::Failed(lost) }
}
