//! The routes. Every answer passes through `guard`: it checks the request before anything else looks at it,
//! and gives all answers the same strict headers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use liza_core::model::{AgentId, TaskId};
use liza_core::text::visible;
use maud::Markup;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::access::{Access, Denied};
use crate::actions::{self, ActionForm, ActionOutcome, ActionTurns};
use crate::hub::Hub;
use crate::pages::log::LogFilter;
use crate::pages::{self, PageContext};
use crate::stream;
use crate::topic::Topic;

/// The most bytes of a request's body.
const BODY_BYTES: usize = 64 << 10;

/// The longest time in which a page is made.
const PAGE_TIME: Duration = Duration::from_secs(30);

/// The data that the handlers of requests share.
pub(crate) struct Site {
    pub(crate) access: Access,
    pub(crate) hub: Arc<Hub>,
    pub(crate) turns: ActionTurns,
    /// A place for each slow page that may be made at once.
    pub(crate) slow_pages: Arc<Semaphore>,
}

type Shared = State<Arc<Site>>;
type Answer = Response<Body>;

pub(crate) fn router(site: &Arc<Site>) -> Router {
    let at = |path: &str| site.hub.links.to(path);
    Router::new()
        .route("/", get(enter))
        .route(&at(""), get(|site: Shared| async move { live(&site, &Topic::Board) }))
        .route(&at("tasks"), get(|site: Shared| async move { live(&site, &Topic::Tasks) }))
        .route(&at("agents"), get(|site: Shared| async move { live(&site, &Topic::Agents) }))
        .route(&at("alerts"), get(|site: Shared| async move { live(&site, &Topic::Alerts) }))
        .route(&at("charts"), get(|site: Shared| async move { live(&site, &Topic::Charts) }))
        .route(&at("log"), get(log))
        .route(&at("task/{task}"), get(task))
        .route(&at("task/{task}/diff"), get(diff))
        .route(&at("agent/{agent}"), get(agent))
        .route(&at("session/{name}"), get(session))
        .route(&at("live/{topic}"), get(live_topic))
        .route(&at("live/task/{task}"), get(live_task))
        .route(&at("live/agent/{agent}"), get(live_agent))
        .route(&at("act"), post(act))
        .route(&at("style.css"), get(|| async { asset("text/css", include_str!("../assets/style.css")) }))
        .route(&at("live.js"), get(|| async { asset("text/javascript", include_str!("../assets/live.js")) }))
        .route(&at("icon.svg"), get(|| async { asset("image/svg+xml", include_str!("../assets/icon.svg")) }))
        .fallback(|| async { plain(StatusCode::NOT_FOUND, "There is no such page.") })
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(from_fn_with_state(Arc::clone(site), guard))
        .with_state(Arc::clone(site))
}

/// Checks a request, and gives its answer the headers that every answer has.
async fn guard(State(site): Shared, request: Request, next: Next) -> Answer {
    let entering = request.uri().path() == "/";
    let allowed = site
        .access
        .check_source(request.method(), request.headers())
        .and_then(|()| if entering { Ok(()) } else { site.access.check_cookie(request.headers()) });
    let mut answer = match allowed {
        Ok(()) => next.run(request).await,
        Err(denied) => refuse(denied),
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}

const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("cache-control", "no-store"),
];

