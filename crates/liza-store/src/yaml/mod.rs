//! YAML: parsing with positions, typed decoding, and writing. Knows no tasks and no files. YAML 1.1 and 1.2
//! readers must read the same from our output.

mod decode;
mod emit;
mod encode;
mod fast_parser;
mod node;
mod scalar;

pub(crate) use decode::decode;
pub use decode::read;
pub(crate) use emit::{after_key, key};
pub use emit::{document, item};
pub(crate) use encode::to_value;
pub(crate) use fast_parser::parse_fast;
pub(crate) use node::{Node, NodeKind, NonLocalSyntax, comments, parse};
pub use node::{Position, YamlError};
pub(crate) use scalar::{Style, as_time, canonical_time, resolve};

#[cfg(test)]
pub(crate) mod fast_parser_tests;
#[cfg(test)]
mod tests;
