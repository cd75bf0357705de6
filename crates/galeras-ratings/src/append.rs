//! Appends a line to a rater's file, durably.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::folder::ADJUDICATED;
use super::rating::RatingEvent;
use galeras_base::scratch::make_folder;

/// In characters.
const LONGEST_NAME: usize = 64;

/// Git then keeps the lines of both sides.
const ATTRIBUTES: &str = "*.jsonl merge=union\n";

/// True if a rater may use this name, which becomes the name of a file.
pub fn is_rater_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().next().is_some_and(char::is_alphanumeric)
        && name.chars().count() <= LONGEST_NAME
        && name.chars().all(plain)
        && !name.ends_with('.')
        && !name.to_lowercase().eq(ADJUDICATED)
}

/// The file with the ratings of `rater` in `folder`.
pub fn file_of(folder: &Path, rater: &str) -> PathBuf {
    folder.join(format!("{rater}.jsonl"))
}

/// Adds an event to the file of `rater` in `folder`, and makes it durable. Cuts off an unfinished
/// line of a killed program first: its rating was never confirmed.
///
/// # Errors
/// If the file cannot be written or synchronised. It is then unchanged, if the disk allows that.
pub fn append(folder: &Path, rater: &str, event: &RatingEvent) -> io::Result<()> {
    let fresh = !folder.exists();
    make_folder(folder)?;
    let attributes = folder.join(".gitattributes");
    if fresh && !attributes.exists() {
        fs::write(attributes, ATTRIBUTES)?;
    }
    let path = file_of(folder, rater);
    let new = !path.exists();
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
    // Two programs may serve one folder. Without locks on the disk, the last writer wins.
    match file.lock() {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
        _ => {}
    }
    let end = end_of_lines(&mut file)?;
    let mut line = serde_json::to_vec(event).map_err(io::Error::other)?;
    line.push(b'\n');
    file.seek(SeekFrom::Start(end))?;
    let written = file.write_all(&line).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // A partial line would be cut off later; remove it now.
        let _ = file.set_len(end);
        return Err(error);
    }
    if new {
        // The file's name must also be durable.
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The position for the next line. A last line without an end stays if it is an event, and gets its
/// end.
fn end_of_lines(file: &mut File) -> io::Result<u64> {
    const BACK: u64 = 1 << 16;
    let length = file.metadata()?.len();
    let (mut start, mut tail) = (length, Vec::new());
    while start > 0 {
        let from = start.saturating_sub(BACK);
        let mut block = vec![0; usize::try_from(start - from).unwrap_or(0)];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut block)?;
        let found = block.iter().rposition(|byte| *byte == b'\n');
        let keep = found.map_or(0, |at| at + 1);
        let mut longer = block.split_off(keep);
        longer.append(&mut tail);
        tail = longer;
        if found.is_some() {
            start = from + keep as u64;
            break;
        }
        start = from;
    }
    if tail.is_empty() {
        return Ok(length);
    }
    if serde_json::from_slice::<RatingEvent>(&tail).is_ok() {
        file.seek(SeekFrom::Start(length))?;
        file.write_all(b"\n")?;
        return Ok(length + 1);
    }
    file.set_len(start)?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str) -> RatingEvent {
        RatingEvent {
            id: id.into(),
            question: "code".into(),
            answer: Some("yes".into()),
            note: "a\nb".into(),
            time: "2026-01-02T03:04:05Z".into(),
        }
    }

    #[test]
    fn lines_follow_each_other_and_the_folder_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new/ratings");
        append(&place, "ann", &event("a")).unwrap();
        append(&place, "ann", &event("b")).unwrap();
        append(&place, "ben", &event("c")).unwrap();
        let text = fs::read_to_string(place.join("ann.jsonl")).unwrap();
        let ids: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<RatingEvent>(line).unwrap().id)
            .collect();
        assert_eq!(ids, ["a", "b"]);
        assert!(text.ends_with('\n'));
        let attributes = fs::read_to_string(place.join(".gitattributes")).unwrap();
        assert_eq!(attributes, ATTRIBUTES);
    }

    #[test]
    fn a_line_that_was_cut_off_goes_and_a_whole_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ann.jsonl");
        let whole = serde_json::to_string(&event("a")).unwrap();
        for (before, lines) in [
            (String::new(), 1),
            (whole.clone(), 2),
            (format!("{whole}\n"), 2),
            (format!("{whole}\n{}", &whole[..20]), 2),
            (whole[..20].to_string(), 1),
            (format!("{whole}\n{}", "x".repeat(200_000)), 2),
        ] {
            fs::write(&file, &before).unwrap();
            append(folder.path(), "ann", &event("z")).unwrap();
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(text.lines().count(), lines, "{before}");
            text.lines().for_each(|line| {
                serde_json::from_str::<RatingEvent>(line).unwrap();
            });
        }
    }

    #[test]
    fn names_of_raters_are_names_of_files_in_the_folder() {
        for name in ["ann", "Ann-2", "ann.b_c", "Ünal", "1"] {
            assert!(is_rater_name(name), "{name}");
        }
        let long = "a".repeat(65);
        for name in
            ["", "../x", "a/b", ".hidden", "a b", "a\0", "Adjudicated", "a\n", "a.", &long, "-x"]
        {
            assert!(!is_rater_name(name), "{name:?}");
        }
    }
}
