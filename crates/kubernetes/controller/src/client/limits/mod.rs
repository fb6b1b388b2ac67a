//! What the answers of a server may cost: whoever answers at the address of a cluster may be hostile.
//!
//! ```text
//! pieces of a body ──▶ longest answer / event ──▶ decoded size ──▶ share of the server ──▶ budget of the process
//! ```
//!
//! Memory is charged before it is used and given back when the last reference to an answer goes.

mod budget;
mod weight;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use budget::{Budget, Share};
pub(crate) use budget::{Charge, Exhausted};
pub(crate) use weight::Weight;

use super::ApiError;
use crate::code::{Code, catalogue};
use crate::worker::off_worker;

const MIB: usize = 1024 * 1024;

/// Limits for the answers of one API server.
#[derive(Debug)]
pub struct Limits {
    /// Names the server in errors, such as `cluster default/demo`.
    server: String,
    /// The code of an exceeded limit.
    code: Code,
    sizes: Sizes,
    times: Option<Times>,
    /// What answers in flight may hold.
    answers: Option<Arc<Share>>,
    /// What caches of the server's objects may hold.
    cached: Option<Arc<Share>>,
}

/// How large things may be.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Bytes of one answer that is no watch.
    pub answer: usize,
    /// Bytes of one event of a watch.
    pub event: usize,
    /// Bytes that one answer or event may take once decoded.
    pub decoded: usize,
    /// Objects asked for at once.
    pub page: u32,
    /// Pages followed of one list.
    pub pages: usize,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// From the request to the last byte of an answer that is no watch.
    pub answer: Duration,
    /// From the first byte of a watch's event to its last.
    pub event: Duration,
    /// A watch; it is taken up again after that.
    pub watch: Duration,
}

/// The budgets that the answers of all workload clusters of a process share.
#[derive(Debug)]
pub(crate) struct WorkloadBudgets {
    answers: Arc<Budget>,
    cached: Arc<Budget>,
}

impl Default for WorkloadBudgets {
    fn default() -> Self {
        Self {
            answers: Budget::new(MIB, 256 * MIB, 112 * MIB),
            cached: Budget::new(8 * MIB, 1024 * MIB, 128 * MIB),
        }
    }
}

impl WorkloadBudgets {
    /// Limits for one workload cluster.
    pub fn limits(&self, cluster: &dyn fmt::Display) -> Limits {
        Limits {
            server: format!("cluster {cluster}"),
            code: catalogue::WORKLOAD_LIMIT,
            sizes: Sizes { answer: 16 * MIB, event: 4 * MIB, decoded: 64 * MIB, page: 200, pages: 1_000 },
            times: Some(Times {
                answer: Duration::from_secs(60),
                event: Duration::from_secs(60),
                watch: Duration::from_secs(600),
            }),
            answers: Some(self.answers.share()),
            cached: Some(self.cached.share()),
        }
    }
}

impl Limits {
    /// Limits for the server that the plane itself is kept on: it is trusted with memory, and its lists may be large.
    pub fn management() -> Self {
        Self {
            server: "the API server".to_owned(),
            code: catalogue::API_LIMIT,
            sizes: Sizes {
                answer: 512 * MIB,
                event: 32 * MIB,
                decoded: usize::MAX,
                page: 500,
                pages: 10_000,
            },
            times: Some(Times {
                answer: Duration::from_secs(300),
                event: Duration::from_secs(120),
                watch: Duration::from_secs(600),
            }),
            answers: None,
            cached: None,
        }
    }

    /// No limits: the server is in this process.
    pub fn in_process() -> Self {
        let sizes = Sizes {
            answer: usize::MAX,
            event: usize::MAX,
            decoded: usize::MAX,
            page: 500,
            pages: usize::MAX,
        };
        Self { sizes, times: None, ..Self::management() }
    }

    /// Limits of any sizes, with budgets; for servers that are neither trusted nor workload clusters.
    pub fn custom(
        server: &str,
        sizes: Sizes,
        times: Times,
        answers: Option<Arc<Share>>,
        cached: Option<Arc<Share>>,
    ) -> Self {
        let (server, code) = (server.to_owned(), catalogue::WORKLOAD_LIMIT);
        Self { server, code, sizes, times: Some(times), answers, cached }
    }

