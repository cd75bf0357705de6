//! The spending of the runs of a workflow: a file that outlives a killed run, and that concurrent
//! runs share.
//!
//! A line has the total that one process may have spent of each account. It is on disk before the
//! requests that may cost it are sent, and a later line of the process replaces it; the last line
//! of a killed process stays. Accounts are closed when all their questions are answered.
//!
//! Every line has a number and a checksum, and is written twice, so that one damaged line loses
//! nothing. If both are damaged, the spending is unknown, and no more money is spent.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use galeras_chat::{Expense, SpendingLog};
use serde::{Deserialize, Serialize};

use super::error::{Result, StoreError, StoreErrorKind};
use super::local_files::open_or_create;
use super::log_lines::{self, SUM, append, whole_lines};
use super::run_record::random;
use galeras_base::digest::Digest;
use galeras_base::scratch::{make_lasting_folder, sync_folder};

/// The folder of the files, next to the downloads.
const FOLDER: &str = "spending";

/// Amounts by account.
type Expenses = BTreeMap<String, Expense>;

/// The spending of the runs of one workflow. Cheap to open: the file is read when it is needed.
#[derive(Debug)]
pub struct SpendingLedger {
    path: PathBuf,
    /// Marks the lines of this process.
    session: String,
    state: Mutex<LedgerState>,
}

/// The content of the file, as far as it was read.
#[derive(Debug, Default)]
struct LedgerState {
    /// In bytes.
    read: u64,
    /// The number of the next line.
    next: u64,
    /// Damaged lines since the last good one.
    bad: usize,
    /// The possible spending of each process.
    sessions: BTreeMap<String, Expenses>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct LedgerLine {
    number: u64,
    entry: LedgerEntry,
}

/// The content of a line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LedgerEntry {
    /// The possible spending of a process.
    Spent { session: String, accounts: Expenses },
    /// These accounts start again at zero.
    Closed { accounts: Vec<String> },
}

impl SpendingLedger {
    /// The ledger of a workflow in the folder `downloads` of a store. Touches nothing.
    pub fn new(downloads: &Path, workflow: &str) -> Self {
        let name = Digest::of(workflow.as_bytes());
        Self {
            path: downloads.join(FOLDER).join(format!("{name}.log")),
            session: format!("{:x}-{:016x}", std::process::id(), random()),
            state: Mutex::default(),
        }
    }

    /// The possible spending of every process, summed, since each account was last closed. Fails if
    /// the file cannot be read, or is damaged so that the spending is unknown.
    pub fn spent(&self) -> Result<Expenses> {
        if !self.path.exists() {
            return Ok(Expenses::new());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = || -> Result<_, LedgerProblem> {
            self.check_place()?;
            // Half a line that another process is writing is not read.
            state.catch_up(&mut File::open(&self.path)?)?;
            Ok(sums(state.sessions.values()))
        };
        self.explained(read())
    }

    /// Closes these accounts, whose questions are answered: they start again at zero. Fails if the
    /// file cannot be written, or is damaged.
    pub fn close(&self, accounts: &[String]) -> Result<()> {
        if accounts.is_empty() {
            return Ok(());
        }
        let spent = self.spent()?;
        let open: Vec<String> =
            accounts.iter().filter(|account| spent.contains_key(*account)).cloned().collect();
        if open.is_empty() {
            return Ok(());
        }
        self.locked(|file, state| {
            state.append(file, LedgerEntry::Closed { accounts: open.clone() })?;
            // Without open accounts, the file can be emptied, so that it does not grow forever.
            if state.sessions.is_empty() {
                file.set_len(0)?;
                file.sync_data()?;
                *state = LedgerState::default();
            }
            Ok(())
        })
    }

    /// Works on the file while no other process writes to it.
    fn locked<T>(
        &self,
        work: impl FnOnce(&mut File, &mut LedgerState) -> Result<T, LedgerProblem>,
    ) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = || -> Result<_, LedgerProblem> {
            self.check_place()?;
            let folder = self.path.parent().filter(|_| !self.path.is_file());
            folder.map(make_lasting_folder).transpose()?;
            let mut file = open_or_create(&self.path)?;
            // Without locks on this disk, two concurrent runs may each spend the whole budget.
            match file.lock() {
                Err(error) if error.kind() != io::ErrorKind::Unsupported => {
                    return Err(error.into());
                }
                Ok(()) | Err(_) => {}
            }
            // The name of the file has to be durable as well.
            folder.map(sync_folder).transpose()?;
            state.catch_up(&mut file)?;
            // A line that was cut was never granted.
            file.set_len(state.read)?;
            work(&mut file, &mut state)
        };
        self.explained(attempt())
    }

    /// Refuses a folder at the path of the file. Other files can be restored, the spending cannot.
    fn check_place(&self) -> Result<(), LedgerProblem> {
        if self.path.is_dir() { Err(LedgerProblem::Damaged) } else { Ok(()) }
    }

