//! Waits for a condition, with a timeout and a description for the error.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Polls until the result is `Some`. On timeout the error contains the last error, if any.
pub async fn until<T, F: Future<Output = Result<Option<T>>>>(
    what: &str,
    timeout: Duration,
    mut ask: impl FnMut() -> F,
) -> Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        let last = match ask().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => String::new(),
            Err(error) => format!("; last error: {error:#}"),
        };
        if Instant::now() > deadline {
            bail!("{what}: not within {timeout:?}{last}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
