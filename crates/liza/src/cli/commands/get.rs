//! `liza get`: prints the values at a path of the blackboard.

use liza_core::model::Value;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

use super::lock::masked_addresses;

/// Print the values at a path of the blackboard.
///
/// A path consists of keys, [n], [], select(.key == "value") and "quoted keys", as in yq. Each match is one line; lists
/// and maps are printed as YAML. A setting that the blackboard does not have is printed as it applies: from liza.yaml, or
/// its default.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza get .goal.description
  liza get .config.lease_duration
  liza get '.tasks[].id'
  liza get '.tasks[] | select(.id == \"retry-orders\") | .status'")]
pub(crate) struct Args {
    /// The path; default the whole blackboard.
    #[arg(default_value = ".")]
    path: String,
    /// Also print the addresses of webhooks.
    #[arg(long)]
    secrets: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let addresses = masked_addresses(&project, args.secrets, context)?;
    let found = project.store().read_path_in_force(&args.path)?;
    if found.is_empty() {
        let message = format!("nothing matches {}", args.path);
        return Err(CommandError::refused("nothing_there", message).hint("liza get . shows everything"));
    }
    // A path without [] has at most one match, which is printed as the value itself; any other result is a list.
    let many = args.path.contains("[]");
    let text: Vec<String> = found.iter().map(shown).collect();
    let result = match (&found[..], many) {
        ([one], false) => json!(one),
        (all, _) => json!(all),
    };
    Ok(Reply::new(addresses.mask(&text.join("\n")), addresses.mask_json(result)))
}

/// Scalars bare, for scripts; everything else as YAML.
fn shown(value: &Value) -> String {
    match value {
        Value::Map(fields) => liza_store::yaml::document(fields).trim_end().to_owned(),
        Value::List(items) if items.is_empty() => "[]".to_owned(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| liza_store::yaml::item(item, 0)).collect();
            items.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Time(_) => {
            value.to_string()
        }
    }
}
