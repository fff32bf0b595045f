//! state.yaml as a document of blocks: what an operation does not change keeps its bytes.
//!
//! Finds blocks by their indentation and plans edits of single keys and list entries. Reads no file, and knows no
//! task: whoever calls has parsed what is to be changed, and checks the result.

mod edit;
mod meaning;
mod scan;

pub(crate) use edit::{Edit, Edits, Plan, apply, merge, untyped};
pub(crate) use meaning::{holds, says};
pub(crate) use scan::{
    Block, Item, Line, Lines, Shape, Unsure, agrees, entries, line_start, sections, shape, split_key,
};

#[cfg(test)]
mod tests;
