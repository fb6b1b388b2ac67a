//! What goes wrong, and what etcd says when it refuses.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::Duration;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// TLS was not agreed upon.
    #[error("TLS with etcd failed")]
    Tls(#[source] io::Error),
    /// The member cannot be spoken to, or cannot answer now; asking later may help.
    #[error("etcd is unavailable: {0}")]
    Unavailable(String),
    /// No answer came in time.
    #[error("{call}: no answer within {after:?}")]
    DeadlineExceeded {
        /// The question.
        call: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The answer is not one of etcd's.
    #[error("{call}: {what}")]
    Malformed {
        /// The question.
        call: &'static str,
        /// What is wrong with the answer.
        what: String,
    },
    /// No member has that id.
    #[error("etcd has no such member")]
    MemberNotFound,
    /// The change would leave too few members that are connected.
    #[error("the etcd cluster is unhealthy")]
    UnhealthyCluster,
    /// The change would leave too few members that have started.
    #[error("too few members of the etcd cluster have started")]
    NotEnoughStarted,
    /// The cluster has no leader.
    #[error("the etcd cluster has no leader")]
    NoLeader,
    /// The member that was asked does not lead.
    #[error("the etcd member does not lead")]
    NotLeader,
    /// The member that should lead next cannot.
    #[error("the etcd member cannot become leader")]
    BadLeaderTransferee,
    /// A learner does not answer this.
    #[error("the etcd member is a learner")]
    Learner,
    /// Anything else that etcd said.
    #[error("etcd answered {code}: {message}")]
    Grpc {
        /// The code of gRPC.
        code: Code,
        /// What etcd said.
        message: String,
    },
}

/// What a member says instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code of gRPC.
    pub code: Code,
    /// The text, which clients compare.
    pub message: Cow<'static, str>,
}

const fn etcd(code: Code, message: &'static str) -> Refusal {
    Refusal { code, message: Cow::Borrowed(message) }
}

impl Refusal {
    /// No member has that id.
    pub const MEMBER_NOT_FOUND: Self = etcd(Code::NOT_FOUND, "etcdserver: member not found");
    /// The change would leave too few members that are connected.
    pub const UNHEALTHY_CLUSTER: Self = etcd(Code::UNAVAILABLE, "etcdserver: unhealthy cluster");
    /// The change would leave too few members that have started.
    pub const NOT_ENOUGH_STARTED: Self = etcd(
        Code::FAILED_PRECONDITION,
        "etcdserver: re-configuration failed due to not enough started members",
    );
    /// The cluster has no leader.
    pub const NO_LEADER: Self = etcd(Code::UNAVAILABLE, "etcdserver: no leader");
    /// The member that was asked does not lead.
    pub const NOT_LEADER: Self = etcd(Code::FAILED_PRECONDITION, "etcdserver: not leader");
    /// The member that should lead next cannot.
    pub const BAD_LEADER_TRANSFEREE: Self =
        etcd(Code::FAILED_PRECONDITION, "etcdserver: bad leader transferee");
    /// A learner does not answer this.
    pub const LEARNER: Self = etcd(Code::FAILED_PRECONDITION, "etcdserver: rpc not supported for learner");
    /// Consensus was not reached in time.
    pub const TIMED_OUT: Self = etcd(Code::UNAVAILABLE, "etcdserver: request timed out");
    /// The member is shutting down.
    pub const STOPPED: Self = etcd(Code::UNAVAILABLE, "etcdserver: server stopped");

    /// A refusal of the caller's own words.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<Refusal> for Error {
    /// etcd's clients recognise its errors by their texts alone, and so do we.
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

/// A status code of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u32);

/// Names of the codes, in the order of their numbers.
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
    /// No error.
    pub const OK: Self = Self(0);
    /// No other code fits.
    pub const UNKNOWN: Self = Self(2);
    /// The question makes no sense.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// What was asked for does not exist.
    pub const NOT_FOUND: Self = Self(5);
    /// The asker may not.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// Something is used up, or a message is too large.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// Not in this state.
    pub const FAILED_PRECONDITION: Self = Self(9);
    /// Nobody answers this question here.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// A rule of the protocol was broken.
    pub const INTERNAL: Self = Self(13);
    /// Not now.
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
