//! What can go wrong.
//!
//! Decisions are made on the [`Class`]: the HTTP status alone does not say enough. A quota is 403 from Nova and Octavia, 409
//! from Neutron and 413 from Cinder; 409 is also a name that is taken, a thing in use, and a load balancer that is busy.

use std::fmt;
use std::time::Duration;

use crate::microversion::{Microversion, Wanted};
use crate::service::Service;

/// What a caller can make of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Keystone does not accept the credentials, or a service does not accept a new token.
    Credentials,
    /// The credentials are good and not good enough.
    Permission,
    /// The thing is not there, or somebody else's: most services do not say which.
    NotFound,
    /// The request names something that is not there or not right.
    Parameter,
    /// A quota of the project.
    Quota,
    /// The cloud is full: no address left, no host.
    Capacity,
    /// Another thing has that name, address or port.
    Exists,
    /// Used by something else, which must go first.
    InUse,
    /// Something is being done to the thing: the same request can succeed when that is over.
    Busy,
    /// The service does not have this feature, or not in the version that is asked for.
    Unsupported,
    /// Slow down.
    RateLimited,
    /// The service is down.
    Unavailable,
    /// The service does not know or does not say.
    Internal,
    /// No OpenStack API was understood behind the URL.
    Protocol,
    /// The service was not reached or did not answer.
    Network,
    /// The answer is not usable: several things where one was asked for, or a list that does not end.
    Answer,
}

/// How a service said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// What decisions are made on.
    pub class: Class,
    /// The service's own word: Neutron's exception (`NetworkInUse`), Nova's fault (`itemNotFound`), or empty.
    pub fault: String,
    /// For people. Bounded, without markup, control characters and secrets.
    pub text: String,
    /// What the service's log knows the request by.
    pub request_id: Option<String>,
    /// How long the service asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)?;
        if !self.fault.is_empty() {
            write!(f, " {}", self.fault)?;
        }
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " ({id})")?;
        }
        Ok(())
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// The service refused the request, or failed while it carried it out.
    #[error("{0}")]
    Refused(Refusal),
    /// Keystone refused the credentials a short while ago and is not asked again yet.
    #[error("{refusal}; the next attempt is in {} s", .again_in.as_secs())]
    RefusedBefore {
        /// What Keystone said.
        refusal: Refusal,
        /// When it is asked again. Other credentials need another client.
        again_in: Duration,
    },
    /// The token that was given has ended and there is nothing to get another with.
    #[error("the token has expired: give another one, or credentials")]
    TokenExpired,
    /// The catalog does not have the service where it was looked for.
    #[error(
        "the catalog has no {interface} endpoint of {service}{}: {}",
        .region.as_ref().map(|region| format!(" in region {region}")).unwrap_or_default(),
        if .offered.is_empty() { "the service is not in it".to_owned() } else { format!("it has {}", .offered.join(", ")) },
    )]
    NoEndpoint {
        /// The service.
        service: Service,
        /// The interface that was looked for.
        interface: &'static str,
        /// The region that was looked for.
        region: Option<String>,
        /// What the catalog has of the service.
        offered: Vec<String>,
    },
    /// The catalog has a URL that is none.
    #[error("the catalog's URL of {service} is not usable: {url:?}")]
    BadEndpoint {
        /// The service.
        service: Service,
        /// What the catalog says.
        url: String,
    },
    /// The service has no microversion that the call can be made with.
    #[error(
        "the call needs microversion {} or later; {}",
        .wanted.at_least,
        match .offered { Some((min, max)) => format!("the service has {min} to {max}"), None => "the service has none".to_owned() },
    )]
    Microversion {
        /// What the call needs.
        wanted: Wanted,
        /// What the service has.
        offered: Option<(Microversion, Microversion)>,
    },
    /// The request never left.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// The request left and the connection broke.
    #[error("no answer: {0}")]
    Lost(String),
    /// The request left and nothing came back in time.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Something answered that is no OpenStack API, or not the one we know.
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
    /// A list that does not end, or not within what is read of one.
    #[error("the list has too many pages: {0}")]
    Endless(&'static str),
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Read,
    /// Ends in the same state however often it is sent: removals and whole lists of tags.
    Idempotent,
    /// Something that a second request would do twice.
    Change,
}

