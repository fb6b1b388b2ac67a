//! What members say.

/// Who answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Id of the cluster.
    pub cluster_id: u64,
    /// Id of the member that answered.
    pub member_id: u64,
    /// Term of the election that made the present leader.
    pub raft_term: u64,
}

/// An answer and who gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer<T> {
    /// Who gave it.
    pub header: Header,
    /// What was asked for.
    pub content: T,
}

/// One member as it sees itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Id of the member that answered.
    pub member_id: u64,
    /// Id of its cluster.
    pub cluster_id: u64,
    /// Id of the member that it takes for the leader; 0 when it knows none.
    pub leader: u64,
    /// Its release, such as `3.6.5`.
    pub version: String,
    /// Bytes that its database occupies.
    pub db_size: i64,
    /// Index of the last entry that it knows to be committed.
    pub raft_index: u64,
    /// Term of the election that made the present leader.
    pub raft_term: u64,
    /// Index of the last entry that it applied.
    pub raft_applied_index: u64,
    /// Whether it has no vote yet.
    pub is_learner: bool,
    /// What is wrong with it: alarms and a missing leader.
    pub errors: Vec<String>,
}

/// A member as the cluster sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// Its name; empty until it has started.
    pub name: String,
    /// Where other members reach it.
    pub peer_urls: Vec<String>,
    /// Where clients reach it; empty until it has started.
    pub client_urls: Vec<String>,
    /// Whether it has no vote yet.
    pub is_learner: bool,
}

/// An alarm that was raised and not disarmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Id of the member that it is about.
    pub member_id: u64,
    /// What it says.
    pub kind: AlarmKind,
}

/// What an alarm says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmKind {
    /// The database reached its quota: no more writes.
    NoSpace,
    /// The data of the member differs from that of others.
    Corrupt,
    /// A kind that this release does not know.
    Other(i32),
}
