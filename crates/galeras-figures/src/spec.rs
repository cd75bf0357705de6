//! What a figure shows: its kind, the columns it takes, its words, its size and its looks.

/// The kinds of figures.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Counts of a number in bins of equal width.
    Histogram,
    /// Empirical cumulative distribution functions, with their 95 % bands.
    Ecdf,
    /// Box plots: quartiles, whiskers to 1.5 interquartile ranges, the rows beyond, and the 95 %
    /// interval of the median.
    Box,
    /// Kernel densities, mirrored, with the quartiles within.
    Violin,
    /// Bars from zero, with intervals.
    Bar,
    /// Lines, with bands.
    Line,
    /// Points, with intervals.
    Scatter,
    /// Coloured cells with their numbers.
    Heatmap,
    /// Lines of equal numbers over a grid of places, and points among them.
    Contour,
    /// Estimates with intervals, one line for each, beside a line of no effect.
    Forest,
    /// Standardised mean differences of covariates, before and after adjustment.
    Love,
    /// Areas in proportion to sizes, in groups.
    Treemap,
    /// Nodes and arrows in layers: a structural causal model, a pipeline.
    Graph,
    /// How many are left after each stage.
    Funnel,
}

/// What a column does in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// The horizontal axis, or what stands for it.
    X,
    /// The vertical axis, or what stands for it.
    Y,
    /// The lower end of an interval.
    Low,
    /// The upper end of an interval.
    High,
    /// Groups by colour and shape; the number of a heatmap's cell, or of a place among contours.
    Color,
    /// Small multiples, one panel for each value.
    Facet,
    /// A text beside a mark.
    Label,
}

/// Which columns fit a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Numbers.
    Number,
    /// Texts, or numbers taken as names of categories.
    Category,
}

/// A column that a kind of figure takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// What the column does.
    pub role: Role,
    /// Whether there is no figure without it.
    pub needed: bool,
    /// The type of column that fits.
    pub takes: Takes,
    /// What it means in this kind of figure: a few words without a full stop.
    pub meaning: &'static str,
}

const fn needs(role: Role, takes: Takes, meaning: &'static str) -> Use {
    Use { role, needed: true, takes, meaning }
}

const fn may(role: Role, takes: Takes, meaning: &'static str) -> Use {
    Use { role, needed: false, takes, meaning }
}

const GROUPS: Use = may(Role::Color, Takes::Category, "groups, by colour and dash or shape");
const PANELS: Use = may(Role::Facet, Takes::Category, "one panel for each value, with one scale");
const LOW: Use = may(Role::Low, Takes::Number, "the lower end of the interval");
const HIGH: Use = may(Role::High, Takes::Number, "the upper end of the interval");

impl Kind {
    /// The columns that a kind needs and takes, the needed ones first.
    pub fn columns(self) -> &'static [Use] {
        use Takes::{Category, Number};
        match self {
            Kind::Histogram => {
                const { &[needs(Role::X, Number, "the number that is counted"), GROUPS, PANELS] }
            }
            Kind::Ecdf => {
                const { &[needs(Role::X, Number, "the number that is accumulated"), GROUPS, PANELS] }
            }
            Kind::Box | Kind::Violin => {
                const {
                    &[
                        needs(Role::Y, Number, "the number whose distribution is shown"),
                        may(Role::X, Category, "groups side by side"),
                        may(Role::Color, Category, "groups within groups, by colour"),
                        PANELS,
                    ]
                }
            }
            Kind::Bar => {
                const {
                    &[
                        needs(Role::X, Category, "one bar for each, or one for each and colour"),
                        needs(Role::Y, Number, "the length of the bar"),
                        LOW,
                        HIGH,
                        GROUPS,
                        PANELS,
                    ]
                }
            }
            Kind::Line => {
                const {
                    &[
                        needs(Role::X, Number, "where a point of the line is"),
                        needs(Role::Y, Number, "how high it is"),
                        LOW,
                        HIGH,
                        GROUPS,
                        PANELS,
                    ]
                }
            }
            Kind::Scatter => {
                const {
                    &[
                        needs(Role::X, Number, "where a point is"),
                        needs(Role::Y, Number, "how high it is"),
                        LOW,
                        HIGH,
                        GROUPS,
                        PANELS,
                        may(Role::Label, Category, "a text beside the point, where there is room"),
                    ]
                }
            }
            Kind::Heatmap => {
                const {
                    &[
                        needs(Role::X, Category, "the column of the cell"),
                        needs(Role::Y, Category, "the row of the cell"),
                        needs(Role::Color, Number, "the number of the cell"),
                        PANELS,
                    ]
                }
            }
            Kind::Contour => {
                const {
                    &[
                        needs(Role::X, Number, "where a place of the grid is"),
                        needs(Role::Y, Number, "how high it is"),
                        needs(Role::Color, Number, "the number that lines are of"),
                        may(
                            Role::Label,
                            Category,
                            "the text of a point; a row without one is a place of the grid",
                        ),
                        PANELS,
                    ]
                }
            }
            Kind::Forest => {
                const {
                    &[
                        needs(Role::Y, Category, "what is estimated, one line for each"),
                        needs(Role::X, Number, "the estimate"),
                        LOW,
                        HIGH,
                        GROUPS,
                        PANELS,
                    ]
                }
            }
            Kind::Love => {
                const {
                    &[
                        needs(Role::Y, Category, "the covariate"),
                        needs(Role::X, Number, "its standardised mean difference"),
                        LOW,
                        HIGH,
                        may(Role::Color, Category, "before and after adjustment"),
                        PANELS,
                    ]
                }
            }
            Kind::Treemap => {
                const {
                    &[
                        needs(Role::X, Category, "the name of the area"),
                        needs(Role::Y, Number, "its size"),
                        may(Role::Color, Category, "the group that holds the area"),
                        PANELS,
                    ]
                }
            }
            Kind::Graph => {
                const {
                    &[
                        needs(Role::X, Category, "the node where an arrow begins"),
                        needs(
                            Role::Y,
                            Category,
                            "the node where it ends; a row without one describes the node `x`",
                        ),
                        may(
                            Role::Color,
                            Category,
                            "the kind of the arrow, or the role of the node in a row without `y`",
                        ),
                        may(Role::Label, Category, "a text beside the arrow"),
                    ]
                }
            }
            Kind::Funnel => {
                const {
                    &[
                        needs(Role::X, Category, "the stage, in the order of the rows"),
                        needs(Role::Y, Number, "how many are left after it"),
                        may(Role::Label, Category, "why the others are not"),
                        PANELS,
                    ]
                }
            }
        }
    }

    /// `a`, or `an` where the kind's name begins with a vowel.
    pub(crate) fn article(self) -> &'static str {
        if self == Kind::Ecdf { "an" } else { "a" }
    }

    /// What a column does in this kind of figure, if it does anything.
    pub fn usage(self, role: Role) -> Option<&'static Use> {
        self.columns().iter().find(|u| u.role == role)
    }
}