/// A request that gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{service} {operation}: {kind}")]
pub struct Error {
    /// The service.
    pub service: Service,
    /// Method and path, without the query.
    pub operation: String,
    /// What went wrong.
    pub kind: Box<ErrorKind>,
    pub(crate) effect: Effect,
}

impl Error {
    pub(crate) fn new(service: Service, operation: String, effect: Effect, kind: ErrorKind) -> Self {
        Self { service, operation, kind: Box::new(kind), effect }
    }

    /// What the service said, where it said something.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.kind {
            ErrorKind::Refused(refusal) | ErrorKind::RefusedBefore { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        self.refusal().map(|refusal| refusal.status)
    }

    /// What the service's log knows the request by.
    pub fn request_id(&self) -> Option<&str> {
        self.refusal().and_then(|refusal| refusal.request_id.as_deref())
    }

    /// What a caller can make of it.
    pub fn class(&self) -> Class {
        match &*self.kind {
            ErrorKind::Refused(refusal) => refusal.class,
            ErrorKind::RefusedBefore { .. } | ErrorKind::TokenExpired => Class::Credentials,
            ErrorKind::NoEndpoint { .. } | ErrorKind::Microversion { .. } => Class::Unsupported,
            ErrorKind::Unreachable(_) | ErrorKind::Lost(_) | ErrorKind::TimedOut(_) => Class::Network,
            ErrorKind::Unreadable { status, .. } if *status >= 500 => Class::Unavailable,
            ErrorKind::Unreadable { .. } | ErrorKind::BadEndpoint { .. } => Class::Protocol,
            ErrorKind::Unwritable(_) => Class::Parameter,
            ErrorKind::Several(_) | ErrorKind::Endless(_) => Class::Answer,
        }
    }

    /// The thing is not there. Never true of a page that some proxy answers with.
    pub fn is_not_found(&self) -> bool {
        self.class() == Class::NotFound
    }

    /// Whether time alone may mend it: the same request can succeed later although nobody changed anything.
    ///
    /// Of a request that changes something, see [`Self::is_ambiguous`] before it is sent again.
    pub fn is_retryable(&self) -> bool {
        match self.class() {
            Class::Busy | Class::RateLimited | Class::Unavailable | Class::Network | Class::Internal => true,
            Class::Credentials => matches!(&*self.kind, ErrorKind::RefusedBefore { .. }),
            _ => matches!(&*self.kind, ErrorKind::Endless(_)),
        }
    }

    /// Whether the request may have had an effect although it gave no result. Look before anything else.
    pub fn is_ambiguous(&self) -> bool {
        if self.effect == Effect::Read {
            return false;
        }
        match &*self.kind {
            // 500 may come from half way. 503 comes from whoever stands in front, before or after the service read it.
            ErrorKind::Refused(refusal) => refusal.status >= 500 && refusal.class != Class::Unsupported,
            ErrorKind::Lost(_) | ErrorKind::TimedOut(_) => true,
            ErrorKind::Unreadable { status, .. } => !matches!(status, 300..=499),
            _ => false,
        }
    }

    /// Whether this client may send the request again by itself: the cause may pass within seconds, and a second request
    /// does no harm. A busy thing takes longer, and the caller knows better what to do meanwhile.
    pub(crate) fn is_repeatable(&self) -> bool {
        let passes = matches!(
            self.class(),
            Class::RateLimited | Class::Unavailable | Class::Network | Class::Internal
        );
        passes && (self.effect != Effect::Change || !self.is_ambiguous())
    }
}
