//! How the pages look and whether everyone can use them: three widths, light and dark, and the rules of axe.

use std::fs;

use serde_json::json;

use crate::boards::rich_project;
use crate::browser::{Browser, target};
use crate::fixture::Web;

const PAGES: [(&str, &str); 9] = [
    ("board", ""),
    ("tasks", "tasks"),
    ("task", "task/retry-users"),
    ("blocked-task", "task/retry-search"),
    ("agents", "agents"),
    ("agent", "agent/coder-1"),
    ("alerts", "alerts"),
    ("log", "log"),
    ("charts", "charts"),
];

const WIDTHS: [(&str, u32, u32); 3] = [("phone", 390, 844), ("tablet", 820, 1180), ("desktop", 1440, 900)];

/// Covers: UI-02
#[test]
fn needs_chromium_pages_fit_every_width_in_light_and_dark() {
    let project = rich_project();
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    let base = browser.eval("location.href").as_str().unwrap().to_owned();
    for (name, page) in PAGES {
        for (device, width, height) in WIDTHS {
            for scheme in ["light", "dark"] {
                browser.resize(width, height, scheme);
                browser.open(&format!("{base}{page}"));
                browser.wait_for("document.querySelector('#connection.live')");
                let wide = browser.eval("document.scrollingElement.scrollWidth");
                assert!(wide.as_u64().unwrap() <= u64::from(width), "{name} on a {device} is {wide} wide");
                let small = "[...document.querySelectorAll('button, nav a, summary')].filter(e => e.offsetParent && e.offsetHeight < 24).length";
                assert_eq!(browser.eval(small), 0, "{name} on a {device}: too small to touch");
                browser.picture(&target().join(format!("web-pictures/{name}-{device}-{scheme}.png")));
            }
        }
    }
    browser.check_quiet(web.port());
}

/// Covers: UI-02
#[test]
fn needs_chromium_and_axe_everyone_can_use_every_page() {
    let axe = target().join("axe/node_modules/axe-core/axe.min.js");
    let axe = fs::read_to_string(&axe).unwrap_or_else(|error| panic!("{}: {error}", axe.display()));
    let project = rich_project();
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    let base = browser.eval("location.href").as_str().unwrap().to_owned();
    for (name, page) in PAGES {
        for (width, scheme) in [(390, "dark"), (1440, "light"), (1440, "dark")] {
            browser.resize(width, 900, scheme);
            browser.open(&format!("{base}{page}"));
            browser.wait_for("document.querySelector('#connection.live')");
            // What is closed is checked too.
            browser.eval("document.querySelectorAll('details').forEach(e => e.open = true)");
            browser.eval(&axe);
            let run = "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join(' | ')))";
            let violations = browser.eval(run);
            assert_eq!(violations, json!([]), "{name} at {width}, {scheme}");
        }
    }
}
