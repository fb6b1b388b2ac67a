//! The audit log: flags of `capstan server`, and `capstan audit verify`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capstan_apiserver::Audit;
use capstan_audit::{AuditLog, LogOptions, Policy};

use crate::exit::Exit;
use crate::output::print_line;

/// The log of a server.
#[derive(clap::Args, Clone, Default)]
pub struct LogArgs {
    /// Record requests in this file, one JSON event per line; created if it does not exist
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Audit policy (audit.k8s.io/v1); by default everything except health checks is recorded without bodies
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,
    /// Megabytes after which the audit log is rotated
    #[arg(long, value_name = "MEGABYTES", default_value_t = 100, requires = "audit_log_path",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    audit_log_maxsize: u64,
    /// Rotated audit logs to keep; 0 keeps all
    #[arg(long, value_name = "COUNT", default_value_t = 0, requires = "audit_log_path")]
    audit_log_maxbackup: usize,
    /// Days to keep rotated audit logs; 0 keeps them for ever
    #[arg(long, value_name = "DAYS", default_value_t = 0, requires = "audit_log_path",
        value_parser = clap::value_parser!(u64).range(0..=36_500))]
    audit_log_maxage: u64,
}

impl LogArgs {
    /// Reads the policy and opens the log, if there shall be one.
    pub fn open(&self) -> Result<Option<Arc<Audit>>> {
        let Some(path) = &self.audit_log_path else { return Ok(None) };
        let policy = match &self.audit_policy_file {
            None => Policy::metadata(),
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read the audit policy {}", file.display()))?;
                Policy::parse(&text).with_context(|| format!("audit policy {}", file.display()))?
            }
        };
        let log = AuditLog::open(LogOptions {
            path: path.clone(),
            max_bytes: self.audit_log_maxsize * 1_000_000,
            max_backups: self.audit_log_maxbackup,
            max_age: Duration::from_secs(self.audit_log_maxage * 86_400),
        })?;
        Ok(Some(Arc::new(Audit { policy, log })))
    }
}

/// The log's families of metrics.
pub fn metrics(audit: &Audit) -> String {
    let name = "capstan_audit_failures_total";
    let help = "Audit events that could not be written.";
    format!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {}\n", audit.log.failures())
}

/// Arguments of `capstan audit`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Check that no event of an audit log was changed, removed, added or moved
    Verify(VerifyArgs),
}

#[derive(clap::Args)]
struct VerifyArgs {
    /// The log, as given to --audit-log-path; rotated files beside it are read too
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Hash of an earlier run's last event: fails if the log no longer contains it
    #[arg(long, value_name = "HASH")]
    contains: Option<String>,
}

pub fn run(args: &Args) -> Result<Exit> {
    let Verb::Verify(args) = &args.verb;
    let report = capstan_audit::verify(&args.path)?;
    if let Some(hash) = &args.contains {
        let contains = |file: &PathBuf| -> Result<bool> {
            let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let line = format!(r#","chain":"{hash}","#);
            Ok(text.split(|byte| *byte == b'\n').any(|found| {
                found.starts_with(br#"{"seq":"#)
                    && found.windows(line.len()).any(|part| part == line.as_bytes())
            }))
        };
        let mut found = false;
        for file in &report.files {
            found = found || contains(file)?;
        }
        if !found {
            bail!(
                "no event of {} has the hash {hash}: the log was cut at its end, replaced, or its older files removed",
                args.path.display()
            );
        }
    }
    print_line(&format!(
        "{} events in {} files are as they were written: events {} to {}\nlast hash: {}\n\
         Keep the hash elsewhere: `capstan audit verify {} --contains {}` then also notices a cut at the end.",
        report.last + 1 - report.first,
        report.files.len(),
        report.first,
        report.last,
        report.hash,
        args.path.display(),
        report.hash,
    ))?;
    Ok(Exit::Done)
}
