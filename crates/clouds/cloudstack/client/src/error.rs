//! What can go wrong, in CloudStack's numbers.
//!
//! Decisions are made on the error code, which is also the HTTP status: the same condition carries different
//! `cserrorcode`s from different commands, and the text is for people. What the numbers do not say must be looked up:
//! 431 is an unknown id and a wrong parameter alike, 530 may mean anything.

use std::fmt;
use std::time::Duration;

use crate::command::Effect;
use crate::id::JobId;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $class:ident, $words:literal;)*) => {
        /// The error code of a command or a job.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
            /// A number that is not in the table.
            Other(u16),
        }

        impl Code {
            /// All codes with a name.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code behind a number.
            pub fn from_number(number: u16) -> Self {
                match number {
                    $($number => Self::$name,)*
                    other => Self::Other(other),
                }
            }

            /// The number on the wire.
            pub fn number(self) -> u16 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Other(number) => number,
                }
            }

            /// What a caller can make of it.
            pub fn class(self) -> Class {
                match self {
                    $(Self::$name => Class::$class,)*
                    Self::Other(_) => Class::Internal,
                }
            }

            fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                    Self::Other(_) => "failed",
                }
            }
        }
    };
}

codes! {
    /// A changing command was sent by GET to a server that forbids it.
    BadRequest = 400, Protocol, "bad request";
    /// Keys, signature or expiry are wrong, the account is disabled, or a command is unknown to the server: it does not
    /// say which.
    Unauthorized = 401, Credentials, "credentials refused";
    /// No API behind this URL, or a form over the server's limit.
    NotFound = 404, Protocol, "not found";
    /// A method that the API does not have.
    MethodNotAllowed = 405, Protocol, "method not allowed";
    /// The query is longer than the server reads.
    UriTooLong = 414, Protocol, "query too long";
    /// The account sends more requests than it may.
    TooManyRequests = 429, RateLimited, "too many requests";
    /// The request makes no sense.
    Malformed = 430, Parameter, "malformed request";
    /// A parameter is missing or wrong, the thing it names does not exist, or its state forbids the command.
    Parameter = 431, Parameter, "parameter refused";
    /// The role may not use this command.
    Unsupported = 432, Permission, "command not available to this role";
    /// The server takes no jobs.
    ServiceUnavailable = 503, Unavailable, "service unavailable";
    /// Anything; the cause is hidden from ordinary users.
    Internal = 530, Internal, "internal error";
    /// The thing belongs to somebody else.
    Account = 531, Permission, "not permitted";
    /// The account has as many as it may have.
    AccountLimit = 532, Limit, "account limit reached";
    /// The cloud has no room.
    InsufficientCapacity = 533, Capacity, "insufficient capacity";
    /// Something that is needed is out of order.
    ResourceUnavailable = 534, Unavailable, "resource unavailable";
    /// Account, domain or project has as many as it may have.
    ResourceAllocation = 535, Limit, "resource limit reached";
    /// Something else uses the thing.
    InUse = 536, InUse, "in use";
    /// Another rule has the same ports.
    RuleConflict = 537, Conflict, "rule conflict";
}

/// What a caller can make of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The keys are unknown, or their user is disabled.
    Credentials,
    /// The keys are good and not good enough.
    Permission,
    /// The request names something that is not there or not right.
    Parameter,
    /// A quota.
    Limit,
    /// The cloud is full.
    Capacity,
    /// Something is down that should come back.
    Unavailable,
    /// Slow down.
    RateLimited,
    /// Used by something else.
    InUse,
    /// Collides with something else.
    Conflict,
    /// The server does not know or does not say.
    Internal,
    /// No CloudStack API was understood behind the URL.
    Protocol,
    /// The server was not reached or did not answer.
    Network,
    /// The job is still running.
    Pending,
    /// The answer is not usable: several things where one was asked for, or a list that would not hold still.
    Answer,
}

/// How CloudStack said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code that decisions are made on.
    pub code: Code,
    /// The class of the Java exception: not reliable enough to decide on, useful to search for.
    pub cs_code: Option<u32>,
    /// For people. Bounded, without control characters and keys.
    pub text: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.code.words(), self.code.number())?;
        if let Some(cs_code) = self.cs_code {
            write!(f, "/{cs_code}")?;
        }
        f.write_str(")")?;
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        Ok(())
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// The server refused the command, or failed while it carried it out.
    #[error("{0}")]
    Refused(Refusal),
    /// The job ended in failure.
    #[error("the job failed: {0}")]
    JobFailed(Refusal),
    /// The job had not ended when patience did.
    #[error("the job is still running after {} s", .0.as_secs())]
    JobPending(Duration),
    /// The request never left.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The request left and the connection broke.
    #[error("no answer: {0}")]
    Lost(String),
    /// The request left and nothing came back in time.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Something answered that is no CloudStack API, or not the one we know.
    #[error("HTTP {status} with an answer that cannot be read: {why}")]
    Unreadable {
        /// HTTP status.
        status: u16,
        /// What was expected and what was there.
        why: String,
    },
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
    /// Several things answer to a name that should be one thing's.
    #[error("{0} entries match where one was expected")]
    Several(usize),
    /// A list changed again and again while its pages were read.
    #[error("the list kept changing while it was read")]
    Unsettled,
}

