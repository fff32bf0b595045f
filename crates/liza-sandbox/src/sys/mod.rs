//! The differences between operating systems, behind one interface. No code outside this folder asks which
//! system it runs on or reads `/proc`. Each function that needs Linux has a portable fallback that does less,
//! never something different.

pub mod confinement;
pub mod desktop;
pub mod family;
pub mod inherited;
pub mod leftovers;
pub mod peer;
pub mod process;
mod program;
pub mod remove_tree;
pub mod tcp_peer;
pub mod terminal;
pub mod untrusted;

pub use program::{find_program, find_program_in};
pub(crate) use system::sealed_copy;

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod linux;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
use linux as system;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod shared_memory;

#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
mod portable;
#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
use portable as system;
