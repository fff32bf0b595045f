//! `liza watch`: tells what a human should hear about, as it happens.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::project::{Project, now};
use crate::sys::process::ignores_hangup;
use crate::watch::{Alert, Look, Options, Wake, WatchError, Watcher, glance, listen, serve};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{RED, YELLOW, paint};
use crate::cli::ui::output::Reply;

/// Tell what a human should hear about, as it happens.
///
/// Alarms go to standard error and to .liza/alerts.log, each once; to the desktop, where there is one; and to
/// `config.escalation_webhook`, if it is set. Bare files (.liza/PAUSE, CHECKPOINT, ABORT) and the sprint's deadline are
/// followed. One watcher is enough: `liza run` has its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza watch
  liza watch --analyze
  liza watch --once             (what stands now; exit 0 whatever it is)
  liza watch --once --quiet     (for cron: only alerts.log, webhook and desktop hear what is new)")]
pub(crate) struct Args {
    /// Another project than the one that you are in.
    #[arg(value_name = "PROJECT_ROOT")]
    root: Option<PathBuf>,
    /// Look once, print everything that stands, and end. Beside a running watcher this only prints.
    #[arg(long)]
    once: bool,
    /// Have the circuit breaker look at every new anomaly.
    #[arg(long)]
    analyze: bool,
    /// Look every S seconds where no change is seen.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: Option<u64>,
    /// Do not notify the desktop.
    #[arg(long)]
    no_desktop: bool,
}

/// How long the end waits for what is being sent.
const FAREWELL: Duration = Duration::from_secs(3);

/// How long a single look may be repeated because something has to stand for a moment.
const ONCE_MAX: Duration = Duration::from_secs(5);

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("watch")?;
    let context = context.at(args.root.as_deref())?;
    let project = context.project()?;
    let options = Options {
        interval: args.interval.map(Duration::from_secs),
        analyze: args.analyze,
        desktop: !args.no_desktop,
        ..Options::default()
    };
    let sending = options.patience.total();
    match Watcher::new(&project, options) {
        Ok(watcher) if args.once => Ok(once(watcher, sending, &context)),
        Ok(watcher) => watch(watcher, &project, &context),
        Err(WatchError::Running) if args.once => Ok(tell_standing(&glance(&project, now()), &[], &context)),
        Err(WatchError::Running) => Err(CommandError::refused("watching", WatchError::Running.to_string())
            .hint("liza watch --once looks beside it; .liza/alerts.log has what it told")),
        Err(WatchError::Lock(error)) => Err(error.into()),
    }
}

fn watch(mut watcher: Watcher, project: &Project, context: &Context) -> Result<Reply, CommandError> {
    let (sender, wakes) = channel();
    let failed =
        |error: std::io::Error| CommandError::refused("io", format!("cannot wait for signals: {error}"));
    let signals = stop_on_signals(sender.clone()).map_err(failed)?;
    // Watched before the first look, so that nothing falls between the two.
    listen(project, sender);
    if !context.screen.quiet {
        let place = project.root().display();
        context.screen.note(&format!("liza: watching {place}; alarms go here and to .liza/alerts.log"));
    }
    let mut first = true;
    serve(&mut watcher, &wakes, &mut |look| {
        tell(look, context);
        if std::mem::take(&mut first) {
            tell_older(look, context);
        }
    });
    signals.close();
    if watcher.is_homeless() {
        let message = format!("{} is gone", project.folder().display());
        return Err(CommandError::refused("no_project", message));
    }
    if !watcher.close(FAREWELL) {
        context.screen.note("liza: the webhook had not answered yet");
    }
    Ok(Reply::already_written())
}

/// What was told before this watcher began still stands: counted, not repeated.
fn tell_older(look: &Look, context: &Context) {
    let older = look.standing.len().saturating_sub(look.alerts.len());
    if older > 0 && !context.screen.quiet {
        context.screen.note(&format!("liza: {older} that were told before still stand: liza status"));
    }
}

/// Makes signals to this process wakes.
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

/// Looks until nothing has to be waited for, and until everything is sent.
fn once(mut watcher: Watcher, sending: Duration, context: &Context) -> Reply {
    let began = Instant::now();
    let mut fresh = Vec::new();
    let standing = loop {
        let look = watcher.look(now());
        for notice in &look.notices {
            context.screen.note(&format!("liza: {notice}"));
        }
        fresh.extend(look.alerts);
        match watcher.unsettled().filter(|_| began.elapsed() < ONCE_MAX) {
            Some(soon) => thread::sleep(soon),
            None => break look.standing,
        }
    };
    if !watcher.close(sending) {
        context.screen.note("liza: not everything could be sent in time; see .liza/alerts.log");
    }
    tell_standing(&standing, &fresh, context)
}

/// Everything that stands, for scripts: on standard error as alarms are, or as one JSON object.
fn tell_standing(standing: &[Alert], fresh: &[Alert], context: &Context) -> Reply {
    if !context.screen.json && !context.screen.quiet {
        standing.iter().for_each(|alert| context.screen.note(&coloured(alert)));
    }
    let is_new = |alert: &Alert| {
        fresh
            .iter()
            .any(|other| (other.kind, &other.task, other.since) == (alert.kind, &alert.task, alert.since))
    };
    let alerts = standing.iter().map(|alert| {
        let mut object = alert.to_json();
        object["new"] = json!(is_new(alert));
        object
    });
    let alerts: Vec<_> = alerts.collect();
    let text = if standing.is_empty() { "nothing stands out" } else { "" };
    Reply::new(text, json!({ "alerts": alerts }))
}

/// What a look brought: alarms to standard error, or one JSON object a line to standard output.
fn tell(look: &Look, context: &Context) {
    for notice in look.notices.iter().filter(|_| !context.screen.quiet) {
        context.screen.note(&format!("liza: {notice}"));
    }
    for alert in &look.alerts {
        if context.screen.json {
            context.screen.out(&alert.to_json().to_string());
        } else {
            context.screen.note(&coloured(alert));
        }
    }
}

fn coloured(alert: &Alert) -> String {
    let style = match alert.level {
        liza_core::watch::alarms::AlarmLevel::Critical => RED,
        liza_core::watch::alarms::AlarmLevel::Warning => YELLOW,
    };
    paint(style, &alert.line())
}
