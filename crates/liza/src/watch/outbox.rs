//! Where alerts go beside the caller's screen: alerts.log at once, webhook and desktop by threads of their own.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use liza_core::model::Timestamp;
use liza_core::watch::alarms::AlarmLevel;
use serde_json::Value;

use crate::project::{Project, now};
use crate::sys::desktop;

use super::courier::Courier;
use super::file::Book;
use super::webhook::{self, Patience};
use super::{Alert, Options};

/// More new alerts than this in one look make one notification.
const NOTIFIED: usize = 3;

/// How long a notification may take.
const NOTIFICATION: Duration = Duration::from_secs(5);

/// What is on its way to a webhook.
#[derive(Debug)]
struct Parcel {
    url: String,
    body: String,
}

/// What is on its way to the desktop.
#[derive(Debug)]
struct Notification {
    title: String,
    body: String,
    urgent: bool,
}

/// Where alerts go beside the caller's screen.
#[derive(Debug)]
pub(super) struct Outbox {
    book: Arc<Mutex<Book>>,
    webhook: Courier<Parcel>,
    desktop: Option<Courier<Notification>>,
    failed: Receiver<String>,
    title: String,
}

impl Outbox {
    pub(super) fn open(project: &Project, options: &Options) -> Self {
        let book = Arc::new(Mutex::new(Book::in_folder(project.folder())));
        let (fail, failed) = channel();
        let webhook = webhook_courier(Arc::clone(&book), options.patience.clone(), fail);
        let desktop = (options.desktop && desktop::is_available()).then(desktop_courier);
        let name = project.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { book, webhook, desktop, failed, title: format!("liza: {name}") }
    }

    pub(super) fn write(&self, now: Timestamp, line: &str) -> io::Result<()> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).append(now, line)
    }

    /// Writes something that is no alert; if that fails, the next alert tells.
    pub(super) fn note(&self, now: Timestamp, line: &str) {
        let _ = self.write(now, line);
    }

    pub(super) fn post(&self, now: Timestamp, url: &str, payload: &Value) {
        let parcel = Parcel { url: url.to_owned(), body: payload.to_string() };
        if !self.webhook.send(parcel) {
            self.note(now, "⚠️ WEBHOOK FAILED: too much waits to be sent already, this one is left out");
        }
    }

    /// Shows the alerts, a flood of them as one.
    pub(super) fn notify(&self, alerts: &[Alert]) {
        let Some(desktop) = &self.desktop else { return };
        let urgent = |alert: &Alert| alert.level == AlarmLevel::Critical;
        if alerts.len() > NOTIFIED {
            let lines: Vec<String> = alerts.iter().take(NOTIFIED).map(Alert::line).collect();
            let body = format!("{} alarms\n{}\n…", alerts.len(), lines.join("\n"));
            let urgent = alerts.iter().any(urgent);
            desktop.send(Notification { title: self.title.clone(), body, urgent });
            return;
        }
        for alert in alerts {
            let (title, body) = (self.title.clone(), alert.line());
            desktop.send(Notification { title, body, urgent: urgent(alert) });
        }
    }

    /// Deliveries that failed since the last time that somebody asked.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failed.try_iter().collect()
    }

    pub(super) fn close(self, at_most: Duration) -> bool {
        let sent = self.webhook.close(at_most);
        let shown = self.desktop.is_none_or(|desktop| desktop.close(NOTIFICATION.min(at_most)));
        sent && shown
    }
}

/// Sends one parcel after the other. While the other side is down each further one is tried only once.
fn webhook_courier(book: Arc<Mutex<Book>>, patience: Patience, failed: Sender<String>) -> Courier<Parcel> {
    let mut down = false;
    Courier::start(move |parcel: Parcel| {
        let patience = if down { patience.once() } else { patience.clone() };
        let posted = webhook::post(&parcel.url, &parcel.body, &patience);
        down = posted.is_err();
        if let Err(why) = posted {
            let line = format!("⚠️ WEBHOOK FAILED: {}: {why}", webhook::shown(&parcel.url));
            // Where even that cannot be written, the screen still tells.
            let _ = book.lock().unwrap_or_else(PoisonError::into_inner).append(now(), &line);
            let _ = failed.send(line);
        }
    })
}

/// Shows one notification after the other. That it cannot is no news: there is a screen and a log.
fn desktop_courier() -> Courier<Notification> {
    Courier::start(|Notification { title, body, urgent }: Notification| {
        let _ = desktop::notify(&title, &body, urgent, NOTIFICATION);
    })
}
