//! The program: hands the command line over and exits with the code that comes back.

use std::process::ExitCode;

fn main() -> ExitCode {
    liza::cli::main(std::env::args_os())
}
