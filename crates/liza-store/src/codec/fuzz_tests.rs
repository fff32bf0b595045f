//! The blackboard is a file that people and programs edit: whatever it contains, both readers end without a panic.

use std::path::Path;

use liza_testkit::fuzz::fuzz;

use super::verify::new_document;
use super::{REQUIRED, fault_count, parse_state};
use crate::error::StoreError;
use crate::log;
use crate::yaml::fast_parser_tests::check;

/// Covers: PV-05, BB-07
#[test]
fn fuzz_document() {
    let path = Path::new("state.yaml");
    fuzz("document", move |bytes, _| {
        let _ = parse_state(path, bytes, true);
        let text = String::from_utf8_lossy(bytes);
        // The fast reader reads nothing in another way.
        check(&text);
        log::entry_texts(&text).for_each(|text| drop(log::entry(text)));
        match parse_state(path, bytes, false) {
            Ok(state) if fault_count(&state) == 0 => drop(new_document(path, &state).unwrap()),
            Ok(_) | Err(StoreError::NewerVersion { .. }) => {}
            Err(StoreError::Broken(fault)) => {
                // What is missing has a name and no line.
                let is_missing = REQUIRED.iter().any(|name| fault.message.contains(name));
                assert!(fault.position.is_some() || is_missing, "it has no place: {fault}");
            }
            Err(error) => panic!("{error}"),
        }
    });
}
