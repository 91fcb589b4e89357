//! Limits of the machine that makes the load, met by a process of its own: they hold for all of its threads.

use crate::server::{Server, with_length, write};
use crate::{classes, closed, order, post, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::fs::File;
use std::process::Command;

/// Where the child finds the server.
const URL: &str = "CHAINMARK_TEST_URL";
/// Enough for what the engine makes sure of: 256 files and its connections.
const FILES: u64 = 300;
const ROOM: usize = 5;

#[test]
fn too_many_open_files_are_not_a_server_error() {
    let server = Server::answering(|_, stream| write(stream, &with_length("200 OK", "1")));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "limits::as_a_child_with_few_files", "--ignored", "--nocapture"]);
    let output = child.env(URL, &server.url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    assert!(server.connections() < ROOM);
}

#[test]
#[ignore = "takes nearly all files from its process; the test above runs it"]
fn as_a_child_with_few_files() {
    let url = std::env::var(URL).unwrap();
    let limit = Rlimit { current: Some(FILES), maximum: Some(FILES) };
    assert!(getrlimit(Resource::Nofile).maximum.is_none_or(|maximum| maximum >= FILES));
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    files.truncate(files.len() - ROOM);
    // The event queue and the timer use some of the descriptors, connections the rest.
    let mut order = order(&url, closed(8), vec![post("/", json!({}))]);
    order["give_up"] = json!({"slow_s": 1.0, "slow": 1, "failed": 1});
    let result = run(&order);
    drop(files);
    assert_eq!(result.ended, "time", "a server that was not asked has not failed");
    let message = "this process has too many open files; raise `ulimit -n`";
    assert_eq!(classes(&result), [("generator", None, message.to_owned())]);
    assert!(result.counts.ok > 0 && result.counts.failed >= 5, "{:?}", result.counts);
}