    /// Names the server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    pub(crate) fn times(&self) -> Option<&Times> {
        self.times.as_ref()
    }

    pub(crate) fn cached(&self) -> Option<&Arc<Share>> {
        self.cached.as_ref()
    }

    /// A charge on answers in flight, if they are counted.
    pub(crate) fn charge(&self) -> Option<Charge> {
        self.answers.as_ref().map(Charge::none)
    }

    pub(crate) fn exceeded(&self, limit: Limit) -> ApiError {
        ApiError::Limit(LimitExceeded { code: self.code, server: self.server.clone(), limit })
    }

    pub(crate) fn exhausted(&self, exhausted: Exhausted) -> ApiError {
        self.exceeded(match exhausted {
            Exhausted::Server(most) => Limit::Server(most),
            Exhausted::Process(pool) => Limit::Process(pool),
        })
    }

    /// Waits for an answer no longer than it may take.
    pub(crate) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let Some(times) = &self.times else { return answer.await };
        let answer = tokio::time::timeout(times.answer, answer);
        // A server that is not trusted with memory is not trusted with workers either.
        let answer = match self.answers {
            Some(_) => off_worker(answer).await,
            None => answer.await,
        };
        match answer {
            Ok(answer) => answer,
            Err(_) => Err(self.exceeded(Limit::AnswerTime(times.answer))),
        }
    }

    /// Charges what decoding a text may take to the bytes that were charged for it.
    pub(crate) fn weigh(&self, text: &[u8], charge: &mut Option<Charge>) -> Result<(), ApiError> {
        if self.sizes.decoded == usize::MAX {
            return Ok(());
        }
        let decoded = Weight::of_text(text);
        if decoded > self.sizes.decoded {
            return Err(self.exceeded(Limit::Decoded(self.sizes.decoded)));
        }
        match charge {
            Some(charge) => charge.grow(decoded).map_err(|exhausted| self.exhausted(exhausted)),
            None => Ok(()),
        }
    }
}

/// Bytes whose charge goes with them.
struct Held<T> {
    bytes: T,
    _charge: Charge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Ties a charge to bytes: it is given back with the last reference to them.
pub(crate) fn held<T>(bytes: T, charge: Option<Charge>) -> Bytes
where
    T: AsRef<[u8]> + Into<Bytes> + Send + 'static,
{
    match charge {
        Some(charge) => Bytes::from_owner(Held { bytes, _charge: charge }),
        None => bytes.into(),
    }
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The headers of an answer.
    Headers,
    /// Bytes of an answer.
    Answer(usize),
    /// Bytes of an event of a watch.
    Event(usize),
    /// Bytes that an answer takes once decoded.
    Decoded(usize),
    /// Pages of a list.
    Pages(usize),
    /// Bytes that the server's answers in flight hold together.
    Server(usize),
    /// Bytes that answers of all servers hold together.
    Process(usize),
    /// Bytes that cached objects of the server take.
    Cached(usize),
    /// Time until an answer is complete.
    AnswerTime(Duration),
    /// Time until an event of a watch is complete.
    EventTime(Duration),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: &usize| match bytes / MIB {
            0 => format!("{bytes} bytes"),
            mib => format!("{mib} MiB"),
        };
        match self {
            Self::Headers => f.write_str("the headers of an answer are too long"),
            Self::Answer(most) => write!(f, "an answer is longer than {}", mib(most)),
            Self::Event(most) => write!(f, "an event of a watch is longer than {}", mib(most)),
            Self::Decoded(most) => write!(f, "a decoded response exceeds {}", mib(most)),
            Self::Pages(most) => write!(f, "a list has more than {most} pages"),
            Self::Server(most) => write!(f, "its answers in flight hold more than {}", mib(most)),
            Self::Process(most) => {
                write!(f, "answers of all clusters in flight hold their {} already", mib(most))
            }
            Self::Cached(most) => write!(f, "its cached objects take more than {}", mib(most)),
            Self::AnswerTime(most) => write!(f, "an answer is not complete after {most:?}"),
            Self::EventTime(most) => write!(f, "an event of a watch is not complete after {most:?}"),
        }
    }
}

/// A server sent more than it may, or took longer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {server}: {limit}; {}; retrying with back-off", code.0.mend)]
pub struct LimitExceeded {
    /// `E-WORKLOAD-LIMIT` or `E-API-LIMIT`.
    pub code: Code,
    /// The server, such as `cluster default/demo`.
    pub server: String,
    pub limit: Limit,
}
