//! Parses a node's response to a broadcast transaction.

use crate::record::Class;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// The content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A response to the request with that id. `message` is the node's error text for class [`Class::RpcError`], and
    /// the application's, if it gave one, for [`Class::CheckFailed`].
    Matched { sequence: u32, class: Class, check_code: u32, message: Option<String> },
    /// Not a response to any request of ours; the text is the message.
    Unmatched(String),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    result: Option<BroadcastResult<'a>>,
    #[serde(borrow)]
    error: Option<RpcError<'a>>,
}

#[derive(Deserialize)]
struct BroadcastResult<'a> {
    code: Option<u32>,
    #[serde(default, borrow)]
    log: Cow<'a, str>,
    #[serde(default, borrow)]
    codespace: Cow<'a, str>,
}

#[derive(Deserialize)]
struct RpcError<'a> {
    #[serde(default)]
    code: i64,
    #[serde(default, borrow)]
    message: Cow<'a, str>,
    #[serde(default)]
    data: Value,
}

/// Parses one message from the node. Never fails: unparsable messages are [`Answer::Unmatched`].
pub fn parse(message: &[u8]) -> Answer {
    let envelope: Envelope = match serde_json::from_slice(message) {
        Ok(envelope) => envelope,
        Err(error) => return Answer::Unmatched(format!("answer is not JSON-RPC: {error}")),
    };
    let verdict = classify(&envelope);
    let sequence = envelope.id.as_u64().and_then(|id| u32::try_from(id).ok());
    match (sequence, verdict) {
        (Some(sequence), Some((class, check_code, message))) => {
            Answer::Matched { sequence, class, check_code, message }
        }
        (None, Some((_, _, Some(text)))) => Answer::Unmatched(format!("answer without a request's id: {text}")),
        (None, _) => Answer::Unmatched("answer without a request's id".into()),
        (Some(_), None) => Answer::Unmatched("answer with neither a check code nor an error".into()),
    }
}

fn classify(envelope: &Envelope) -> Option<(Class, u32, Option<String>)> {
    if let Some(error) = &envelope.error {
        return Some(classify_error(error));
    }
    let result = envelope.result.as_ref()?;
    match result.code? {
        0 => Some((Class::Accepted, 0, None)),
        code => Some(match class_of_text(&result.log) {
            Some(class) => (class, code, None),
            None => (Class::CheckFailed, code, refusal(code, &result.codespace, &result.log)),
        }),
    }
}

fn classify_error(error: &RpcError) -> (Class, u32, Option<String>) {
    let data = error.data.as_str().map_or_else(|| error.data.to_string(), str::to_owned);
    // Newer nodes report a failed check as an error with the code in its text.
    for text in [data.as_str(), &error.message] {
        if let Some(code) = check_code_of_text(text) {
            return (Class::CheckFailed, code, refusal(code, quoted(text, "codespace='"), quoted(text, "log='")));
        }
    }
    if let Some(class) = class_of_text(&data).or_else(|| class_of_text(&error.message)) {
        return (class, 0, None);
    }
    let data = if error.data.is_null() { String::new() } else { format!(": {data}") };
    (Class::RpcError, 0, Some(format!("{} {}{data}", error.code, error.message)))
}

/// Why the application refused a transaction, if it states a reason.
fn refusal(code: u32, codespace: &str, log: &str) -> Option<String> {
    let space = if codespace.is_empty() { String::new() } else { format!(" of {codespace}") };
    (!log.is_empty()).then(|| format!("refused with code {code}{space}: {log}"))
}

/// The text between `begin` and the last quotation mark before the next field, or the end.
fn quoted<'a>(text: &'a str, begin: &str) -> &'a str {
    let tail = text.split_once(begin).map_or("", |(_, tail)| tail);
    let end = tail.find("', ").or_else(|| tail.rfind('\'')).unwrap_or(tail.len());
    &tail[..end]
}

fn class_of_text(text: &str) -> Option<Class> {
    if text.contains("mempool is full") {
        Some(Class::MempoolFull)
    } else if text.contains("tx already exists in cache") {
        Some(Class::InCache)
    } else {
        None
    }
}