/// A command that gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{command}: {kind}")]
pub struct Error {
    /// The command.
    pub command: &'static str,
    /// What went wrong.
    pub kind: Box<ErrorKind>,
    /// The job, if there is one.
    pub job: Option<JobId>,
    pub(crate) effect: Effect,
}

impl Error {
    pub(crate) fn new(command: &'static str, effect: Effect, kind: ErrorKind) -> Self {
        Self { command, kind: Box::new(kind), job: None, effect }
    }

    pub(crate) fn of_job(self, job: &JobId) -> Self {
        Self { job: Some(job.clone()), ..self }
    }

    /// The error code, where CloudStack gave one.
    pub fn code(&self) -> Option<Code> {
        self.refusal().map(|refusal| refusal.code)
    }

    /// What CloudStack said, where it said something.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.kind {
            ErrorKind::Refused(refusal) | ErrorKind::JobFailed(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the command names something by this id that does not exist any more. The code of that is also the code of
    /// other refusals, such as those of delete protection and of a VPC with tiers, so that the text decides.
    pub fn is_unknown(&self, id: &str) -> bool {
        let refusal = self.refusal().filter(|refusal| refusal.code == Code::Parameter);
        refusal.is_some_and(|refusal| {
            refusal.text.contains(&format!("Invalid parameter id value={id} "))
                || refusal.text.starts_with("Unable to find UUID for id [")
        })
    }

    /// What a caller can make of it.
    pub fn class(&self) -> Class {
        match &*self.kind {
            ErrorKind::Refused(refusal) | ErrorKind::JobFailed(refusal) => refusal.code.class(),
            ErrorKind::JobPending(_) => Class::Pending,
            ErrorKind::Unreachable(_) | ErrorKind::Lost(_) | ErrorKind::TimedOut(_) => Class::Network,
            ErrorKind::Unreadable { status, .. } if *status >= 500 => Class::Unavailable,
            ErrorKind::Unreadable { .. } => Class::Protocol,
            ErrorKind::Unwritable(_) => Class::Parameter,
            ErrorKind::Several(_) | ErrorKind::Unsettled => Class::Answer,
        }
    }

    /// Whether time alone may mend it: the same request can succeed later although nobody changed anything.
    ///
    /// Of a command that changes something, see [`Self::is_ambiguous`] before sending it again.
    pub fn is_retryable(&self) -> bool {
        match &*self.kind {
            ErrorKind::Refused(refusal) => {
                matches!(refusal.code.class(), Class::RateLimited | Class::Unavailable)
            }
            // A job that failed is over: another one is the caller's decision.
            ErrorKind::JobFailed(_) => false,
            ErrorKind::JobPending(_) | ErrorKind::Unsettled => true,
            ErrorKind::Unreachable(_) | ErrorKind::Lost(_) | ErrorKind::TimedOut(_) => true,
            // A gateway in front of the server.
            ErrorKind::Unreadable { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            ErrorKind::Unwritable(_) | ErrorKind::Several(_) => false,
        }
    }

    /// Whether the command may have had an effect although it gave no result. Look before anything else.
    pub fn is_ambiguous(&self) -> bool {
        if self.effect == Effect::Read {
            // Only the end of a job is read that way, and a job is an effect.
            return self.job.is_some() && !matches!(&*self.kind, ErrorKind::JobFailed(_));
        }
        match &*self.kind {
            // A refusal that hides its cause may come from half way: a failed deployment leaves a machine behind.
            ErrorKind::Refused(refusal) => {
                refusal.code == Code::ResourceUnavailable
                    || matches!(refusal.code.class(), Class::Internal | Class::Capacity)
            }
            ErrorKind::JobFailed(_) => false,
            ErrorKind::Lost(_) | ErrorKind::TimedOut(_) | ErrorKind::JobPending(_) => true,
            // Refused on the way in; anything else may have come from behind.
            ErrorKind::Unreadable { status, .. } => !matches!(status, 300..=499),
            ErrorKind::Unreachable(_)
            | ErrorKind::Unwritable(_)
            | ErrorKind::Several(_)
            | ErrorKind::Unsettled => false,
        }
    }
}
