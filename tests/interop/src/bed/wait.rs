//! Waiting on a condition, with a limit and a name for what did not come.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Asks until the answer is `Some`; the last error, if any, is told when time runs out.
pub async fn until<T, F: Future<Output = Result<Option<T>>>>(
    what: &str,
    patience: Duration,
    mut ask: impl FnMut() -> F,
) -> Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        let last = match ask().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => String::new(),
            Err(error) => format!("; last answer: {error:#}"),
        };
        if Instant::now() > deadline {
            bail!("{what}: not within {patience:?}{last}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