/// The number after `code=` in a text about a transaction that the application found invalid.
fn check_code_of_text(text: &str) -> Option<u32> {
    let (_, tail) = text.split_once("is invalid: code=")?;
    let digits = tail.find(|character: char| !character.is_ascii_digit()).unwrap_or(tail.len());
    tail[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error_answer(data: &str) -> Answer {
        parse(
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-32603,"message":"Internal error","data":"{data}"}}}}"#
            )
            .as_bytes(),
        )
    }

    fn matched(class: Class, check_code: u32) -> Answer {
        Answer::Matched { sequence: 7, class, check_code, message: None }
    }

    #[test]
    fn an_accepted_transaction_is_recognized() {
        let text =
            r#"{"jsonrpc":"2.0","id":7,"result":{"code":0,"data":"","log":"","codespace":"","hash":"AAC30BB1A5"}}"#;
        assert_eq!(parse(text.as_bytes()), matched(Class::Accepted, 0));
    }

    #[test]
    fn a_failed_check_is_recognized_in_the_format_of_both_versions() {
        let v0_38 = r#"{"jsonrpc":"2.0","id":7,"result":{"code":2,"data":"","log":"","codespace":"","hash":"BA78"}}"#;
        assert_eq!(parse(v0_38.as_bytes()), matched(Class::CheckFailed, 2));
        let v1 = "broadcast error on transaction validation: tx BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF6\
                  1F20015AD is invalid: code=2, data=, log='', codespace=''";
        assert_eq!(error_answer(v1), matched(Class::CheckFailed, 2));
    }

    #[test]
    fn the_applications_reason_is_stored_in_the_format_of_both_versions() {
        let reason = "refused with code 13 of sdk: insufficient fees; got: 1stake: insufficient fee";
        let reason_of = |answer| match answer {
            Answer::Matched { class: Class::CheckFailed, check_code: 13, message, .. } => message,
            other => panic!("{other:?}"),
        };
        let v0_38 = r#"{"jsonrpc":"2.0","id":7,"result":{"code":13,"codespace":"sdk",
                       "log":"insufficient fees; got: 1stake: insufficient fee"}}"#;
        assert_eq!(reason_of(parse(v0_38.as_bytes())).as_deref(), Some(reason));
        let v1 = "tx BA78 is invalid: code=13, data=, log='insufficient fees; got: 1stake: insufficient fee', \
                  codespace='sdk'";
        assert_eq!(reason_of(error_answer(v1)).as_deref(), Some(reason));
    }

    #[test]
    fn a_full_mempool_and_a_cached_transaction_are_distinguished_from_errors() {
        let full = "mempool is full: number of txs 3 (max: 3), total txs bytes 60 (max: 67108864)";
        assert_eq!(error_answer(full), matched(Class::MempoolFull, 0));
        assert_eq!(error_answer("tx already exists in cache"), matched(Class::InCache, 0));
    }

    #[test]
    fn the_text_of_other_errors_is_stored_for_the_report() {
        let Answer::Matched { class, message, .. } = error_answer("illegal base64 data at input byte 0") else {
            panic!("the answer has the request's id")
        };
        assert_eq!(class, Class::RpcError);
        assert_eq!(message.unwrap(), "-32603 Internal error: illegal base64 data at input byte 0");
    }

    #[test]
    fn a_message_that_is_not_a_response_to_us_is_never_counted_as_one() {
        for text in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"id":-1,"result":{"code":0}}"#,
            r#"{"id":"7","result":{"code":0}}"#,
            r#"{"id":4294967296,"result":{"code":0}}"#,
            r#"{"id":7,"result":{}}"#,
            r#"{"id":7,"result":{"code":-1}}"#,
            r#"{"error":{"code":-32600,"message":"Invalid Request","data":"too large"}}"#,
        ] {
            assert!(matches!(parse(text.as_bytes()), Answer::Unmatched(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100), text in ".{0,40}", id: i64) {
            let quoted = serde_json::to_string(&text).unwrap();
            parse(&bytes);
            parse(format!(r#"{{"id":{id},"error":{{"code":{id},"message":{quoted},"data":{quoted}}}}}"#).as_bytes());
            parse(format!(r#"{{"id":{id},"result":{{"code":{id},"log":{quoted}}}}}"#).as_bytes());
            parse(format!(r#"{{"id":{quoted},"error":{{"data":"tx is invalid: code={text}"}}}}"#).as_bytes());
        }
    }
}
