//! Whether a response is correct.

use super::error::HttpError;
use super::order::{CheckConfig, ExpectConfig, TypeName, check_pointer};
use serde_json::Value;
use serde_json::error::Category;

/// How a gzip file begins.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// Longer values are cut in messages.
const SHOWN_CHARACTERS: usize = 80;

/// The correct response to one request.
#[derive(Debug)]
pub(super) struct Expectation {
    statuses: Box<[u16]>,
    json: bool,
    checks: Box<[Check]>,
    contains: Option<Box<str>>,
}

/// The error in a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    NotJson {
        reason: String,
    },
    /// `what` is the same for all responses that fail this check; `example` is of this response.
    Wrong {
        what: String,
        example: String,
    },
}

#[derive(Debug)]
struct Check {
    pointer: Box<str>,
    condition: Condition,
}

#[derive(Debug)]
enum Condition {
    Is(Value),
    Type(TypeName),
    Absent,
    Each(Box<Check>),
}

impl Expectation {
    /// `index` is the request's place in the order, for messages.
    pub fn new(index: usize, order: &ExpectConfig) -> Result<Self, HttpError> {
        let name = format!("requests[{index}].expect");
        let refuse = |member: &str, value: String, condition| {
            Err(HttpError::Value { name: format!("{name}.{member}"), value, condition })
        };
        if let Some(status) = order.status.iter().find(|&&status| !(200..=599).contains(&status)) {
            return refuse("status", status.to_string(), "final statuses, 200 to 599");
        }
        if order.contains.as_deref() == Some("") {
            return refuse("contains", "empty".into(), "a text of at least one character");
        }
        let checks: Result<_, _> = order.checks.iter().map(|check| Check::new(&name, check)).collect();
        Ok(Self {
            statuses: order.status.clone().into(),
            json: order.json,
            checks: checks?,
            contains: order.contains.as_deref().map(Into::into),
        })
    }

    pub fn admits(&self, status: u16) -> bool {
        if self.statuses.is_empty() { (200..300).contains(&status) } else { self.statuses.contains(&status) }
    }

    /// Whether the body matters.
    pub fn needs_body(&self) -> bool {
        self.json || self.contains.is_some() || !self.checks.is_empty()
    }

    /// The first error.
    pub fn find_fault(&self, body: &[u8]) -> Option<Fault> {
        if let Some(text) = &self.contains
            && !holds(body, text.as_bytes())
        {
            return Some(Fault::Wrong {
                what: format!("the body does not contain {text:?}"),
                example: first_line(body),
            });
        }
        if !self.json && self.checks.is_empty() {
            return None;
        }
        match serde_json::from_slice(body) {
            Err(error) => Some(Fault::NotJson { reason: not_json(body, &error) }),
            Ok(value) => self.checks.iter().find_map(|check| check.find_fault(&value, "")),
        }
    }
}

fn not_json(body: &[u8], error: &serde_json::Error) -> String {
    if body.is_empty() {
        return "the body is empty".into();
    }
    match error.classify() {
        // serde_json has a limit of 128 levels, and then reports a syntax error.
        Category::Syntax if error.to_string().starts_with("recursion limit") => {
            "the body is JSON with more than 128 levels, which is not supported".into()
        }
        Category::Eof => "the body is not JSON: it is incomplete".into(),
        _ if body.starts_with(&GZIP) => "the body is not JSON: it is gzip without a Content-Encoding".into(),
        _ => "the body is not JSON".into(),
    }
}

/// Naive search: bodies are checked once each.
fn holds(body: &[u8], text: &[u8]) -> bool {
    body.windows(text.len()).any(|window| window == text)
}

/// The beginning of a text body, for messages; of an HTML page its title, because its first line is the same in all.
pub(super) fn first_line(body: &[u8]) -> String {
    let line = html_title(body)
        .unwrap_or(body)
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    cut(&String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN_CHARACTERS)]))
}

