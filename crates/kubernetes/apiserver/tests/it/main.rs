//! Tests of the whole server in process.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod admission_policies;
mod attacks;
mod audit;
mod autoscalers;
mod backups;
mod client;
mod crds;
mod documents;
mod evictions;
mod flow_control;
mod full_disk;
mod fuzz;
mod health;
mod housekeeping;
mod lifecycle;
mod objects;
mod oidc;
mod pods;
mod policy;
mod quotas;
mod responses;
mod scale;
mod scope;
mod services;
mod signers;
mod storage;
mod token_secrets;
mod watches;
