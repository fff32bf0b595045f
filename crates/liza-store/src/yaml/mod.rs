//! YAML as the blackboard needs it: reading with places, typed decoding, writing in one careful form.
//!
//! Knows nothing of tasks or files. What is written here is read back the same by YAML 1.1 and 1.2 readers alike.

mod decode;
mod emit;
mod encode;
mod node;
mod quick;
mod scalar;

pub(crate) use decode::decode;
pub use decode::read;
pub(crate) use emit::key;
pub use emit::{after_key, document, inline, item};
pub use encode::to_value;
pub(crate) use node::{Kind, Node, parse};
pub use node::{Oddity, Place, YamlError};
pub(crate) use quick::quick;
pub(crate) use scalar::{Style, resolve};

#[cfg(test)]
mod quick_tests;
#[cfg(test)]
mod tests;
