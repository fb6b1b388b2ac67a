//! What stands between a decoded request and the store: webhooks and the checks compiled in.
