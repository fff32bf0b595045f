//! Edits of the text: the new values, the permissions, and the merge of two edits. Reads and writes no file.

mod checked_edit;
mod meaning;
mod three_way_merge;
mod value_edit;

pub use checked_edit::{AcceptedText, EditRules};
pub(crate) use checked_edit::{
    CheckedText, CurrentText, adds_none_in_part, edit_of_ended_tasks, new_misspelled, read_whole,
    revision_stamps,
};
pub(crate) use meaning::meaning;
pub use three_way_merge::{Conflicts, infer_base, task_range, three_way_merge};
pub use value_edit::ValueSyntax;
pub(crate) use value_edit::{as_field_type, interpretations, with_value};
