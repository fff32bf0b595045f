//! Delivers alerts: to alerts.log directly, to webhook and desktop on separate threads.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use liza_core::model::Timestamp;
use liza_sandbox::sys::desktop;
use liza_status::alarms::AlarmLevel;
use serde_json::Value;

use crate::project::{Project, now};

use super::alert_files::AlertLog;
use super::http;
use super::queue::BackgroundQueue;
use super::webhook::{self, RetryPolicy};
use super::{AlertMessage, WatchOptions};

/// More new alerts than this are combined into one notification.
const MAX_NOTIFICATIONS: usize = 3;

const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct WebhookPost {
    url: String,
    body: String,
}

#[derive(Debug)]
struct Notification {
    title: String,
    body: String,
    urgent: bool,
}

#[derive(Debug)]
pub(super) struct Outbox {
    log: Arc<Mutex<AlertLog>>,
    webhook: BackgroundQueue<WebhookPost>,
    desktop: Option<BackgroundQueue<Notification>>,
    failed: Receiver<String>,
    title: String,
}

impl Outbox {
    pub(super) fn open(project: &Project, options: &WatchOptions) -> Self {
        let log = Arc::new(Mutex::new(AlertLog::in_folder(project.folder())));
        let (fail, failed) = channel();
        let webhook = webhook_queue(Arc::clone(&log), options.webhook_policy.clone(), fail);
        let desktop = (options.desktop && desktop::is_available()).then(desktop_queue);
        let name = project.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { log, webhook, desktop, failed, title: format!("liza: {name}") }
    }

    pub(super) fn write(&self, now: Timestamp, line: &str) -> io::Result<()> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).append(now, line)
    }

    /// Writes a line that is not an alert; if that fails, the next alert reports it.
    pub(super) fn note(&self, now: Timestamp, line: &str) {
        let _ = self.write(now, line);
    }

    pub(super) fn post(&self, now: Timestamp, url: &str, payload: &Value) {
        let message = WebhookPost { url: url.to_owned(), body: payload.to_string() };
        if !self.webhook.send(message) {
            self.note(now, "⚠️ WEBHOOK FAILED: the queue is full; this message was dropped");
        }
    }

    /// Shows the alerts on the desktop; many of them as one notification.
    pub(super) fn notify(&self, alerts: &[AlertMessage]) {
        let Some(desktop) = &self.desktop else { return };
        let urgent = |alert: &AlertMessage| alert.level == AlarmLevel::Critical;
        if alerts.len() > MAX_NOTIFICATIONS {
            let lines: Vec<String> = alerts.iter().take(MAX_NOTIFICATIONS).map(AlertMessage::line).collect();
            let body = format!("{} alerts\n{}\n…", alerts.len(), lines.join("\n"));
            let urgent = alerts.iter().any(urgent);
            desktop.send(Notification { title: self.title.clone(), body, urgent });
            return;
        }
        for alert in alerts {
            let (title, body) = (self.title.clone(), alert.line());
            desktop.send(Notification { title, body, urgent: urgent(alert) });
        }
    }

    /// Deliveries that failed since the last call.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failed.try_iter().collect()
    }

    pub(super) fn close(self, timeout: Duration) -> bool {
        let sent = self.webhook.close(timeout);
        let shown = self.desktop.is_none_or(|desktop| desktop.close(NOTIFICATION_TIMEOUT.min(timeout)));
        sent && shown
    }
}

/// Sends messages one by one. After a failure, each message gets a single try until one succeeds.
fn webhook_queue(
    log: Arc<Mutex<AlertLog>>,
    policy: RetryPolicy,
    failed: Sender<String>,
) -> BackgroundQueue<WebhookPost> {
    let mut down = false;
    BackgroundQueue::start(move |message: WebhookPost| {
        let policy = if down { policy.once() } else { policy.clone() };
        let posted = http::post(&message.url, &message.body, &policy);
        down = posted.is_err();
        if let Err(why) = posted {
            let text = format!("WEBHOOK FAILED: {}: {why}", webhook::masked_url(&message.url));
            // If the log cannot be written either, the screen still shows it.
            let _ = log.lock().unwrap_or_else(PoisonError::into_inner).append(now(), &format!("⚠️ {text}"));
            let _ = failed.send(text);
        }
    })
}

/// Shows notifications one by one. Failures are ignored: screen and log have the alert too.
fn desktop_queue() -> BackgroundQueue<Notification> {
    BackgroundQueue::start(|Notification { title, body, urgent }: Notification| {
        let _ = desktop::notify(&title, &body, urgent, NOTIFICATION_TIMEOUT);
    })
}
