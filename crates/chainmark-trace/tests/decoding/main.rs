//! Lines and files of logs, decoded.

mod files;
mod lines;
mod log_lines;
mod messages;
mod repeats;
