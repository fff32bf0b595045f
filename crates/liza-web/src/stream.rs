//! The stream of changes of one open page, as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream::unfold;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::hub::TopicState;

/// The interval of signs of life to a page without changes: so a closed page is noticed.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// The longest life of a stream; the browser connects again.
const STREAM_LIFE: Duration = Duration::from_secs(15 * 60);

struct PageStream {
    states: watch::Receiver<Arc<TopicState>>,
    /// The number of the state that was sent last.
    last: Option<u64>,
    end: Instant,
}

/// An answer that stays open and sends every change.
pub(crate) fn respond(states: watch::Receiver<Arc<TopicState>>) -> Response<Body> {
    let stream = PageStream { states, last: None, end: Instant::now() + STREAM_LIFE };
    let events = unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok::<Bytes, std::io::Error>(event), stream))
    });
    let mut response = Response::new(Body::from_stream(events));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

impl PageStream {
    /// The next event; none at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if self.last.is_some() {
            if Instant::now() >= self.end {
                return None;
            }
            let wait = timeout_at(Instant::now() + SIGN_OF_LIFE, self.states.changed());
            match wait.await {
                Ok(Ok(())) => {}
                // The server ends.
                Ok(Err(_)) => return None,
                Err(_) => return Some(Bytes::from_static(b": alive\n\n")),
            }
        }
        let state = Arc::clone(&self.states.borrow_and_update());
        let event = state.event_after(self.last);
        self.last = Some(state.number);
        Some(event)
    }
}
