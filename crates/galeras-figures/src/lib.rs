//! Figures of statistics, drawn from columns of numbers and texts.
