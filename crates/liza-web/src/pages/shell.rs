//! The frame of every page: the header, the list of pages, the result of the last action.

use maud::{DOCTYPE, Markup, html};

use crate::region::Regions;
use crate::topic::Topic;

use super::context::PageContext;
use super::header;

const PAGES: [(&str, &str); 6] = [
    ("", "Board"),
    ("tasks", "Tasks"),
    ("agents", "Agents"),
    ("alerts", "Alerts"),
    ("log", "Log"),
    ("charts", "Charts"),
];

pub(super) fn shell(
    page: &PageContext<'_>,
    topic: &Topic,
    title: &str,
    regions: &Regions,
    content: &Markup,
) -> Markup {
    let links = &page.links;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Liza" }
                link rel="icon" href=(links.to("icon.svg"));
                link rel="stylesheet" href=(links.to("style.css"));
                script src=(links.to("live.js")) defer {}
            }
            body data-stream=(links.stream(topic)) {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    div.bar {
                        a.brand href=(links.to("")) { span.mark aria-hidden="true" {} "Liza" }
                        nav aria-label="Pages" {
                            ul {
                                @for (path, name) in PAGES {
                                    li { a href=(links.to(path)) aria-current=[(name == title).then_some("page")] { (name) } }
                                }
                            }
                        }
                        p #connection.connection { span.dot aria-hidden="true" {} span.text { "loading" } }
                    }
                    div #summary data-region="summary" { (regions.inner("summary")) }
                }
                div #announce.hidden-text data-region="announce" aria-live="polite" { (regions.inner("announce")) }
                main #main tabindex="-1" { (content) }
                div #result role="status" aria-live="polite" {}
                footer { "The same as " code { "liza tui" } ". Every action is a command that runs as you." }
            }
        }
    }
}

/// A page whose content does not change.
pub(super) fn still_page(page: &PageContext<'_>, title: &str, content: &Markup) -> Markup {
    let regions = Regions::new(header::regions(page));
    shell(page, &Topic::Other, title, &regions, content)
}