    fn explained<T>(&self, result: Result<T, LedgerProblem>) -> Result<T> {
        result.map_err(|problem| match problem {
            LedgerProblem::Io(error) => StoreError::at("write", &self.path, error),
            LedgerProblem::Damaged => {
                let (path, cause) = (self.path.display(), problem.to_string());
                StoreError::new(StoreErrorKind::Io, "read", path, cause)
            }
        })
    }
}

impl SpendingLog for SpendingLedger {
    fn write(&self, decide: &mut dyn FnMut(&Expenses) -> Option<Expenses>) -> Result<(), String> {
        let written = self.locked(|file, state| {
            let others = state.sessions.iter().filter(|(session, _)| **session != self.session);
            let Some(accounts) = decide(&sums(others.map(|(_, spent)| spent))) else {
                return Ok(());
            };
            state.append(file, LedgerEntry::Spent { session: self.session.clone(), accounts })
        });
        written.map_err(|error| error.to_string())
    }
}

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
enum LedgerProblem {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "it is damaged, so what was spent is not known, and nothing more is spent; delete it to \
         begin new accounts"
    )]
    Damaged,
}

impl LedgerState {
    /// Reads the lines that were written since the last time.
    fn catch_up(&mut self, file: &mut File) -> Result<(), LedgerProblem> {
        // Another process has emptied it.
        if file.metadata()?.len() < self.read {
            *self = Self::default();
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let whole = whole_lines(&content);
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = log_lines::content(SUM, line);
            match line.and_then(|json| serde_json::from_slice::<LedgerLine>(json).ok()) {
                Some(line) if line.number == self.next => {
                    (self.next, self.bad) = (self.next + 1, 0);
                    self.apply(line.entry);
                }
                // The second line of a pair.
                Some(line) if line.number < self.next => {}
                Some(_) => return Err(LedgerProblem::Damaged),
                None => self.bad += 1,
            }
        }
        self.read += whole.len() as u64;
        // One may be the second of the last pair; two may be a pair.
        if self.bad > 1 { Err(LedgerProblem::Damaged) } else { Ok(()) }
    }

    fn apply(&mut self, entry: LedgerEntry) {
        match entry {
            LedgerEntry::Spent { session, accounts } => {
                self.sessions.insert(session, accounts);
            }
            LedgerEntry::Closed { accounts } => {
                for spent in self.sessions.values_mut() {
                    spent.retain(|account, _| !accounts.contains(account));
                }
            }
        }
        for spent in self.sessions.values_mut() {
            spent.retain(|_, spent| *spent != Expense::default());
        }
        self.sessions.retain(|_, spent| !spent.is_empty());
    }

    /// Writes a line, twice and durably; if that fails, nothing of it stays.
    fn append(&mut self, file: &mut File, entry: LedgerEntry) -> Result<(), LedgerProblem> {
        let line = LedgerLine { number: self.next, entry };
        let json = serde_json::to_string(&line).map_err(io::Error::other)?;
        // An empty line between the two: no single damaged byte joins them.
        let text = format!("{}\n", log_lines::line(SUM, &json)).repeat(2);
        file.seek(SeekFrom::Start(self.read))?;
        append(file, text.as_bytes())?;
        self.read += text.len() as u64;
        (self.next, self.bad) = (self.next + 1, 0);
        self.apply(line.entry);
        Ok(())
    }
}

