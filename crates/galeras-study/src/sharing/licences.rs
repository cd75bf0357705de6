//! Selects the rows that may be published: their repository has a known licence that permits
//! redistribution, and its owner did not object. Every other row is counted by its reason.

use std::collections::BTreeMap;

/// SPDX ids of licences that permit redistribution with attribution, modified or not.
pub const PERMITTED: [&str; 26] = [
    "0BSD",
    "AFL-3.0",
    "Apache-2.0",
    "Artistic-2.0",
    "BlueOak-1.0.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSD-3-Clause-Clear",
    "BSL-1.0",
    "CC-BY-4.0",
    "CC0-1.0",
    "CNRI-Python",
    "ECL-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MulanPSL-2.0",
    "NCSA",
    "PostgreSQL",
    "PSF-2.0",
    "Python-2.0",
    "UPL-1.0",
    "Unlicense",
    "WTFPL",
    "X11",
    "Zlib",
];

/// The known licences.
#[derive(Clone, Debug, Default)]
pub struct Licences {
    /// Repository -> licence, if the rows do not have it; `None` if two were given.
    pub(super) by_repository: BTreeMap<String, Option<String>>,
    /// Owners, and repositories, that are left out.
    pub(super) excluded: Vec<String>,
    /// Every row is kept unless its owner objected.
    pub(super) any: bool,
}

/// The decision about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is published, under this licence, if one is known.
    Kept(Option<String>),
    /// It is left out, for this reason.
    LeftOut(String),
}

impl Licences {
    pub(super) fn add(&mut self, repository: &str, licence: &str) {
        let known = self.by_repository.entry(repository.to_string());
        let known = known.or_insert_with(|| Some(licence.to_string()));
        if known.as_deref().is_some_and(|known| !known.eq_ignore_ascii_case(licence)) {
            *known = None;
        }
    }

    /// The decision about a row of this repository with this licence.
    pub(super) fn judge(&self, repository: Option<&str>, licence: Option<&str>) -> Verdict {
        if let Some(repository) = repository {
            let owner = repository.split('/').next().unwrap_or(repository);
            let no = |name: &String| {
                name.eq_ignore_ascii_case(owner) || name.eq_ignore_ascii_case(repository)
            };
            if self.excluded.iter().any(no) {
                return Verdict::LeftOut("its owner said no".into());
            }
        }
        let told = licence.map(str::trim).filter(|licence| !licence.is_empty());
        let of_repository = || self.by_repository.get(repository?)?.as_deref();
        let licence = told.or_else(of_repository).filter(|licence| !is_unknown(licence));
        let permitted =
            licence.and_then(|own| PERMITTED.iter().find(|known| known.eq_ignore_ascii_case(own)));
        match (licence, permitted) {
            (_, Some(permitted)) => Verdict::Kept(Some((*permitted).to_string())),
            (licence, None) if self.any => Verdict::Kept(licence.map(str::to_string)),
            (Some(licence), None) => {
                Verdict::LeftOut(format!("its licence, {licence}, is not a permissive one"))
            }
            (None, None) => Verdict::LeftOut("its licence is not known".into()),
        }
    }
}

/// GitHub's values for an unknown licence.
fn is_unknown(licence: &str) -> bool {
    ["NOASSERTION", "NONE", "OTHER"].iter().any(|word| word.eq_ignore_ascii_case(licence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn licences(any: bool) -> Licences {
        let mut licences =
            Licences { any, excluded: vec!["Ada".into(), "b/no".into()], ..Licences::default() };
        licences.add("c/d", "mit");
        licences.add("c/e", "MIT");
        licences.add("c/e", "GPL-3.0");
        licences.add("c/f", "GPL-3.0");
        licences
    }

    #[test]
    fn rows_are_kept_under_permissive_licences() {
        let judge = |repository, licence| licences(false).judge(repository, licence);
        let kept = |licence: &str| Verdict::Kept(Some(licence.to_string()));
        assert_eq!(judge(Some("c/d"), None), kept("MIT"));
        assert_eq!(judge(Some("c/f"), Some("apache-2.0")), kept("Apache-2.0"));
        assert_eq!(judge(None, Some("MIT")), kept("MIT"));
        for (repository, licence, why) in [
            (Some("c/f"), None, "GPL-3.0"),
            (Some("c/e"), None, "not known"),
            (Some("x/y"), Some("NOASSERTION"), "not known"),
            (Some("c/d"), Some("NOASSERTION"), "not known"),
            (None, None, "not known"),
            (Some("ada/x"), Some("MIT"), "said no"),
            (Some("B/No"), Some("MIT"), "said no"),
        ] {
            let verdict = judge(repository, licence);
            let left = matches!(&verdict, Verdict::LeftOut(said) if said.contains(why));
            assert!(left, "{repository:?} {licence:?}: {verdict:?}");
        }
    }

    #[test]
    fn any_licence_does_not_mean_any_owner() {
        let judge = |repository, licence| licences(true).judge(repository, licence);
        assert_eq!(judge(Some("c/f"), None), Verdict::Kept(Some("GPL-3.0".into())));
        assert_eq!(judge(None, None), Verdict::Kept(None));
        assert!(matches!(judge(Some("Ada/x"), Some("MIT")), Verdict::LeftOut(_)));
    }
}
