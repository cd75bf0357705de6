//! A repository of the test server.

/// A repository on the server. Times are `YYYY-MM-DDTHH:MM:SSZ`.
#[derive(Clone, Debug)]
pub struct Repo {
    pub id: u64,
    pub full_name: String,
    pub stars: u64,
    pub forks: u64,
    pub size: u64,
    pub language: Option<String>,
    pub license: Option<String>,
    pub fork: bool,
    pub archived: bool,
    pub created_at: String,
    pub pushed_at: String,
    pub updated_at: String,
    pub default_branch: String,
    /// The commit that `HEAD` names, 40 hexadecimal digits.
    pub head: String,
    /// Where to clone from, instead of this server.
    pub clone_url: Option<String>,
}

impl Repo {
    /// A Python repository that the paper's query finds, if it has more than 1,000 stars.
    pub fn new(id: u64, full_name: &str, stars: u64) -> Self {
        Self {
            id,
            full_name: full_name.into(),
            stars,
            forks: stars / 7,
            size: 50_000,
            language: Some("Python".into()),
            license: Some("MIT".into()),
            fork: false,
            archived: false,
            created_at: "2015-06-01T10:00:00Z".into(),
            pushed_at: "2023-01-05T12:00:00Z".into(),
            updated_at: "2023-02-01T08:00:00Z".into(),
            default_branch: "main".into(),
            head: format!("{id:040x}"),
            clone_url: None,
        }
    }
}
