//! What a plane can rely on when its machines are elsewhere.

#[cfg(test)]
mod wire;
