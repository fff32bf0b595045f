//! The server of `liza web`: from its first address to Ctrl-C.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use liza_sandbox::sys::process::{hide_memory, is_in_foreground};
use liza_team::observe::live_view::LiveView;
use liza_web::{ServerHandle, WebServer};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::context::Context;
use crate::cli::ui::console::Stream;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use crate::cli::web_seat::{WebSeat, team_reading};

/// Serves the pages of this project until a signal ends it.
pub(crate) fn serve(port: u16, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    if context.screen.console.is_file(Stream::Output) {
        let message = "the address is a secret and must not be written to a file";
        return Err(CommandError::refused("not_private", message).hint("run it in a terminal: liza web"));
    }
    // The secrets are in this process only.
    hide_memory();
    let failed =
        |what: &'static str| move |error: io::Error| CommandError::refused("io", format!("{what}: {error}"));
    let server = WebServer::bind(port, WebSeat::new(context, &project));
    let server = server.map_err(failed("cannot listen on 127.0.0.1"))?;
    let handle = server.handle();
    let mut live = LiveView::new(project);
    handle.publish(team_reading(live.read()));
    let ended = Arc::new(AtomicBool::new(false));
    let (shown, end) = (handle.clone(), Arc::clone(&ended));
    thread::spawn(move || {
        live.run(&end, |reading| {
            shown.publish(team_reading(reading));
            true
        });
    });
    end_on_signals(handle.clone()).map_err(failed("cannot handle signals"))?;
    print_address(context, &handle).map_err(failed("cannot make an address"))?;
    if !context.screen.json {
        context.screen.note("This address works once, within a minute. Press Enter for another one, Ctrl-C to stop the server.");
    }
    print_more_addresses(context.clone(), handle);
    let served = server.run();
    ended.store(true, Ordering::Relaxed);
    served.map_err(failed("cannot serve"))?;
    Ok(Reply::already_written())
}

fn end_on_signals(handle: ServerHandle) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            handle.end();
        }
    });
    Ok(())
}

fn print_address(context: &Context, handle: &ServerHandle) -> io::Result<()> {
    let address = handle.new_address()?;
    let line = if context.screen.json { json!({"address": address}).to_string() } else { address };
    let _ = context.screen.stream(&line);
    Ok(())
}

/// Prints another address for each line that the person enters.
fn print_more_addresses(context: Context, handle: ServerHandle) {
    if context.screen.console.is_terminal(Stream::Input) && !is_in_foreground() {
        return;
    }
    thread::spawn(move || {
        while context.screen.console.read_line().is_ok_and(|line| !line.is_empty()) {
            if print_address(&context, &handle).is_err() {
                return;
            }
        }
    });
}
