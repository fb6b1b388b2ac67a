//! Clouds that do not answer while a user waits for a command.

use std::time::Duration;

/// How long a cloud may take to answer a command.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a cloud, or a service of it, answers to a command in time, or that it does not.
pub async fn within_patience<T>(who: &str, asked: impl Future<Output = T>) -> Result<T, String> {
    let answer = tokio::time::timeout(PATIENCE, asked).await;
    answer.map_err(|_| format!("{who} did not answer within {} s", PATIENCE.as_secs()))
}
