//! The keeper of git's filters, as the tests of this crate start it: the program's own start without the program.

use std::ffi::OsString;
use std::process::ExitCode;

use liza_sandbox::confine::{kept_filter, serve_filter};
use liza_sandbox::sys::inherited::keep_descriptors;

fn main() -> ExitCode {
    keep_descriptors();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match kept_filter(&arguments) {
        Some((number, file)) => ExitCode::from(serve_filter(number, file)),
        None => ExitCode::FAILURE,
    }
}
