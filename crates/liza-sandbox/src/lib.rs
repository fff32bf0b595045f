//! Files, processes and sockets of untrusted programs, and their rights on the machine.
//!
//! A room is a plan: data, made from facts that the caller gives. Knows no task and no agent program. The
//! only crate with `unsafe` code (`sys::confinement::seccomp`, `sys::terminal`, `confine::room::calls`).
#![cfg_attr(
    all(test, feature = "portable-sys"),
    allow(
        unused_imports,
        reason = "some tests exist only for Linux; this feature is for compiling, not for running"
    )
)]
#![deny(unsafe_code)]

pub mod confine;
pub mod socket_folder;
pub mod sys;
