//! state.yaml as a document of blocks: a write keeps the bytes of everything else. Finds blocks by
//! indentation and plans edits of keys and list entries. Knows no tasks: the caller parses the changed parts,
//! and checks the result.

mod comments;
mod edit;
mod plan;
mod scan;
mod value;
mod value_path;

pub(crate) use edit::{Edit, Edits, apply};
pub(crate) use plan::EditPlan;
pub(crate) use scan::{
    Ambiguous, Block, Item, Line, Lines, Shape, is_empty_value, line_start, list_entries, scan_matches,
    sections, shape, split_key, unquoted,
};
pub(crate) use value::{merge, node_equals, plain_value, same_value};
pub use value_path::PathError;
pub(crate) use value_path::{PathTarget, ValuePath};

#[cfg(test)]
mod tests;
