//! Who calls: by signature or by session.

use jiff::{SignedDuration, Timestamp};

use super::Query;
use crate::call::Caller;
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::ApiError;
use crate::model::identity::{RoleType, User};
use crate::model::table::Key;

/// How far ahead a request may expire where timestamps are enforced.
const FURTHEST: SignedDuration = SignedDuration::from_mins(15);

/// Somebody whom we know.
pub(super) struct Identified {
    pub(super) caller: Caller,
}

impl Cloud {
    /// Says who calls. With a key, a command that does not exist is nobody's; with a session, somebody's.
    pub(super) fn identify(
        &mut self,
        query: &Query,
        command: Option<&Command>,
    ) -> Result<Identified, ApiError> {
        if query.params.get("apikey").is_none()
            && let Some(session) = &query.session
        {
            let parameter = query.params.get("sessionkey");
            let user =
                self.session_user(session, query.session_key.as_deref(), parameter).ok_or_else(|| {
                    ApiError {
                        text: "unable to verify user credentials".to_owned(),
                        ..ApiError::unauthorized()
                    }
                })?;
            return self.caller(user);
        }
        command.ok_or_else(ApiError::unauthorized)?;
        self.check_expiry(query)?;
        let key = query.params.get("apikey").ok_or_else(ApiError::unauthorized)?;
        let user = self
            .users
            .iter()
            .find(|user| user.keys.as_ref().is_some_and(|keys| keys.api == key && !keys.expired))
            .ok_or_else(ApiError::unauthorized)?;
        let signed = user.keys.as_ref().is_some_and(|keys| query.params.is_signed_with(&keys.secret));
        if signed { self.caller(user.key) } else { Err(ApiError::unauthorized()) }
    }

    fn check_expiry(&self, query: &Query) -> Result<(), ApiError> {
        let enforced = self.settings.enforce_post_and_timestamps;
        if query.params.get("signatureversion") != Some("3") {
            return if enforced { Err(ApiError::unauthorized()) } else { Ok(()) };
        }
        let expires = query.params.get("expires").and_then(read_time).ok_or_else(ApiError::unauthorized)?;
        let too_late = enforced && expires.duration_since(self.now) > FURTHEST;
        if expires < self.now || too_late { Err(ApiError::unauthorized()) } else { Ok(()) }
    }

    /// The administrator.
    pub(super) fn root(&self) -> Result<Identified, ApiError> {
        let mut users = self.users.iter();
        let user = users.find(|user| self.accounts[user.account].role == RoleType::RootAdmin);
        let user = user.ok_or_else(ApiError::unauthorized)?;
        self.caller(user.key)
    }

    fn caller(&self, user: Key<User>) -> Result<Identified, ApiError> {
        let row = &self.users[user];
        let account = &self.accounts[row.account];
        if row.removed || account.removed || !account.enabled {
            return Err(ApiError::unauthorized());
        }
        Ok(Identified { caller: Caller { user, account: row.account, role: account.role } })
    }
}

/// `2026-01-01T00:15:00Z`, or with any offset.
fn read_time(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix('Z').map_or_else(|| text.to_owned(), |text| format!("{text}+0000"));
    Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", &text).or_else(|_| text.parse()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_zone_are_understood_and_words_are_not() {
        let noon = Timestamp::from_second(1_767_268_800).ok();
        for text in ["2026-01-01T12:00:00Z", "2026-01-01T12:00:00+0000", "2026-01-01T14:00:00+0200"] {
            assert_eq!(read_time(text), noon, "{text}");
        }
        assert_eq!(read_time("tomorrow"), None);
    }
}
