//! What the runs of a workflow have spent, or may have: a file that outlives a killed run, and that
//! runs side by side share.
//!
//! A line says what one process may have spent of each account, in all. It is on disk before the
//! requests go out that may cost it, and a later line of the process replaces it; what a killed one
//! wrote last stays. Accounts are closed when all that they were for is answered.
//!
//! Every line has a number and a checksum, and stands there twice: a damaged one takes nothing with
//! it. If both are damaged, nobody knows what was spent, and nothing more is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use galeras_chat::{Expense, SpendingLog};
use serde::{Deserialize, Serialize};

use super::error::{StoreError, StoreErrorKind};
use super::links::without_links;
use super::record::random;
use galeras_base::digest::Digest;
use galeras_base::scratch::{make_lasting_folder, sync_folder};

/// The folder of the files, beside what is downloaded.
const FOLDER: &str = "spending";

/// What was spent, by account.
type Expenses = BTreeMap<String, Expense>;

/// What the runs of one workflow have spent. Cheap to open: the file is read when it is needed.
#[derive(Debug)]
pub struct SpendingLedger {
    path: PathBuf,
    /// By which lines of this process are known.
    session: String,
    state: Mutex<LedgerState>,
}

/// What is known of the file.
#[derive(Debug, Default)]
struct LedgerState {
    /// How much of it was read.
    read: u64,
    /// The number of the next line.
    next: u64,
    /// Lines that could not be read since the last one that could.
    bad: usize,
    /// What each process may have spent.
    sessions: BTreeMap<String, Expenses>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct LedgerLine {
    number: u64,
    entry: LedgerEntry,
}

/// What a line says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LedgerEntry {
    /// What a process may have spent.
    Spent { session: String, accounts: Expenses },
    /// These accounts begin anew.
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

    /// What was spent, or may have been, since each account was last closed, by all processes.
    ///
    /// # Errors
    /// If the file cannot be read, or what was spent is not known as it is damaged.
    pub fn spent(&self) -> Result<Expenses, StoreError> {
        if !self.path.exists() {
            return Ok(Expenses::new());
        }
        self.check_place()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = File::open(&self.path).map_err(|error| self.failed(error))?;
        // Half a line of somebody who is writing is not read.
        state.catch_up(&mut file).map_err(|problem| self.explained(problem))?;
        Ok(sums(state.sessions.values()))
    }

