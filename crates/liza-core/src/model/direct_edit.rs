//! Direct edits of the file that the human should look at: the entries of `direct_edits`.

use liza_ids::{DirectEditId, Timestamp};
use serde::{Deserialize, Serialize};

/// The author of a direct edit in the log: the file does not say who it was.
pub const EDITED_BY_HAND: &str = "edited by hand";

/// A change of the file that no command made, in places that only commands should change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectEdit {
    pub id: DirectEditId,
    pub timestamp: Timestamp,
    /// Places that only commands should change, such as `tasks.t-3.status`; empty if the place is unknown.
    #[serde(default)]
    pub places: Vec<String>,
}

impl DirectEdit {
    pub fn describe(&self) -> String {
        match self.places.as_slice() {
            [] => "state.yaml differs from the version that was last written, and what differs is not known"
                .to_owned(),
            places => {
                format!("edited by hand, although only commands should change it: {}", places.join(", "))
            }
        }
    }
}