fn sums<'a>(sessions: impl Iterator<Item = &'a Expenses>) -> Expenses {
    let mut sums = Expenses::new();
    for (account, spent) in sessions.flatten() {
        let sum = sums.entry(account.clone()).or_default();
        *sum = sum.plus(*spent);
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::fs;

    use galeras_chat::Usd;
    use tempfile::TempDir;

    use super::*;

    fn expense(requests: u64, usd: &str) -> Expense {
        Expense { requests, usd: usd.parse::<Usd>().unwrap() }
    }

    fn expenses(all: &[(&str, Expense)]) -> Expenses {
        all.iter().map(|(account, spent)| (account.to_string(), *spent)).collect()
    }

    fn wrote(ledger: &SpendingLedger, own: &[(&str, Expense)]) -> Expenses {
        let mut seen = Expenses::new();
        let mut decide = |others: &Expenses| {
            seen = others.clone();
            Some(expenses(own))
        };
        ledger.write(&mut decide).unwrap();
        seen
    }

    fn ledger(folder: &TempDir) -> SpendingLedger {
        SpendingLedger::new(folder.path(), "w")
    }

    /// A ledger with two pairs of lines: its file, and the content.
    fn two_pairs(folder: &TempDir) -> (PathBuf, Vec<u8>) {
        let ledger = ledger(folder);
        wrote(&ledger, &[("a", expense(1, "1"))]);
        wrote(&ledger, &[("a", expense(2, "2"))]);
        let content = fs::read(&ledger.path).unwrap();
        (ledger.path, content)
    }

    #[test]
    fn a_folder_at_its_path_ends_all_spending() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(&folder);
        fs::create_dir_all(ledger.path.join("x")).unwrap();
        let errors = [
            ledger.spent().unwrap_err().to_string(),
            ledger.close(&["a".into()]).unwrap_err().to_string(),
            ledger.write(&mut |_| None).unwrap_err(),
        ];
        for error in errors {
            assert!(error.contains(ledger.path.to_str().unwrap()), "{error}");
            assert!(error.contains("what was spent is not known"), "{error}");
        }
        assert!(ledger.path.join("x").is_dir(), "nothing is removed");
    }

    #[test]
    fn lines_of_a_killed_process_count_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let first = ledger(&folder);
        assert!(first.spent().unwrap().is_empty() && !first.path.exists());
        wrote(&first, &[("a", expense(1, "0.5"))]);
        wrote(&first, &[("a", expense(3, "1.5")), ("/", expense(3, "1.5"))]);
        drop(first);
        let second = ledger(&folder);
        let before = expenses(&[("/", expense(3, "1.5")), ("a", expense(3, "1.5"))]);
        assert_eq!(second.spent().unwrap(), before);
        assert_eq!(wrote(&second, &[("a", expense(1, "0.25"))]), before);
        // The last line of a process is its real spending.
        let third = ledger(&folder);
        assert_eq!(third.spent().unwrap()["a"], expense(4, "1.75"));
        assert!(SpendingLedger::new(folder.path(), "other").spent().unwrap().is_empty());
    }

    #[test]
    fn processes_side_by_side_see_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let ledgers: Vec<_> = (0..4).map(|_| ledger(&folder)).collect();
        std::thread::scope(|scope| {
            for ledger in &ledgers {
                scope.spawn(|| {
                    for n in 1..=50 {
                        wrote(ledger, &[("a", expense(n, "0.01"))]);
                    }
                });
            }
        });
        for ledger in &ledgers {
            assert_eq!(ledger.spent().unwrap()["a"], expense(200, "0.04"));
            assert_eq!(wrote(ledger, &[("a", expense(50, "0.01"))])["a"], expense(150, "0.03"));
        }
    }

    #[test]
    fn a_closed_account_starts_at_zero_and_an_empty_file_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let (first, other) = (ledger(&folder), ledger(&folder));
        wrote(&first, &[("a", expense(1, "1")), ("b", expense(2, "2"))]);
        wrote(&other, &[("a", expense(4, "4"))]);
        first.close(&["a".into(), "c".into()]).unwrap();
        assert_eq!(first.spent().unwrap(), expenses(&[("b", expense(2, "2"))]));
        // A process that still works writes its spending again.
        wrote(&other, &[("a", expense(5, "5"))]);
        assert_eq!(first.spent().unwrap()["a"], expense(5, "5"));
        first.close(&["a".into(), "b".into()]).unwrap();
        assert_eq!(fs::metadata(&first.path).unwrap().len(), 0);
        wrote(&other, &[("a", expense(6, "6"))]);
        assert_eq!(first.spent().unwrap()["a"], expense(6, "6"));
    }

    #[test]
    fn a_flipped_bit_changes_nothing_and_a_cut_loses_only_the_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let (path, content) = two_pairs(&folder);
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            // A new line within the second of the last pair looks like a lost pair.
            if let Ok(spent) = ledger(&folder).spent() {
                assert_eq!(spent["a"], expense(2, "2"), "{at}");
            } else {
                assert!(damaged[at] == b'\n' || content[at] == b'\n', "{at}");
            }
        }
        for cut in 0..=content.len() {
            fs::write(&path, &content[..cut]).unwrap();
            let next = ledger(&folder);
            let spent = next.spent().unwrap().get("a").copied().unwrap_or_default();
            // Every amount is written twice; the first of a pair counts.
            let whole = content[..cut].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
            let lines = content[..whole].split(|byte| *byte == b'\n');
            let lines = lines.filter(|line| !line.is_empty()).count();
            let wanted = [0, 1, 1, 2, 2][lines];
            assert_eq!(spent, expense(wanted, &wanted.to_string()), "{cut}");
            wrote(&next, &[("a", expense(7, "7"))]);
            let all = ledger(&folder).spent().unwrap()["a"];
            assert_eq!(all, spent.plus(expense(7, "7")), "{cut}");
        }
    }

    #[test]
    fn a_pair_that_is_damaged_ends_all_spending() {
        let folder = tempfile::tempdir().unwrap();
        let (path, content) = two_pairs(&folder);
        for pair in 0..2 {
            let mut damaged = content.clone();
            for line in 0..2 {
                damaged[content.len() * (2 * pair + line) / 4 + 40] ^= 1;
            }
            fs::write(&path, &damaged).unwrap();
            let next = ledger(&folder);
            let error = next.spent().unwrap_err().to_string();
            assert!(error.contains("is not known") && error.contains("delete"), "{error}");
            assert!(next.write(&mut |_| Some(Expenses::new())).is_err());
        }
        fs::remove_file(&path).unwrap();
        assert!(ledger(&folder).spent().unwrap().is_empty());
    }
}
