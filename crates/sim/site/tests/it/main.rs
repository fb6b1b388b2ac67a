//! The HTTP API of a site.

#[cfg(test)]
mod wire;
