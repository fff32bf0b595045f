//! `liza anomaly`: an agent logs something unusual.

use std::str::FromStr;

use liza_core::model::{AnomalyType, Fields, TaskId, Value};
use liza_core::protocol::LogAnomaly;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Log something unusual as it happens.
#[derive(Debug, clap::Args)]
#[command(after_help = "Types and the details they need:
  retry_loop           count, error_pattern         trade_off            what, why, debt_created
  external_blocker     blocker_service              assumption_violated  assumption, reality
  system_ambiguity     protocol_section, question
  spec_ambiguity, scope_deviation, workaround, debt_created, spec_changed, hypothesis_exhaustion, spec_gap,
  review_deadlock      none

Examples:
  liza anomaly retry_loop --task retry-orders --detail count=3 --detail error_pattern=\"connection reset\"
  liza anomaly spec_ambiguity --task retry-orders --detail spec_ref=specs/retry.md --detail question=\"is 429 retried?\"")]
pub(crate) struct Args {
    /// Type of the anomaly.
    #[arg(value_name = "TYPE")]
    kind: AnomalyType,
    /// The task that it happened in.
    #[arg(long)]
    task: Option<TaskId>,
    /// A detail; repeatable.
    #[arg(long = "detail", value_name = "KEY=VALUE", allow_hyphen_values = true)]
    details: Vec<Detail>,
}

#[derive(Debug, Clone)]
struct Detail {
    key: String,
    value: Text,
}

impl FromStr for Detail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
        let key = key.trim();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(format!("{key:?} is not a key: use letters, digits, _ and -"));
        }
        let Ok(value) = value.parse();
        Ok(Self { key: key.to_owned(), value })
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let mut details = Fields::new();
    for Detail { key, value } in args.details {
        details.insert(key, Value::Text(value.read(context)?));
    }
    let kind = args.kind;
    let command = LogAnomaly { kind, task: args.task, details };
    context.run(command, |_| format!("{kind} is logged; continue with your task"))
}
