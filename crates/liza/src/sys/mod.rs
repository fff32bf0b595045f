//! What differs between operating systems, behind one face.
//!
//! Nothing outside this folder asks which system it runs on. Each function that needs Linux has a portable
//! fall-back beside it that does less, never something else.

pub mod brood;
pub mod desktop;
pub mod process;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
use portable as system;
