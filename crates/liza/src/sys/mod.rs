//! What differs between operating systems, behind one interface.
//!
//! No code outside this folder asks which system it runs on or reads `/proc`. Each function that needs Linux has a
//! portable fallback that does less, never something different.

pub(crate) mod confinement;
pub(crate) mod desktop;
pub(crate) mod family;
pub(crate) mod inherited;
pub(crate) mod peer;
pub(crate) mod process;
mod program;
pub(crate) mod remove_tree;
pub(crate) mod tcp_peer;
pub(crate) mod untrusted;

pub(crate) use program::{find_program, find_program_in};

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod linux;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
use linux as system;

#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
mod portable;
#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
use portable as system;
