//! Which keys the files of a store are sealed with.

use std::collections::BTreeMap;

use capstan_store::disk::Disk;
use capstan_store::{Cipher as _, OpenError, survey};

use crate::Encryption;

/// Values in the files of a store, history included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Values by the key that they are sealed with.
    pub by_key: BTreeMap<String, u64>,
    /// Values that are not sealed although the configuration covers them.
    pub plain: u64,
    /// Values that the configuration does not cover and that are not sealed.
    pub uncovered: u64,
    /// Values that are sealed with another key than the one in use.
    pub outdated: u64,
}

impl Usage {
    /// Whether everything that is to be encrypted is encrypted with the key in use.
    pub fn is_current(&self) -> bool {
        self.plain == 0 && self.outdated == 0
    }

    /// Whether anything is encrypted.
    pub fn is_sealed(&self) -> bool {
        !self.by_key.is_empty()
    }
}

/// Counts the values in the files of a store by key. Decrypts nothing, and works while a server uses them.
pub fn usage(disk: &dyn Disk, encryption: Option<&Encryption>) -> Result<Usage, OpenError> {
    let mut usage = Usage::default();
    survey(disk, &mut |value| match value.sealed {
        Some(sealed) => {
            let key = Encryption::key_of(sealed).unwrap_or_else(|| "an unknown key".to_owned());
            *usage.by_key.entry(key).or_default() += 1;
            usage.outdated += u64::from(encryption.is_none_or(|encryption| !encryption.is_current(sealed)));
        }
        None if encryption.is_some_and(|encryption| encryption.covers(value.bucket)) => usage.plain += 1,
        None => usage.uncovered += 1,
    })?;
    Ok(usage)
}