fn refuse(denied: Denied) -> Answer {
    match denied {
        Denied::ForeignHost => plain(StatusCode::FORBIDDEN, "This server answers to 127.0.0.1 only."),
        Denied::ForeignOrigin => plain(StatusCode::FORBIDDEN, "The request comes from another site."),
        Denied::NoCookie | Denied::BadToken => plain(
            StatusCode::UNAUTHORIZED,
            "This address is not valid or has expired: each works once, within a minute.\n\
             For a new one, press Enter in the terminal of liza web, or start it again.",
        ),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

fn asset(kind: &'static str, text: &'static str) -> Answer {
    ([(header::CONTENT_TYPE, format!("{kind}; charset=utf-8"))], text).into_response()
}

fn page(markup: Option<Markup>) -> Answer {
    let Some(markup) = markup else { return plain(StatusCode::NOT_FOUND, "There is no such page.") };
    let html = visible(&markup.0).into_owned();
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Makes a page that reads files or asks git, without making others wait.
async fn slow_page(
    site: Arc<Site>,
    make: impl FnOnce(&PageContext<'_>) -> Option<Markup> + Send + 'static,
) -> Answer {
    let places = Arc::clone(&site.slow_pages);
    let made = async move {
        let place = places.acquire_owned().await;
        let making = tokio::task::spawn_blocking(move || {
            let markup = make(&site.hub.page(&site.hub.snapshot()));
            drop(place);
            markup
        });
        making.await
    };
    match tokio::time::timeout(PAGE_TIME, made).await {
        Ok(Ok(markup)) => page(markup),
        Ok(Err(_)) => plain(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be created."),
        Err(_) => plain(StatusCode::GATEWAY_TIMEOUT, "The page took too long."),
    }
}

#[derive(Deserialize)]
struct Entry {
    token: Option<String>,
}

/// Exchanges the token of the address for a cookie.
async fn enter(State(site): Shared, Query(entry): Query<Entry>) -> Answer {
    let token = entry.token.unwrap_or_default();
    match site.access.exchange(&token, std::time::Instant::now()) {
        Ok(cookie) => {
            let mut answer = StatusCode::SEE_OTHER.into_response();
            answer.headers_mut().insert(header::SET_COOKIE, cookie);
            if let Ok(board) = HeaderValue::from_str(&site.hub.links.to("")) {
                answer.headers_mut().insert(header::LOCATION, board);
            }
            answer
        }
        Err(denied) => refuse(denied),
    }
}

fn live(site: &Site, topic: &Topic) -> Answer {
    page(pages::live_page(topic, &site.hub.page(&site.hub.snapshot())))
}

async fn task(State(site): Shared, Path(task): Path<String>) -> Answer {
    let Ok(task) = task.parse::<TaskId>() else { return page(None) };
    slow_page(site, move |page| pages::live_page(&Topic::Task(task), page)).await
}

async fn diff(State(site): Shared, Path(task): Path<String>) -> Answer {
    let Ok(task) = task.parse::<TaskId>() else { return page(None) };
    slow_page(site, move |page| pages::diff::page(page, &task)).await
}

async fn agent(State(site): Shared, Path(agent): Path<String>) -> Answer {
    let Ok(agent) = agent.parse::<AgentId>() else { return page(None) };
    slow_page(site, move |page| pages::live_page(&Topic::Agent(agent), page)).await
}

async fn session(State(site): Shared, Path(name): Path<String>) -> Answer {
    slow_page(site, move |page| pages::session::page(page, &name)).await
}

async fn log(State(site): Shared, Query(filter): Query<LogFilter>) -> Answer {
    slow_page(site, move |page| Some(pages::log::page(page, &filter))).await
}

async fn live_topic(State(site): Shared, Path(topic): Path<String>) -> Answer {
    let topic = match topic.as_str() {
        "board" => Topic::Board,
        "tasks" => Topic::Tasks,
        "agents" => Topic::Agents,
        "alerts" => Topic::Alerts,
        "charts" => Topic::Charts,
        "other" => Topic::Other,
        _ => return page(None),
    };
    stream::respond(site.hub.subscribe(&topic))
}

async fn live_task(State(site): Shared, Path(task): Path<String>) -> Answer {
    match task.parse::<TaskId>() {
        // Only tasks that exist: a stream for each invented name would use up memory.
        Ok(task) if site.hub.snapshot().task(&task).is_some() => {
            stream::respond(site.hub.subscribe(&Topic::Task(task)))
        }
        Ok(_) | Err(_) => page(None),
    }
}

async fn live_agent(State(site): Shared, Path(agent): Path<String>) -> Answer {
    match agent.parse::<AgentId>() {
        Ok(agent) if site.hub.snapshot().agent(agent).is_some() => {
            stream::respond(site.hub.subscribe(&Topic::Agent(agent)))
        }
        // One that is gone prints nothing more.
        Ok(_) => stream::respond(site.hub.subscribe(&Topic::Other)),
        Err(_) => page(None),
    }
}

async fn act(State(site): Shared, headers: HeaderMap, form: axum::Form<ActionForm>) -> Answer {
    let snapshot = site.hub.snapshot();
    let result = actions::perform(Arc::clone(&site.hub.seat), &snapshot, &site.turns, &form.0).await;
    let status = match result.outcome {
        ActionOutcome::Done | ActionOutcome::Running => StatusCode::OK,
        ActionOutcome::NotDone | ActionOutcome::Failed => StatusCode::CONFLICT,
    };
    // The page itself shows the result; without a script, the result is a page.
    let markup = match headers.contains_key("x-fragment") {
        true => pages::result::fragment(&result),
        false => pages::result::page(&site.hub.page(&snapshot), &result),
    };
    let mut answer = page(Some(markup));
    *answer.status_mut() = status;
    answer
}
