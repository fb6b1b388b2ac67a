//! Reviews of identity and permissions. They are answered in the response and never stored.

mod access;
mod identity;
#[cfg(test)]
mod tests;

pub use access::{
    local_subject_access_review, self_subject_access_review, self_subject_rules_review, subject_access_review,
};
pub use identity::{self_subject_review, token_review};
use serde_json::{Map, Value};

use super::User;

/// `UserInfo` of a user. Empty fields are omitted, as in Go.
pub fn user_info(user: &User) -> Value {
    let mut info = Map::new();
    for (field, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            info.insert(field.into(), text.as_str().into());
        }
    }
    if !user.groups.is_empty() {
        info.insert("groups".into(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        let extra = user.extra.iter().map(|(key, values)| (key.clone(), values.clone().into()));
        info.insert("extra".into(), Value::Object(extra.collect()));
    }
    Value::Object(info)
}
