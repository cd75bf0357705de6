//! Bounds of an effect where outcomes are absent: rows of the port `sensitivity`, with or without
//! an estimate.

use super::args::Args;
use super::comparison::{Contrast, IncompleteUnits};
use super::data_faults::lost_in_rounding;
use super::evalue::is_binary;
use super::frame::{AnalysisFrame, NONE};
use super::sensitivity::{CLUSTERED, SensitivityRow};
use galeras_base::prose::{confidence_level, count, four_digits};
use galeras_causal::{
    AttritionBounds, ObservedArm, Refusal, lee_bounds, worst_case, worst_case_pairs,
};
use galeras_operator::far_numbers::{LEAST_RANGE, least_if_far};

/// The outcomes of a contrast, with gaps.
struct ObservedOutcomes {
    /// Under the treatment and under control.
    arms: [Vec<f64>; 2],
    absent: [usize; 2],
    /// The constant subtracted from outcomes that are far from zero.
    origin: f64,
    /// Why doubles do not represent them.
    lost: Option<String>,
    /// With units, their means under the treatment and under control.
    pairs: Option<Vec<(Option<f64>, Option<f64>)>>,
}

impl ObservedOutcomes {
    /// Counts units where these are compared, else rows.
    fn of(frame: &AnalysisFrame, contrast: &Contrast, outcome: &str) -> Self {
        let values = &frame.numbers[outcome];
        let origin = least_if_far(values).unwrap_or(0.0);
        let codes = [&contrast.treatment, &contrast.control].map(|arm| frame.arms.code(arm));
        let arm = |row: usize| codes.iter().position(|code| *code == Some(frame.arms.rows[row]));
        let rows: Vec<u32> =
            (0..frame.len() as u32).filter(|r| arm(*r as usize).is_some()).collect();
        let lost = lost_in_rounding(frame, outcome, rows.iter().copied(), LEAST_RANGE);
        let Some(units) = frame
            .units
            .as_ref()
            .filter(|_| IncompleteUnits::of(frame, codes[0], &rows) != IncompleteUnits::default())
        else {
            let (arms, absent) = (Default::default(), [0; 2]);
            let mut found = Self { arms, absent, origin, lost, pairs: None };
            for row in rows {
                let Some(place) = arm(row as usize) else { continue };
                match values[row as usize] {
                    value if value.is_nan() => found.absent[place] += 1,
                    value => found.arms[place].push(value - origin),
                }
            }
            return found;
        };
        let mut sums = vec![None::<[(f64, u32); 2]>; units.names.len()];
        for row in rows {
            let (unit, value) = (units.rows[row as usize], values[row as usize]);
            let (Some(place), true) = (arm(row as usize), unit != NONE) else { continue };
            let (sum, n) = &mut sums[unit as usize].get_or_insert_default()[place];
            if !value.is_nan() {
                *sum += value - origin;
                *n += 1;
            }
        }
        let mean = |(sum, n): (f64, u32)| (n > 0).then(|| sum / f64::from(n));
        let pairs: Vec<_> = sums.into_iter().flatten().map(|[t, c]| (mean(t), mean(c))).collect();
        let arms = [
            pairs.iter().filter_map(|pair| pair.0).collect::<Vec<f64>>(),
            pairs.iter().filter_map(|pair| pair.1).collect(),
        ];
        let absent = [pairs.len() - arms[0].len(), pairs.len() - arms[1].len()];
        Self { arms, absent, origin, lost, pairs: Some(pairs) }
    }

    fn arm(&self, place: usize) -> ObservedArm<'_> {
        ObservedArm { outcomes: &self.arms[place], absent: self.absent[place] }
    }
}

