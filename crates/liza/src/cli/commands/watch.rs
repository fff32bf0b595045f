//! `liza watch`: reports alerts as they happen.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::text::count;
use liza_sandbox::sys::process::ignores_hangup;
use liza_status::alarms::AlarmLevel;
use liza_team::project::{Project, now};
use liza_team::watch::{
    AlertMessage, Wake, WatchError, WatchOptions, WatchReport, Watcher, current_alerts, send_changes, serve,
};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{RED, YELLOW, paint};
use crate::cli::ui::output::Reply;

/// Report alerts as they happen.
///
/// Each alert goes once to standard error and .liza/alerts.log; to the desktop, if there is one; and to
/// `config.escalation_webhook`, if it is set. Stop files that you create by hand (.liza/PAUSE, CHECKPOINT, ABORT) and the
/// sprint's deadline are followed. One watcher is enough: `liza run` has its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza watch
  liza watch --analyze
  liza watch --once             (all current alerts; always exits 0)
  liza watch --once --quiet     (for cron: new alerts go to alerts.log, webhook and desktop only)")]
pub(crate) struct Args {
    /// The project; default the one in the current folder.
    #[arg(value_name = "PROJECT_ROOT")]
    root: Option<PathBuf>,
    /// Check once, print all current alerts, and exit. If a watcher is running, only print.
    #[arg(long)]
    once: bool,
    /// Let the circuit breaker check every new anomaly.
    #[arg(long)]
    analyze: bool,
    /// Check every S seconds if no change is seen.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: Option<u64>,
    /// Do not notify the desktop.
    #[arg(long)]
    no_desktop: bool,
}

/// The longest wait for pending deliveries at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest time for which `--once` repeats its check for conditions that have to last a moment.
const ONCE_MAX: Duration = Duration::from_secs(5);

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("watch")?;
    let context = context.at(args.root.as_deref())?;
    let project = context.project()?;
    let options = WatchOptions {
        interval: args.interval.map(Duration::from_secs),
        analyze: args.analyze,
        desktop: !args.no_desktop,
        ..WatchOptions::default()
    };
    let sending = options.webhook_policy.total();
    match Watcher::new(&project, options) {
        Ok(watcher) if args.once => Ok(once(watcher, sending, &context)),
        Ok(watcher) => watch(watcher, &project, &context),
        Err(WatchError::Running) if args.once => Ok(current_reply(&current_alerts(&project), &[], &context)),
        Err(WatchError::Running) => Err(CommandError::refused("watching", WatchError::Running.to_string())
            .hint("print the current alerts: liza watch --once; all alerts are in .liza/alerts.log")),
        Err(WatchError::NoWebhooks) => Err(CommandError::missing_feature("webhooks")),
        Err(WatchError::Lock(error)) => Err(error.into()),
    }
}

fn watch(mut watcher: Watcher, project: &Project, context: &Context) -> Result<Reply, CommandError> {
    let (sender, wakes) = channel();
    let failed =
        |error: std::io::Error| CommandError::refused("io", format!("cannot wait for signals: {error}"));
    let signals = stop_on_signals(sender.clone()).map_err(failed)?;
    // Before the first check, so that no change is missed in between.
    send_changes(project, sender);
    if !context.screen.quiet {
        let place = project.root().display();
        context.screen.note(&format!("liza: watching {place}; alerts go here and to .liza/alerts.log"));
    }
    let mut first = true;
    serve(&mut watcher, &wakes, &mut |report| {
        print(report, context);
        if std::mem::take(&mut first) {
            print_older(report, context);
        }
    });
    signals.close();
    if watcher.is_project_gone() {
        let message = format!("{} no longer exists", project.folder().display());
        return Err(CommandError::refused("no_project", message));
    }
    if !watcher.close(CLOSE_TIMEOUT) {
        context.screen.note("liza: a message to the webhook was not delivered in time");
    }
    Ok(Reply::already_written())
}

/// Alarms that were reported before this watcher started are counted, not repeated.
fn print_older(report: &WatchReport, context: &Context) {
    let older = report.current.len().saturating_sub(report.new.len());
    if older > 0 && !context.screen.quiet {
        context.screen.note(&format!("liza: {} reported before: liza status", count(older, "older alert")));
    }
}

fn stop_on_signals(wakes: Sender<Wake>) -> std::io::Result<signal_hook::iterator::Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    if !ignores_hangup() {
        handle.add_signal(SIGHUP)?;
    }
    thread::spawn(move || {
        for _ in signals.forever() {
            if wakes.send(Wake::Stop).is_err() {
                return;
            }
        }
    });
    Ok(handle)
}

/// Checks until nothing is pending, and until everything is delivered.
fn once(mut watcher: Watcher, sending: Duration, context: &Context) -> Reply {
    let began = Instant::now();
    let mut fresh = Vec::new();
    let current = loop {
        let report = watcher.check(now());
        for notice in &report.notices {
            context.screen.note(&format!("liza: {notice}"));
        }
        fresh.extend(report.new);
        match watcher.pending().filter(|_| began.elapsed() < ONCE_MAX) {
            Some(soon) => thread::sleep(soon),
            None => break report.current,
        }
    };
    if !watcher.close(sending) {
        context.screen.note("liza: some alerts were not delivered in time; see .liza/alerts.log");
    }
    current_reply(&current, &fresh, context)
}

/// All current alarms: on standard error, or as one JSON object.
fn current_reply(current: &[AlertMessage], fresh: &[AlertMessage], context: &Context) -> Reply {
    if !context.screen.json && !context.screen.quiet {
        current.iter().for_each(|alert| context.screen.note(&coloured(alert)));
    }
    let is_new = |alert: &AlertMessage| {
        fresh
            .iter()
            .any(|other| (other.kind, &other.task, other.since) == (alert.kind, &alert.task, alert.since))
    };
    let alerts = current.iter().map(|alert| {
        let mut object = alert.to_json();
        object["new"] = json!(is_new(alert));
        object
    });
    let alerts: Vec<_> = alerts.collect();
    let text = if current.is_empty() { "no alerts" } else { "" };
    Reply::new(text, json!({ "alerts": alerts }))
}

/// The report of a check: alarms to standard error, or one JSON object per line to standard output.
fn print(report: &WatchReport, context: &Context) {
    for notice in report.notices.iter().filter(|_| !context.screen.quiet) {
        context.screen.note(&format!("liza: {notice}"));
    }
    for alert in &report.new {
        if context.screen.json {
            context.screen.out(&alert.to_json().to_string());
        } else {
            context.screen.note(&coloured(alert));
        }
    }
}

fn coloured(alert: &AlertMessage) -> String {
    let style = match alert.level {
        AlarmLevel::Critical => RED,
        AlarmLevel::Warning => YELLOW,
    };
    paint(style, &alert.line())
}
