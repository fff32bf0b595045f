//! Drops every capability for good: root without them is like any other user.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Returns the reason if it fails.
pub(super) fn drop_all() -> Option<String> {
    drop_each().err().map(|error| format!("capabilities cannot be dropped: {error}"))
}

/// Keeps only those with which root reads and writes others' files: a project may belong to another user.
pub(super) fn keep_for_files() -> io::Result<()> {
    keep(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::FOWNER)
}

fn drop_each() -> io::Result<()> {
    keep(CapabilitySet::empty())
}

fn keep(kept: CapabilitySet) -> io::Result<()> {
    // Fails without an ambient set, which is as good as an empty one.
    let _ = clear_ambient_capability_set();
    for capability in CapabilitySet::all().difference(kept).iter() {
        // Needs a capability itself; a process without it has nothing that it could regain.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let kept = kept & capabilities(None)?.permitted;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    // No program that it starts regains them, whoever owns that program.
    set_no_new_privs(true)?;
    Ok(())
}
