//! Durable, embedded multi-version store with ordered watches.