/// The rows about absent outcomes of a comparison; none if none are absent.
pub(super) fn attrition_rows(
    args: &Args,
    frame: &AnalysisFrame,
    contrast: &Contrast,
    outcome: &str,
) -> Vec<SensitivityRow> {
    let found = ObservedOutcomes::of(frame, contrast, outcome);
    if found.absent == [0, 0] || found.arms.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    let mut add = |measure: &str, value: Result<f64, String>, note: String| {
        rows.push(SensitivityRow::new(outcome, contrast, "attrition", measure, value, note));
    };
    let what = if found.pairs.is_some() { ("unit", "units") } else { ("row", "rows") };
    for (place, measure, arm) in
        [(0, "absent_treatment", &contrast.treatment), (1, "absent_control", &contrast.control)]
    {
        let absent = found.absent[place];
        let all = count(absent + found.arms[place].len(), what.0, what.1);
        let note = format!("Of {all} under {arm}, {absent} have no {outcome}.");
        add(measure, Ok(absent as f64), note);
    }
    let words = |reason: Refusal| reason.to_string();
    let manski = range(args, outcome, &found).and_then(|range| {
        let from_origin = (range.0 - found.origin, range.1 - found.origin);
        let bounds = match &found.pairs {
            Some(pairs) => worst_case_pairs(pairs, from_origin),
            None => worst_case(found.arm(0), found.arm(1), from_origin),
        };
        Ok((bounds.map_err(words)?, range))
    });
    match manski {
        Err(reason) => add("manski_low", Err(reason), String::new()),
        Ok((bounds, (low, high))) => {
            let (low, high) = (four_digits(low), four_digits(high));
            let note = |end: &str| {
                format!(
                    "The {end} effect there can be, if an absent outcome may be anything from \
                     {low} to {high} (Manski 1990)."
                )
            };
            add("manski_low", Ok(bounds.low), note("lowest"));
            add("manski_high", Ok(bounds.high), note("highest"));
            let interval = match args.cluster {
                Some(_) => Err(CLUSTERED.to_string()),
                None => {
                    let none = "the bounds have no standard errors";
                    bounds.interval(args.alpha).ok_or_else(|| none.to_string())
                }
            };
            let level = confidence_level(args.alpha);
            let note = |end: &str| {
                format!(
                    "The {end} end of the {level} % interval of the effect, wherever between the \
                     bounds it is (Imbens and Manski 2004)."
                )
            };
            add("manski_ci_low", interval.clone().map(|ends| ends.0), note("lower"));
            add("manski_ci_high", interval.map(|ends| ends.1), note("upper"));
        }
    }
    match lee(&found, contrast) {
        Err(reason) => add("lee_low", Err(reason), String::new()),
        Ok(bounds) => {
            let pairs = match found.pairs {
                Some(_) => {
                    " Units that are there under both are known: the estimate with missing: \
                           drop is of them."
                }
                None => "",
            };
            let note = |end: &str| {
                format!(
                    "The {end} effect there can be on those whose outcome is there under either \
                     arm, if an arm only adds outcomes or only removes them (Lee 2009).{pairs}"
                )
            };
            add("lee_low", Ok(bounds.low), note("lowest"));
            add("lee_high", Ok(bounds.high), note("highest"));
        }
    }
    rows
}

/// Lee's bounds. Units show whether an arm both adds and removes outcomes.
fn lee(found: &ObservedOutcomes, contrast: &Contrast) -> Result<AttritionBounds, String> {
    if let Some(reason) = &found.lost {
        return Err(reason.clone());
    }
    if let Some(pairs) = &found.pairs {
        let alone = |wanted: [bool; 2]| {
            pairs.iter().filter(|pair| [pair.0.is_some(), pair.1.is_some()] == wanted).count()
        };
        let (treated, control) = (alone([true, false]), alone([false, true]));
        if treated > 0 && control > 0 {
            return Err(format!(
                "neither arm only adds outcomes: {} an outcome under `{}` alone, {} under `{}` \
                 alone",
                count(treated, "unit has", "units have"),
                contrast.treatment,
                count(control, "unit", "units"),
                contrast.control,
            ));
        }
    }
    lee_bounds(found.arm(0), found.arm(1)).map_err(|reason| reason.to_string())
}

fn range(args: &Args, outcome: &str, found: &ObservedOutcomes) -> Result<(f64, f64), String> {
    if let Some(reason) = &found.lost {
        return Err(reason.clone());
    }
    match args.ranges.get(outcome).map(Vec::as_slice) {
        Some([low, high]) => Ok((*low, *high)),
        _ if found.origin == 0.0 && found.arms.iter().all(|arm| is_binary(arm)) => Ok((0.0, 1.0)),
        _ => Err(format!(
            "the worst case of `{outcome}` is not known (ranges: {{ {outcome}: [LOW, HIGH] }} \
             tells which values it can have)"
        )),
    }
}
