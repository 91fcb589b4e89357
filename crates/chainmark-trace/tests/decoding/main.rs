//! Lines and files of logs, decoded.

mod divided;
mod files;
mod lines;
mod log_lines;
mod messages;
mod ranges;
mod repeats;
