//! Errors of the client and of etcd.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TLS handshake failed.
    #[error("TLS with etcd failed")]
    Tls(#[source] io::Error),
    /// The member is unreachable or unavailable; a retry may help.
    #[error("etcd is unavailable: {0}")]
    Unavailable(String),
    /// The request timed out.
    #[error("{call}: no answer within {after:?}")]
    DeadlineExceeded { call: &'static str, after: Duration },
    /// The response is invalid.
    #[error("{call}: {what}")]
    Malformed { call: &'static str, what: String },
    /// No member has that id.
    #[error("etcd has no such member")]
    MemberNotFound,
    /// The change would leave too few connected members.
    #[error("the etcd cluster is unhealthy")]
    UnhealthyCluster,
    /// The change would leave too few started members.
    #[error("too few members of the etcd cluster have started")]
    NotEnoughStarted,
    /// The cluster has no leader.
    #[error("the etcd cluster has no leader")]
    NoLeader,
    /// The requested member is not the leader.
    #[error("the etcd member is not the leader")]
    NotLeader,
    /// The target of the leadership move cannot lead.
    #[error("the etcd member cannot become leader")]
    BadLeaderTransferee,
    /// A learner does not support the request.
    #[error("the etcd member is a learner")]
    Learner,
    /// Any other error of etcd.
    #[error("etcd answered {code}: {message}")]
    Grpc {
        /// gRPC code.
        code: Code,
        message: String,
    },
}

/// An error response of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// gRPC code.
    pub code: Code,
    /// The text, which clients compare.
    pub message: Cow<'static, str>,
}

const fn etcd(code: Code, message: &'static str) -> Refusal {
    Refusal { code, message: Cow::Borrowed(message) }
}

impl Refusal {
    pub const MEMBER_NOT_FOUND: Self = etcd(Code::NOT_FOUND, "etcdserver: member not found");
    /// The change would leave too few connected members.
    pub const UNHEALTHY_CLUSTER: Self = etcd(Code::UNAVAILABLE, "etcdserver: unhealthy cluster");
    /// The change would leave too few started members.
    pub const NOT_ENOUGH_STARTED: Self = etcd(
        Code::FAILED_PRECONDITION,
        "etcdserver: re-configuration failed due to not enough started members",
    );
    pub const NO_LEADER: Self = etcd(Code::UNAVAILABLE, "etcdserver: no leader");
    /// The requested member is not the leader.
    pub const NOT_LEADER: Self = etcd(Code::FAILED_PRECONDITION, "etcdserver: not leader");
    /// The target of the leadership move cannot lead.
    pub const BAD_LEADER_TRANSFEREE: Self =
        etcd(Code::FAILED_PRECONDITION, "etcdserver: bad leader transferee");
    /// A learner does not support the request.
    pub const LEARNER: Self = etcd(Code::FAILED_PRECONDITION, "etcdserver: rpc not supported for learner");
    /// The request timed out without consensus.
    pub const TIMED_OUT: Self = etcd(Code::UNAVAILABLE, "etcdserver: request timed out");
    /// The member is stopping.
    pub const STOPPED: Self = etcd(Code::UNAVAILABLE, "etcdserver: server stopped");

    /// An error with a custom message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<Refusal> for Error {
    /// etcd's clients identify errors by their texts, and so does this one.
    fn from(refusal: Refusal) -> Self {
        let is = |known: &Refusal| known.message == refusal.message;
        if is(&Refusal::MEMBER_NOT_FOUND) {
            Error::MemberNotFound
        } else if is(&Refusal::UNHEALTHY_CLUSTER) {
            Error::UnhealthyCluster
        } else if is(&Refusal::NOT_ENOUGH_STARTED) {
            Error::NotEnoughStarted
        } else if is(&Refusal::NO_LEADER) {
            Error::NoLeader
        } else if is(&Refusal::NOT_LEADER) {
            Error::NotLeader
        } else if is(&Refusal::BAD_LEADER_TRANSFEREE) {
            Error::BadLeaderTransferee
        } else if is(&Refusal::LEARNER) {
            Error::Learner
        } else if refusal.code == Code::UNAVAILABLE {
            Error::Unavailable(refusal.message.into_owned())
        } else {
            Error::Grpc { code: refusal.code, message: refusal.message.into_owned() }
        }
    }
}

/// A gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u32);

/// Names of the codes, by number.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl Code {
    pub const OK: Self = Self(0);
    pub const UNKNOWN: Self = Self(2);
    pub const INVALID_ARGUMENT: Self = Self(3);
    pub const NOT_FOUND: Self = Self(5);
    pub const PERMISSION_DENIED: Self = Self(7);
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    pub const FAILED_PRECONDITION: Self = Self(9);
    pub const UNIMPLEMENTED: Self = Self(12);
    pub const INTERNAL: Self = Self(13);
    pub const UNAVAILABLE: Self = Self(14);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|number| NAMES.get(number)) {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}
