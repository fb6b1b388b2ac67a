//! The whole server in process: requests in, answers and events out.

mod client;
mod crds;
mod lifecycle;
mod objects;
mod watches;