/// What is between `<title>` and its end, within the first kilobytes; none of a body that is not HTML.
fn html_title(body: &[u8]) -> Option<&[u8]> {
    const BEGIN: &[u8] = b"<title>";
    let head = &body[..body.len().min(16 * SHOWN_CHARACTERS)];
    if !head.trim_ascii_start().starts_with(b"<") {
        return None;
    }
    let begin = head.windows(BEGIN.len()).position(|window| window.eq_ignore_ascii_case(BEGIN))? + BEGIN.len();
    let title = &head[begin..];
    let end = title.iter().position(|&byte| byte == b'<')?;
    Some(&title[..end]).filter(|title| !title.trim_ascii().is_empty())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Check {
    fn new(name: &str, order: &CheckConfig) -> Result<Self, HttpError> {
        check_pointer(&format!("{name}.checks"), &order.pointer)?;
        let condition = match (&order.is, order.kind, order.absent, &order.each) {
            (Some(value), None, None, None) => Condition::Is(value.clone()),
            (None, Some(kind), None, None) => Condition::Type(kind),
            (None, None, Some(true), None) => Condition::Absent,
            (None, None, None, Some(each)) => Condition::Each(Box::new(Self::new(name, each)?)),
            _ => {
                let condition = "a pointer with exactly one of is, type, absent (true) and each";
                let value = format!("for {:?}", order.pointer);
                return Err(HttpError::Value { name: format!("{name}.checks"), value, condition });
            }
        };
        Ok(Self { pointer: order.pointer.as_str().into(), condition })
    }

    /// `place` is the position of `value` in the response.
    fn find_fault(&self, value: &Value, place: &str) -> Option<Fault> {
        let result = value.pointer(&self.pointer);
        let fault = |what: &str, example: String| {
            let place = format!("{place}{}", self.pointer);
            let place = if place.is_empty() { "the body" } else { &place };
            Some(Fault::Wrong { what: format!("{place} {what}"), example })
        };
        match (&self.condition, result) {
            (Condition::Absent, None) => None,
            (Condition::Absent, Some(result)) => fault("is present", cut(&result.to_string())),
            (_, None) => fault("is missing", String::new()),
            (Condition::Is(wanted), Some(result)) if equal(wanted, result) => None,
            (Condition::Is(wanted), Some(result)) => {
                fault("is wrong", format!("{} instead of {}", cut(&result.to_string()), cut(&wanted.to_string())))
            }
            (Condition::Type(kind), Some(result)) if kind.admits(result) => None,
            (Condition::Type(kind), Some(result)) => {
                fault(&format!("is not {}", kind.with_article()), cut(&result.to_string()))
            }
            (Condition::Each(each), Some(Value::Array(elements))) => {
                let place = format!("{place}{}/*", self.pointer);
                elements.iter().find_map(|element| each.find_fault(element, &place))
            }
            (Condition::Each(_), Some(result)) => fault("is not an array", cut(&result.to_string())),
        }
    }
}

/// 5 and 5.0 are the same number, which serde_json does not say.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

impl TypeName {
    fn admits(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::IntegerText => value.as_str().is_some_and(|text| {
                let digits = text.strip_prefix('-').unwrap_or(text);
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            }),
        }
    }

    fn with_article(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::IntegerText => "a string of digits",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(expect: &str, body: &str) -> Option<Fault> {
        let order: ExpectConfig = serde_json::from_str(expect).unwrap();
        Expectation::new(0, &order).unwrap().find_fault(body.as_bytes())
    }

    fn wrong(expect: &str, body: &str) -> (String, String) {
        match fault(expect, body) {
            Some(Fault::Wrong { what, example }) => (what, example),
            other => panic!("{other:?}"),
        }
    }

    /// Every page of nginx begins with `<html>`, which says nothing to its reader.
    #[test]
    fn an_html_page_is_shown_by_its_title() {
        let page = b"<html>\r\n<head><TITLE> 400 No required SSL certificate was sent</TITLE></head>";
        assert_eq!(first_line(page), "400 No required SSL certificate was sent");
        assert_eq!(first_line(b"<html>\n<title></title>"), "<html>");
        assert_eq!(first_line(b"<title>never ends"), "<title>never ends");
        assert_eq!(first_line(b"\n a <title>no page</title>"), "a <title>no page</title>");
    }

    #[test]
    fn checks_pass_correct_responses() {
        let body = r#"{"block":{"index":5,"n":null},"ops":[{"value":"-12"},{"value":"3"}],"ok":true,"x":1.5,"s":"t"}"#;
        for expect in [
            r#"{"json":true}"#,
            r#"{"contains":"\"index\":5"}"#,
            r#"{"checks":[{"pointer":"/block/index","is":5},{"pointer":"/block/index","is":5.0}]}"#,
            r#"{"checks":[{"pointer":"/block/n","is":null},{"pointer":"/error","absent":true}]}"#,
            r#"{"checks":[{"pointer":"","type":"object"},{"pointer":"/ops","type":"array"}]}"#,
            r#"{"checks":[{"pointer":"/ok","type":"boolean"},{"pointer":"/x","type":"number"}]}"#,
            r#"{"checks":[{"pointer":"/s","type":"string"},{"pointer":"/ops/0/value","type":"integer_text"}]}"#,
            r#"{"checks":[{"pointer":"/ops","each":{"pointer":"/value","type":"integer_text"}}]}"#,
        ] {
            assert_eq!(fault(expect, body), None, "{expect}");
        }
    }

    #[test]
    fn checks_name_the_error_in_a_response_with_status_200() {
        let body = r#"{"code":12,"index":5,"list":[{"v":"1"},{"v":"x"},{}],"text":"-"}"#;
        let pairs = [
            (r#"{"pointer":"/code","absent":true}"#, "/code is present", "12"),
            (r#"{"pointer":"/index","is":6}"#, "/index is wrong", "5 instead of 6"),
            (r#"{"pointer":"/index","is":null}"#, "/index is wrong", "5 instead of null"),
            (r#"{"pointer":"/block","type":"object"}"#, "/block is missing", ""),
            (r#"{"pointer":"/index","type":"array"}"#, "/index is not an array", "5"),
            (r#"{"pointer":"/text","type":"integer_text"}"#, "/text is not a string of digits", "\"-\""),
            (r#"{"pointer":"/index","each":{"pointer":"","is":1}}"#, "/index is not an array", "5"),
            (
                r#"{"pointer":"/list","each":{"pointer":"/v","type":"integer_text"}}"#,
                "/list/*/v is not a string of digits",
                "\"x\"",
            ),
            (r#"{"pointer":"","type":"array"}"#, "the body is not an array", body),
        ];
        for (check, what, example) in pairs {
            let result = wrong(&format!(r#"{{"checks":[{check}]}}"#), body);
            assert_eq!(result, (what.to_owned(), example.to_owned()));
        }
        assert_eq!(wrong(r#"{"contains":"abc"}"#, "a\nb").0, "the body does not contain \"abc\"");
        for body in ["", "<html>", r#"{"a":"#, "{} x"] {
            assert!(matches!(fault(r#"{"json":true}"#, body), Some(Fault::NotJson { .. })), "{body}");
        }
    }

    #[test]
    fn an_empty_or_ambiguous_check_is_rejected() {
        for check in [
            r#"{"pointer":"/a"}"#,
            r#"{"pointer":"/a","absent":false}"#,
            r#"{"pointer":"a","is":1}"#,
            r#"{"pointer":"/a","is":1,"type":"number"}"#,
            r#"{"pointer":"/a","each":{"pointer":"/b"}}"#,
        ] {
            let order: ExpectConfig = serde_json::from_str(&format!(r#"{{"checks":[{check}]}}"#)).unwrap();
            assert!(Expectation::new(3, &order).unwrap_err().to_string().contains("requests[3].expect.checks"));
        }
    }
}
