//! Manual pages and shell completions from the same clap definition as the flags.

use clap_complete::Shell;
use std::fmt::Write as _;

/// What `--generate` can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Page {
    /// The manual page, section 1
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
    /// Completions for elvish
    Elvish,
}

/// The bytes of `page` for `command`: a function of the definition alone.
pub fn write_page(command: clap::Command, page: Page) -> Vec<u8> {
    match page {
        Page::Man => manual(command),
        Page::Bash => completions(command, Shell::Bash),
        Page::Zsh => completions(command, Shell::Zsh),
        Page::Fish => completions(command, Shell::Fish),
        Page::Elvish => completions(command, Shell::Elvish),
    }
}

fn completions(mut command: clap::Command, shell: Shell) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut out);
    out
}

fn manual(mut command: clap::Command) -> Vec<u8> {
    let tail = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let version = command.get_version().unwrap_or_default().to_owned();
    let name = command.get_name().to_owned();
    let usage = command.render_usage().to_string();
    let man = clap_mangen::Man::new(command.after_long_help(None)).date("").source(format!("{name} {version}"));
    let mut out = Vec::new();
    // Writing into memory cannot fail.
    let _ = man.render_title(&mut out).and_then(|()| man.render_name_section(&mut out));
    let line = usage.trim_start_matches("Usage:").trim();
    out.extend(format!(".SH SYNOPSIS\n{}\n", literal(line)).into_bytes());
    let _ = man.render_description_section(&mut out).and_then(|()| man.render_options_section(&mut out));
    out.extend(tail_sections(&tail).into_bytes());
    out
}

/// `Examples:` and `Exit status:` with their indented lines become sections of literal text.
fn tail_sections(tail: &str) -> String {
    let mut out = String::new();
    let mut is_open = false;
    for line in tail.lines() {
        let is_head = !line.starts_with(' ') && line.ends_with(':');
        if is_head {
            if is_open {
                out.push_str(".fi\n");
            }
            is_open = true;
            // Writing into a String cannot fail.
            let _ = write!(out, ".SH \"{}\"\n.nf\n", line.trim_end_matches(':').to_uppercase());
        } else if !(line.is_empty() && out.ends_with(".nf\n")) {
            out.push_str(&literal(line.strip_prefix("  ").unwrap_or(line)));
            out.push('\n');
        }
    }
    if is_open {
        out.push_str(".fi\n");
    }
    out
}

/// Text that roff prints as it is.
fn literal(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_text_survives_roff() {
        assert_eq!(literal("m2m-hash --check a\\b"), "m2m\\-hash \\-\\-check a\\eb");
        assert_eq!(literal(".x 'y'"), "\\&.x \\(aqy\\(aq");
    }

    #[test]
    fn sections_close() {
        let text = tail_sections("Examples:\n  a b\n\nExit status:\n  0  done");
        assert_eq!(text, ".SH \"EXAMPLES\"\n.nf\na b\n\n.fi\n.SH \"EXIT STATUS\"\n.nf\n0  done\n.fi\n");
    }
}
