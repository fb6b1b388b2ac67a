//! Responses of members.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub cluster_id: u64,
    /// Id of the responding member.
    pub member_id: u64,
    pub raft_term: u64,
}

/// A response and its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer<T> {
    pub header: Header,
    pub content: T,
}

/// The status of one member, as reported by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Id of the responding member.
    pub member_id: u64,
    pub cluster_id: u64,
    /// Id of the leader as this member knows it; 0 if unknown.
    pub leader: u64,
    /// Version, such as `3.6.5`.
    pub version: String,
    /// Database size in bytes.
    pub db_size: i64,
    /// Index of the last committed raft entry.
    pub raft_index: u64,
    pub raft_term: u64,
    /// Index of the last applied raft entry.
    pub raft_applied_index: u64,
    pub is_learner: bool,
    /// Errors: alarms and a missing leader.
    pub errors: Vec<String>,
}

/// A member in the member list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub id: u64,
    /// Empty until it has started.
    pub name: String,
    pub peer_urls: Vec<String>,
    /// Empty until it has started.
    pub client_urls: Vec<String>,
    pub is_learner: bool,
}

/// An active alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    pub member_id: u64,
    pub kind: AlarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmKind {
    /// The database reached its quota: no more writes.
    NoSpace,
    /// The data of the member differs from that of others.
    Corrupt,
    /// A kind that this version does not know.
    Other(i32),
}
