//! Reasons of conditions that are read again.

/// The order was refused, or cannot be made up.
pub(super) const ORDER_FAILED: &str = "OrderFailed";
/// The machine could not be added to the load balancer.
pub(super) const ATTACH_FAILED: &str = "AttachFailed";
