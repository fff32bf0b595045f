//! The figures of a run, with the commit of the sources that made them, for the scorecard.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use serde_json::{Value, json};

/// The commit of these sources; `-changed` follows it if they have changed since.
fn commit(root: &Path) -> io::Result<String> {
    let git = |words: &[&str]| Command::new("git").args(words).current_dir(root).output();
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = !git(&["diff", "--quiet", "HEAD", "--", "crates", "Cargo.lock"])?.status.success();
    let head = String::from_utf8_lossy(&head.stdout).trim().to_owned();
    Ok(if is_changed { format!("{head}-changed") } else { head })
}

/// Writes `target/evidence/NAME.json`.
pub fn write(name: &str, mut figures: Value) -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    figures["commit"] = json!(commit(&root)?);
    let folder = root.join("target/evidence");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name).with_extension("json"), format!("{figures:#}\n"))
}
