//! A real headless Chromium, driven by its own protocol through two pipes.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::TestProject;

/// The longest that anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// A browser with one page; ended with the test.
pub(crate) struct Browser {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    /// Errors of scripts, of the console and of the network.
    pub(crate) errors: Vec<String>,
    /// The addresses that were asked for something.
    pub(crate) requests: Vec<String>,
}

impl Browser {
    /// Starts it; its files are below the project's home.
    pub(crate) fn start(project: &TestProject) -> Self {
        let (input, output) = (project.home().join("to-browser"), project.home().join("from-browser"));
        for pipe in [&input, &output] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let mut shell = project.command("sh");
        shell.args(["-c", "exec chromium \"$@\" 3<to-browser 4>from-browser", "sh"]);
        shell.current_dir(project.home()).args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            "--no-first-run",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP evil.example 127.0.0.1",
            "--remote-debugging-pipe",
        ]);
        shell.arg(format!("--user-data-dir={}", project.home().join("browser").display()));
        let child = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let commands = OpenOptions::new().write(true).open(input).unwrap();
        let output = BufReader::new(File::open(output).unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (errors, requests) = (Vec::new(), Vec::new());
        let mut browser = Self { child, commands, messages, sent: 0, session: None, errors, requests };
        let page = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &attached);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, &json!({}));
        }
        browser
    }

    /// Calls a method of the browser's protocol; returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let answer = self.request(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The whole answer to a call.
    #[track_caller]
    fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.messages.recv_timeout(LONG).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.sent {
                return answer;
            }
            self.note(&answer);
        }
    }

    /// Keeps what a page must not do.
    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.errors.push(parameters["exceptionDetails"].to_string()),
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
                self.errors.push(parameters["entry"].to_string());
            }
            "Runtime.consoleAPICalled" if parameters["type"] == "error" => {
                self.errors.push(parameters["args"].to_string());
            }
            "Network.requestWillBeSent" => {
                self.requests.push(parameters["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }

    /// Opens an address and waits until the page is there.
    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", &json!({"url": address}));
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// What a script gives.
    #[track_caller]
    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let parameters = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", &parameters);
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        result["result"]["value"].clone()
    }

    /// Whether a condition holds on the page; no if the page is replaced meanwhile.
    #[track_caller]
    fn holds(&mut self, condition: &str) -> bool {
        let parameters = json!({"expression": condition, "returnByValue": true});
        let answer = self.request("Runtime.evaluate", &parameters);
        let replaced = answer["error"]["message"].as_str().is_some_and(|why| why.contains("navigated"));
        assert!(answer["error"].is_null() || replaced, "{condition}: {answer}");
        answer["result"]["result"]["value"] == true
    }

    /// Waits until a condition holds on the page.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, condition: &str) {
        let end = Instant::now() + LONG;
        // A page that is just being replaced has no document.
        let condition =
            format!("(() => {{ try {{ return !!({condition}); }} catch {{ return false; }} }})()");
        while !self.holds(&condition) {
            let page = || "never on the page";
            assert!(Instant::now() < end, "{}: {condition}\n{}", page(), self.errors.join("\n"));
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, text: &str) {
        self.wait_for(&format!("document.body.textContent.includes({})", json!(text)));
    }

    /// The text of the page.
    pub(crate) fn text(&mut self) -> String {
        self.eval("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Presses a key, as a person does.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            " " => 32,
            other => panic!("{other}"),
        };
        let text = if key == "Enter" {
            "\r"
        } else if key == " " {
            " "
        } else {
            ""
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let parameters =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", &parameters);
        }
    }

    /// Types a text where the cursor is.
    pub(crate) fn enter_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Shows the page at that width, in light or dark colours.
    pub(crate) fn resize(&mut self, width: u32, height: u32, scheme: &str) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &media);
    }

    /// A picture of the whole page.
    pub(crate) fn picture(&mut self, path: &Path) {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.call("Page.captureScreenshot", &parameters);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, decoded(picture["data"].as_str().unwrap())).unwrap();
    }

    /// Checks that no script failed and that nothing was asked of another server.
    #[track_caller]
    pub(crate) fn check_quiet(&mut self, port: u16) {
        // An answer to this comes after everything that happened before.
        self.eval("1");
        assert!(self.errors.is_empty(), "{:#?}", self.errors);
        let own = format!("http://127.0.0.1:{port}/");
        let foreign: Vec<&String> = self.requests.iter().filter(|url| !url.starts_with(&own)).collect();
        assert!(foreign.iter().all(|url| url.starts_with("about:")), "{foreign:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder for what tests install or make.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

/// The bytes of a text in base 64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').collect();
    let mut decoded = Vec::new();
    for group in bytes.chunks(4) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 6 | u32::from(value(*byte)));
        let bits = bits << (6 * (4 - group.len()));
        decoded.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    decoded
}