    /// Closes these accounts: what they were for is answered, and what comes next begins anew.
    ///
    /// # Errors
    /// As for writing.
    pub fn close(&self, accounts: &[String]) -> Result<(), StoreError> {
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
            // With nothing left in it the file need not grow for ever.
            if state.sessions.is_empty() {
                file.set_len(0)?;
                file.sync_data()?;
                *state = LedgerState::default();
            }
            Ok(())
        })
    }

    /// Works on the file while nobody else writes to it.
    fn locked<T>(
        &self,
        work: impl FnOnce(&mut File, &mut LedgerState) -> Result<T, LedgerProblem>,
    ) -> Result<T, StoreError> {
        self.check_place()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = || -> Result<T, LedgerProblem> {
            let new = !self.path.is_file();
            if new && let Some(folder) = self.path.parent() {
                make_lasting_folder(folder)?;
            }
            let mut open = without_links();
            let open = open.read(true).write(true).create(true).truncate(false);
            let mut file = open.open(&self.path)?;
            // Not every disk has locks. Without them, two runs side by side may each spend all.
            match file.lock() {
                Err(error) if error.kind() != io::ErrorKind::Unsupported => {
                    return Err(error.into());
                }
                Ok(()) | Err(_) => {}
            }
            if new && let Some(folder) = self.path.parent() {
                // The name of the file has to be durable too.
                sync_folder(folder)?;
            }
            state.catch_up(&mut file)?;
            // What follows the last whole line was never granted to anybody.
            file.set_len(state.read)?;
            work(&mut file, &mut state)
        };
        attempt().map_err(|problem| self.explained(problem))
    }

    /// Refuses a folder in the place of the file: other files of ours can be had again, but what was
    /// spent cannot.
    fn check_place(&self) -> Result<(), StoreError> {
        if self.path.is_dir() { Err(self.explained(LedgerProblem::Damaged)) } else { Ok(()) }
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::at("write", &self.path, error)
    }

    fn explained(&self, problem: LedgerProblem) -> StoreError {
        match problem {
            LedgerProblem::Io(error) => self.failed(error),
            LedgerProblem::Damaged => StoreError::new(
                StoreErrorKind::Io,
                "read",
                self.path.display(),
                "it is damaged, so what was spent is not known, and nothing more is spent; delete \
                 it to begin new accounts",
            ),
        }
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
enum LedgerProblem {
    Io(io::Error),
    Damaged,
}

impl From<io::Error> for LedgerProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl LedgerState {
    /// Reads what was written since the last time.
    fn catch_up(&mut self, file: &mut File) -> Result<(), LedgerProblem> {
        // Somebody has emptied it.
        if file.metadata()?.len() < self.read {
            *self = Self::default();
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in content[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match entry(line) {
                Some(line) if line.number == self.next => {
                    (self.next, self.bad) = (self.next + 1, 0);
                    self.apply(line.entry);
                }
                // The second of a pair.
                Some(line) if line.number < self.next => {}
                Some(_) => return Err(LedgerProblem::Damaged),
                None => self.bad += 1,
            }
        }
        self.read += whole as u64;
        // One may be the second of the last pair; two may be a pair.
        if self.bad > 1 { Err(LedgerProblem::Damaged) } else { Ok(()) }
    }

    fn apply(&mut self, entry: LedgerEntry) {
        match entry {
            LedgerEntry::Spent { session, accounts } => {
                let nothing = |spent: &Expense| *spent == Expense::default();
                let spent: Expenses =
                    accounts.into_iter().filter(|(_, spent)| !nothing(spent)).collect();
                match spent.is_empty() {
                    true => drop(self.sessions.remove(&session)),
                    false => drop(self.sessions.insert(session, spent)),
                }
            }
            LedgerEntry::Closed { accounts } => {
                for spent in self.sessions.values_mut() {
                    spent.retain(|account, _| !accounts.contains(account));
                }
                self.sessions.retain(|_, spent| !spent.is_empty());
            }
        }
    }

    /// Writes a line, twice and durably; if that fails, nothing of it stays.
    fn append(&mut self, file: &mut File, entry: LedgerEntry) -> Result<(), LedgerProblem> {
        let line = LedgerLine { number: self.next, entry };
        let json = serde_json::to_string(&line).map_err(io::Error::other)?;
        let sum = checksum(json.as_bytes());
        // No single byte that is damaged makes one line of the two.
        let text = format!("{sum} {json}\n\n{sum} {json}\n\n");
        file.seek(SeekFrom::Start(self.read))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).inspect_err(|_| {
            let _ = file.set_len(self.read);
        })?;
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

const SUM: usize = 32;

fn checksum(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..SUM].to_string()
}

fn entry(line: &[u8]) -> Option<LedgerLine> {
    let (sum, content) = (line.get(..SUM)?, line.get(SUM + 1..)?);
    if sum != checksum(content).as_bytes() {
        return None;
    }
    serde_json::from_slice(content).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use galeras_chat::Usd;

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

    fn file(folder: &Path) -> PathBuf {
        SpendingLedger::new(folder, "w").path
    }

    #[test]
    fn a_folder_in_its_place_ends_all_spending() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SpendingLedger::new(folder.path(), "w");
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
    fn what_a_killed_process_wrote_counts_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let first = SpendingLedger::new(folder.path(), "w");
        assert!(first.spent().unwrap().is_empty() && !first.path.exists());
        wrote(&first, &[("a", expense(1, "0.5"))]);
        wrote(&first, &[("a", expense(3, "1.5")), ("/", expense(3, "1.5"))]);
        drop(first);
        let second = SpendingLedger::new(folder.path(), "w");
        let before = expenses(&[("/", expense(3, "1.5")), ("a", expense(3, "1.5"))]);
        assert_eq!(second.spent().unwrap(), before);
        assert_eq!(wrote(&second, &[("a", expense(1, "0.25"))]), before);
        // What was written last is what was really spent.
        let third = SpendingLedger::new(folder.path(), "w");
        assert_eq!(third.spent().unwrap()["a"], expense(4, "1.75"));
        assert!(SpendingLedger::new(folder.path(), "other").spent().unwrap().is_empty());
    }

    #[test]
    fn processes_side_by_side_see_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let ledgers: Vec<_> = (0..4).map(|_| SpendingLedger::new(folder.path(), "w")).collect();
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
    fn a_closed_account_begins_anew_and_an_empty_file_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SpendingLedger::new(folder.path(), "w");
        let other = SpendingLedger::new(folder.path(), "w");
        wrote(&ledger, &[("a", expense(1, "1")), ("b", expense(2, "2"))]);
        wrote(&other, &[("a", expense(4, "4"))]);
        ledger.close(&["a".into(), "c".into()]).unwrap();
        assert_eq!(ledger.spent().unwrap(), expenses(&[("b", expense(2, "2"))]));
        // One that is still at work says so again.
        wrote(&other, &[("a", expense(5, "5"))]);
        assert_eq!(ledger.spent().unwrap()["a"], expense(5, "5"));
        ledger.close(&["a".into(), "b".into()]).unwrap();
        assert_eq!(fs::metadata(file(folder.path())).unwrap().len(), 0);
        wrote(&other, &[("a", expense(6, "6"))]);
        assert_eq!(ledger.spent().unwrap()["a"], expense(6, "6"));
    }

    #[test]
    fn a_flipped_bit_changes_nothing_and_a_cut_loses_what_was_not_granted() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SpendingLedger::new(folder.path(), "w");
        wrote(&ledger, &[("a", expense(1, "1"))]);
        wrote(&ledger, &[("a", expense(2, "2"))]);
        let path = file(folder.path());
        let content = fs::read(&path).unwrap();
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            // A new line within the second of the last pair looks like a lost pair.
            if let Ok(spent) = SpendingLedger::new(folder.path(), "w").spent() {
                assert_eq!(spent["a"], expense(2, "2"), "{at}");
            } else {
                assert!(damaged[at] == b'\n' || content[at] == b'\n', "{at}");
            }
        }
        for cut in 0..=content.len() {
            fs::write(&path, &content[..cut]).unwrap();
            let next = SpendingLedger::new(folder.path(), "w");
            let spent = next.spent().unwrap().get("a").copied().unwrap_or_default();
            // Every amount is written twice; the first of a pair counts.
            let whole = content[..cut].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
            let lines = content[..whole].split(|byte| *byte == b'\n');
            let lines = lines.filter(|line| !line.is_empty()).count();
            let wanted = [0, 1, 1, 2, 2][lines];
            assert_eq!(spent, expense(wanted, &wanted.to_string()), "{cut}");
            wrote(&next, &[("a", expense(7, "7"))]);
            let all = SpendingLedger::new(folder.path(), "w").spent().unwrap()["a"];
            assert_eq!(all, spent.plus(expense(7, "7")), "{cut}");
        }
    }

    #[test]
    fn a_pair_that_is_damaged_ends_all_spending() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SpendingLedger::new(folder.path(), "w");
        wrote(&ledger, &[("a", expense(1, "1"))]);
        wrote(&ledger, &[("a", expense(2, "2"))]);
        let path = file(folder.path());
        let content = fs::read(&path).unwrap();
        for pair in 0..2 {
            let mut damaged = content.clone();
            for line in 0..2 {
                damaged[content.len() * (2 * pair + line) / 4 + 40] ^= 1;
            }
            fs::write(&path, &damaged).unwrap();
            let next = SpendingLedger::new(folder.path(), "w");
            let error = next.spent().unwrap_err().to_string();
            assert!(error.contains("is not known") && error.contains("delete"), "{error}");
            assert!(next.write(&mut |_| Some(Expenses::new())).is_err());
        }
        fs::remove_file(&path).unwrap();
        assert!(SpendingLedger::new(folder.path(), "w").spent().unwrap().is_empty());
    }
}
