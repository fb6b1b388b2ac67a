//! Whole bodies, within limits.

use bytes::Bytes;

use super::limits::{Limit, Limits, held};
use super::{ApiError, Body};

/// The whole of a body. A body of one piece, as every object in process is, is not copied.
pub(super) async fn read_all(mut body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    let most = limits.sizes().answer;
    let mut charge = limits.charge();
    let mut charged = |bytes: usize| match &mut charge {
        Some(charge) => charge.resize(bytes).map_err(|exhausted| limits.exhausted(exhausted)),
        None => Ok(()),
    };
    let too_long = || limits.exceeded(Limit::Answer(most));
    let first = body.next().await.transpose()?.unwrap_or_default();
    if first.len() > most {
        return Err(too_long());
    }
    charged(first.len())?;
    let whole = match body.next().await.transpose()? {
        None => first,
        Some(second) => {
            let mut all = Vec::from(first);
            let mut piece = second;
            loop {
                let length = all.len() + piece.len();
                if length > most {
                    return Err(too_long());
                }
                if length > all.capacity() {
                    // As `Vec` does, but never past the limit, and charged before it is allocated.
                    let capacity = length.max(all.capacity().saturating_mul(2)).min(most);
                    charged(capacity)?;
                    all.reserve_exact(capacity - all.len());
                }
                all.extend_from_slice(&piece);
                if limits.times().is_some() {
                    // A server whose bytes are always there must not keep the thread from others.
                    tokio::task::coop::consume_budget().await;
                }
                match body.next().await.transpose()? {
                    Some(next) => piece = next,
                    None => break all.into(),
                }
            }
        }
    };
    limits.weigh(&whole, &mut charge)?;
    Ok(held(whole, charge))
}
