//! What a machine is given to boot with.

use std::fmt;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::GzBuilder;
use serde::{Serialize, Serializer};

/// User data as it travels: base64, perhaps over gzip. It holds the secrets of whoever boots with it, so it shows itself
/// to nobody but the server.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(String);

/// User data that no server takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the user data is {length} characters long when encoded; at most {most} are allowed")]
pub struct UserDataError {
    /// Characters in base64.
    pub length: usize,
    /// Characters allowed.
    pub most: usize,
}

impl UserData {
    /// Default of `vm.userdata.max.length`, in characters of base64.
    pub const DEFAULT_LIMIT: usize = 32_768;
    /// The largest value that servers accept for that setting.
    pub const HARD_LIMIT: usize = 1_048_576;

    /// As it is: for Ignition, which understands no gzip.
    pub fn plain(data: &[u8]) -> Result<Self, UserDataError> {
        Self::bounded(STANDARD.encode(data))
    }

    /// Compressed. The same data gives the same text: there is no time in it.
    pub fn gzip(data: &[u8]) -> Result<Self, UserDataError> {
        let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        // A vector takes everything.
        let packed = encoder.write_all(data).and_then(|()| encoder.finish()).unwrap_or_default();
        Self::bounded(STANDARD.encode(packed))
    }

    fn bounded(text: String) -> Result<Self, UserDataError> {
        match text.len() > Self::HARD_LIMIT {
            true => Err(UserDataError { length: text.len(), most: Self::HARD_LIMIT }),
            false => Ok(Self(text)),
        }
    }

    /// Characters in base64, which is what limits count.
    pub fn encoded_len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserData([{} characters])", self.0.len())
    }
}

impl Serialize for UserData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
