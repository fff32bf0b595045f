//! A confined session and the pages of the human: it finds the port, and is not served.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use crate::fixture::{Bench, CODER};

/// Connects to every port of this machine that somebody listens on, and looks for secrets of other processes.
const SEARCH: &str = r#"
cat > ask.sh <<'END'
grep -alE 'token=[0-9a-f]{64}|liza=[0-9a-f]{64}' /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null > secrets
while read -r _ local _ state _; do
  [ "$state" = 0A ] && [ "${local%%:*}" = 0100007F ] || continue
  port=$((16#${local##*:}))
  request="GET / HTTP/1.1\r\nHost: 127.0.0.1:$port\r\nConnection: close\r\n\r\n"
  answer=$( (exec 3<>/dev/tcp/127.0.0.1/$port; printf "$request" >&3; timeout 10 head -c 40 <&3) 2>/dev/null | tr -d '\r\n')
  echo "$port answered: $answer"
done < /proc/net/tcp > answers
END
bash ask.sh
git add . && git commit -qm search
"#;

/// Covers: UI-02, IS-02, RO-04
#[test]
#[cfg(target_os = "linux")]
fn a_confined_session_does_not_see_the_port_from_a_room_and_is_not_served_without_one() {
    search_for_the_pages("sandbox: auto", false);
    search_for_the_pages("sandbox: auto\nsandbox_max_abi: 100", true);
}

fn search_for_the_pages(config: &str, is_found: bool) {
    let bench = Bench::new(config, &[("c", &format!("{SEARCH}\n{CODER}"))]);
    bench.project.add_task("t1");
    let mut program = bench.project.program();
    let mut web = program.args(["web"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(web.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let host = address.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let port = host.rsplit_once(':').unwrap().1;
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", bench.outputs());
    let commit = bench.task("t1").review_commit.unwrap();
    let file = |name: &str| bench.project.git(&["show", &format!("{commit}:{name}")]);
    let answers = file("answers");
    let own = answers.lines().find(|line| line.starts_with(&format!("{port} answered:")));
    // Not even a refusal.
    let expected = is_found.then(|| format!("{port} answered:"));
    assert_eq!(own.map(|line| line.trim_end().to_owned()), expected, "{config}: {answers}");
    assert_eq!(file("secrets"), "");
    // A process outside gets an answer to the same request.
    let mut stream = TcpStream::connect(&host).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    web.kill().unwrap();
    web.wait().unwrap();
}
