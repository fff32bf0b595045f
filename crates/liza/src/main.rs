//! The program: installs its parts, hands the command line over, and exits with the code that comes back.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "database")]
    liza_database::install();
    liza::cli::main(std::env::args_os())
}
