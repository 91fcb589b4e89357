//! HTTP loads over real sockets, against servers that misbehave on demand.

mod faults;
mod limits;
mod loops;
mod secure;
mod server;

use chainmark_load::http::{HttpLoad, HttpResult, LoadConfig};
use serde_json::{Value, json};

/// An order of short steps, which tests may change.
fn order(url: &str, mode: Value, requests: Vec<Value>) -> Value {
    json!({
        "url": url, "requests": requests, "mode": mode, "duration_s": 0.4, "drain_s": 2.0, "timeout_s": 5.0, "seed": 1,
        "error_pointers": ["/code", "/message"],
    })
}

fn closed(clients: u32) -> Value {
    json!({"closed": {"clients": clients}})
}

fn open(rate_per_s: f64, connections: u32) -> Value {
    json!({"open": {"rate_per_s": rate_per_s, "schedule": "even", "connections": connections}})
}

fn post(path: &str, expect: Value) -> Value {
    json!({"method": "POST", "path": path, "body": "{}", "expect": expect})
}

fn make(order: &Value) -> HttpLoad {
    HttpLoad::new(LoadConfig::from_json(&order.to_string()).unwrap()).unwrap()
}

/// Runs it to its end; that its sums are right is checked within.
fn run(order: &Value) -> HttpResult {
    let load = make(order);
    load.start().unwrap();
    load.finish().unwrap()
}

/// Class, status and detail of the failures of the window, in order.
fn classes(result: &HttpResult) -> Vec<(&'static str, Option<u16>, String)> {
    let mut classes: Vec<_> =
        result.classes.iter().map(|class| (class.class, class.status, class.detail.clone())).collect();
    classes.sort();
    classes
}
