//! The audit log: flags of `capstan server`, and `capstan audit verify`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capstan_apiserver::Audit;
use capstan_audit::{AuditLog, LogOptions, Policy, Webhook, WebhookOptions};

use crate::exit::Exit;
use crate::output::print_line;

/// Where a server records requests.
#[derive(clap::Args, Clone, Default)]
#[command(group = clap::ArgGroup::new("audit_sink").multiple(true).args(["audit_log_path", "audit_webhook_config_file"]))]
pub struct LogArgs {
    /// Record requests in this file, one JSON event per line; created if it does not exist
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Audit policy (audit.k8s.io/v1); by default everything except health checks is recorded without bodies
    #[arg(long, value_name = "FILE", requires = "audit_sink")]
    audit_policy_file: Option<PathBuf>,
    /// Megabytes after which the audit log is rotated
    #[arg(long, value_name = "MEGABYTES", default_value_t = 100, requires = "audit_log_path",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    audit_log_maxsize: u64,
    /// Rotated audit logs to keep; 0 keeps all
    #[arg(long, value_name = "COUNT", default_value_t = 0, requires = "audit_log_path")]
    audit_log_maxbackup: usize,
    /// Days to keep rotated audit logs; 0 keeps them forever
    #[arg(long, value_name = "DAYS", default_value_t = 0, requires = "audit_log_path",
        value_parser = clap::value_parser!(u64).range(0..=36_500))]
    audit_log_maxage: u64,
    /// Send audit events to the webhook of this kubeconfig, in batches; events that it rejects are dropped
    #[arg(long, value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,
    /// Events that may wait for the webhook; further ones are dropped
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, requires = "audit_webhook_config_file",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    audit_webhook_batch_buffer_size: u32,
    /// Maximum number of events of one request to the webhook
    #[arg(long, value_name = "COUNT", default_value_t = 400, requires = "audit_webhook_config_file",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    audit_webhook_batch_max_size: u32,
    /// Seconds after which events are sent that do not fill a request
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "audit_webhook_config_file",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    audit_webhook_batch_max_wait: u64,
    /// Seconds before a failed request is retried for the first time
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "audit_webhook_config_file",
        value_parser = clap::value_parser!(u64).range(1..=3_600))]
    audit_webhook_initial_backoff: u64,
}

impl LogArgs {
    /// Reads the policy and opens log and webhook, if there shall be any.
    pub fn open(&self) -> Result<Option<Arc<Audit>>> {
        if self.audit_log_path.is_none() && self.audit_webhook_config_file.is_none() {
            return Ok(None);
        }
        let policy = match &self.audit_policy_file {
            None => Policy::metadata(),
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read the audit policy {}", file.display()))?;
                Policy::parse(&text).with_context(|| format!("audit policy {}", file.display()))?
            }
        };
        let (log, webhook) = (self.open_log()?, self.open_webhook()?);
        Ok(Some(Arc::new(Audit { policy, log, webhook })))
    }

    fn open_log(&self) -> Result<Option<AuditLog>> {
        let Some(path) = &self.audit_log_path else { return Ok(None) };
        let log = AuditLog::open(LogOptions {
            path: path.clone(),
            max_bytes: self.audit_log_maxsize * 1_000_000,
            max_backups: self.audit_log_maxbackup,
            max_age: Duration::from_secs(self.audit_log_maxage * 86_400),
        })?;
        Ok(Some(log))
    }

    fn open_webhook(&self) -> Result<Option<Webhook>> {
        let Some(config) = &self.audit_webhook_config_file else { return Ok(None) };
        let webhook = Webhook::open(WebhookOptions {
            buffer: self.audit_webhook_batch_buffer_size as usize,
            batch: self.audit_webhook_batch_max_size as usize,
            wait: Duration::from_secs(self.audit_webhook_batch_max_wait),
            backoff: Duration::from_secs(self.audit_webhook_initial_backoff),
            ..WebhookOptions::new(config)
        });
        Ok(Some(webhook.with_context(|| format!("audit webhook {}", config.display()))?))
    }
}

/// Metrics of log and webhook.
pub fn metrics(audit: &Audit) -> String {
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: u64| {
        text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    };
    if let Some(log) = &audit.log {
        let help = "Audit events that could not be written.";
        add("capstan_audit_failures_total", "counter", help, log.failures());
    }
    if let Some(webhook) = &audit.webhook {
        let counts = webhook.counts();
        let help = "Audit events that the webhook has accepted.";
        add("capstan_audit_webhook_sent_total", "counter", help, counts.sent);
        let help = "Audit events dropped because the webhook did not take them in time.";
        add("capstan_audit_webhook_dropped_total", "counter", help, counts.dropped);
        let help = "Requests to the audit webhook that failed.";
        add("capstan_audit_webhook_failed_requests_total", "counter", help, counts.failed_requests);
        add(
            "capstan_audit_webhook_queued",
            "gauge",
            "Audit events that wait for the webhook.",
            counts.queued,
        );
    }
    text
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
