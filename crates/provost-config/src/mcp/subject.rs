//! What the calls of a server's tool are about, as the user has set it.

use provost_event::ToolSubject;

/// Reads a subject: `KIND ARGUMENT`, where the kind is `command`, `reads`, `writes`, `walks` or `url`.
///
/// # Errors
/// What it must be.
pub fn subject_of(text: &str) -> Result<ToolSubject, String> {
    let must = || {
        "must be a kind and an argument, such as `reads path`; the kinds are command, reads, writes, walks and url"
            .to_owned()
    };
    let mut words = text.split_whitespace();
    let (Some(kind), Some(field), None) = (words.next(), words.next(), words.next()) else {
        return Err(must());
    };
    let path = |walks, writes| ToolSubject::Path {
        field: field.to_owned(),
        walks,
        writes,
        // Nothing but its sandbox keeps a server in the workspace.
        anywhere: writes,
    };
    match kind {
        "command" => Ok(ToolSubject::command(field)),
        "reads" => Ok(path(false, false)),
        "writes" => Ok(path(false, true)),
        "walks" => Ok(path(true, false)),
        "url" => Ok(ToolSubject::Url { field: field.to_owned() }),
        _ => Err(must()),
    }
}

#[cfg(test)]
mod tests {
    use provost_event::ToolSubject;

    use super::subject_of;

    #[test]
    fn a_subject_is_a_kind_and_an_argument() {
        assert_eq!(subject_of("command cmd"), Ok(ToolSubject::command("cmd")));
        assert_eq!(subject_of(" reads  path "), Ok(ToolSubject::read_path("path")));
        assert_eq!(subject_of("writes file"), Ok(ToolSubject::path_written_anywhere("file")));
        assert_eq!(subject_of("url address"), Ok(ToolSubject::Url { field: "address".to_owned() }));
        assert!(matches!(subject_of("walks path"), Ok(ToolSubject::Path { walks: true, writes: false, .. })));
        for text in ["", "reads", "reads a b", "read path", "path"] {
            assert!(subject_of(text).unwrap_err().contains("such as `reads path`"), "{text}");
        }
    }
}
