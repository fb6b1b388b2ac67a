//! The messages of the calls, by field number, and the names of the calls.

use crate::answer::{self, Alarm, AlarmKind};

pub mod path {
    pub const MEMBER_LIST: &str = "/etcdserverpb.Cluster/MemberList";
    pub const MEMBER_REMOVE: &str = "/etcdserverpb.Cluster/MemberRemove";
    pub const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
    pub const MOVE_LEADER: &str = "/etcdserverpb.Maintenance/MoveLeader";
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Header {
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}

impl From<answer::Header> for Header {
    fn from(header: answer::Header) -> Self {
        let answer::Header { cluster_id, member_id, raft_term } = header;
        Self { cluster_id, member_id, raft_term }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Member {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

impl From<Member> for answer::Member {
    fn from(member: Member) -> Self {
        let Member { id, name, peer_urls, client_urls, is_learner } = member;
        Self { id, name, peer_urls, client_urls, is_learner }
    }
}

impl From<answer::Member> for Member {
    fn from(member: answer::Member) -> Self {
        let answer::Member { id, name, peer_urls, client_urls, is_learner } = member;
        Self { id, name, peer_urls, client_urls, is_learner }
    }
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MemberListRequest {
    /// Requires a quorum.
    #[prost(bool, tag = "1")]
    pub linearizable: bool,
}

/// The response of both member calls.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MembersResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MemberRemoveRequest {
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

impl From<StatusResponse> for answer::Status {
    fn from(response: StatusResponse) -> Self {
        let header = response.header.unwrap_or_default();
        Self {
            member_id: header.member_id,
            cluster_id: header.cluster_id,
            leader: response.leader,
            version: response.version,
            db_size: response.db_size,
            raft_index: response.raft_index,
            raft_term: response.raft_term,
            raft_applied_index: response.raft_applied_index,
            is_learner: response.is_learner,
            errors: response.errors,
        }
    }
}

impl From<answer::Status> for StatusResponse {
    fn from(status: answer::Status) -> Self {
        Self {
            header: Some(Header {
                cluster_id: status.cluster_id,
                member_id: status.member_id,
                raft_term: status.raft_term,
            }),
            version: status.version,
            db_size: status.db_size,
            leader: status.leader,
            raft_index: status.raft_index,
            raft_term: status.raft_term,
            raft_applied_index: status.raft_applied_index,
            errors: status.errors,
            is_learner: status.is_learner,
        }
    }
}

/// The action that lists alarms.
pub const ALARM_GET: i32 = 0;

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct AlarmRequest {
    #[prost(int32, tag = "1")]
    pub action: i32,
    /// 0 for all members.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// 0 for all kinds.
    #[prost(int32, tag = "3")]
    pub kind: i32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct AlarmMember {
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    #[prost(int32, tag = "2")]
    pub kind: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AlarmResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<AlarmMember>,
}

impl From<AlarmMember> for Alarm {
    fn from(alarm: AlarmMember) -> Self {
        let kind = match alarm.kind {
            1 => AlarmKind::NoSpace,
            2 => AlarmKind::Corrupt,
            other => AlarmKind::Other(other),
        };
        Self { member_id: alarm.member_id, kind }
    }
}

impl From<Alarm> for AlarmMember {
    fn from(alarm: Alarm) -> Self {
        let kind = match alarm.kind {
            AlarmKind::NoSpace => 1,
            AlarmKind::Corrupt => 2,
            AlarmKind::Other(other) => other,
        };
        Self { member_id: alarm.member_id, kind }
    }
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MoveLeaderRequest {
    #[prost(uint64, tag = "1")]
    pub target: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MoveLeaderResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
}