/// The colours of a figure.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Theme {
    /// Dark on white.
    #[default]
    Light,
    /// Light on a dark ground.
    Dark,
    /// For paper: told apart without colours, by greys, dashes, shapes.
    Print,
}

/// How numbers become places on an axis.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equally long.
    #[default]
    Linear,
    /// Equal ratios are equally long. Numbers that are not positive are left out, counted and
    /// said. For lengths of texts, costs, sizes of models.
    Log,
}

/// What is drawn, and how. Only the kind and the columns it needs must be given.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The kind of figure.
    pub kind: Kind,
    /// The name of the column of [`Role::X`].
    pub x: Option<String>,
    /// The name of the column of [`Role::Y`].
    pub y: Option<String>,
    /// The name of the column of [`Role::Low`].
    pub low: Option<String>,
    /// The name of the column of [`Role::High`].
    pub high: Option<String>,
    /// The name of the column of [`Role::Color`].
    pub color: Option<String>,
    /// The name of the column of [`Role::Facet`].
    pub facet: Option<String>,
    /// The name of the column of [`Role::Label`].
    pub label: Option<String>,
    /// Where the line of reference is, on the axis of the numbers: no effect, a target. A forest
    /// plot has one at 0 without (at 1 on a logarithmic axis), a love plot two at ±0.1 (or at plus
    /// and minus this). A heatmap's palette diverges from it.
    pub reference: Option<f64>,
    /// The number of bins of a histogram, 1 to 500; as many as `numpy.histogram` takes with
    /// `bins="auto"` otherwise, at most 60.
    pub bins: Option<usize>,
    /// The scale of the horizontal numbers.
    pub x_scale: Option<Scale>,
    /// The scale of the vertical numbers.
    pub y_scale: Option<Scale>,
    /// The heading.
    pub title: Option<String>,
    /// What the caption begins with; the numbers of rows follow.
    pub caption: Option<String>,
    /// The label of the axis of `x`; the column's name and unit without.
    pub x_label: Option<String>,
    /// The label of the axis of `y`; the column's name and unit without.
    pub y_label: Option<String>,
    /// The width in centimetres, 4 to 100; 16 without.
    pub width: Option<f64>,
    /// The height in centimetres, 2 to 200; what the figure needs without.
    pub height: Option<f64>,
    /// The colours; light without.
    pub theme: Option<Theme>,
}

impl Spec {
    /// A figure of this kind, all else open.
    pub fn new(kind: Kind) -> Spec {
        Spec {
            kind,
            x: None,
            y: None,
            low: None,
            high: None,
            color: None,
            facet: None,
            label: None,
            reference: None,
            bins: None,
            x_scale: None,
            y_scale: None,
            title: None,
            caption: None,
            x_label: None,
            y_label: None,
            width: None,
            height: None,
            theme: None,
        }
    }

    /// The name of the column that is to do this.
    pub fn column(&self, role: Role) -> Option<&str> {
        match role {
            Role::X => &self.x,
            Role::Y => &self.y,
            Role::Low => &self.low,
            Role::High => &self.high,
            Role::Color => &self.color,
            Role::Facet => &self.facet,
            Role::Label => &self.label,
        }
        .as_deref()
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The SVG, its text in the font that [`crate::FONT_FAMILY`] names. It refers to nothing
    /// outside of itself, has no identifiers, scripts or styles, and can stand within an HTML page
    /// as it is. [`crate::embed`] makes a file of it that carries its font.
    pub svg: String,
    /// What stands below: the words of the spec, the number of rows, what was left out and why,
    /// and what the marks are. Plain text.
    pub caption: String,
    /// A text in the place of the picture: kind, axes, number of rows, ranges. Plain text.
    pub alt: String,
}
