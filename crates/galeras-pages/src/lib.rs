//! Pages of a study as HTML that needs no network.
