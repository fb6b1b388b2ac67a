//! Expressions from text to value, against facts gathered from cel-go and Kubernetes 1.36.

mod bounds;
mod data;
mod facts;
mod fuzz;
mod schema;
mod show;
