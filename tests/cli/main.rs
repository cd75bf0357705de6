//! Tests of the `galeras` program from outside: what a user types, what they see, what is in
//! their folders afterwards.
//!
//! Every test makes a project of its own in a temporary folder (`harness`). Nothing here calls
//! the library.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]
#![allow(unreachable_pub)]

#[allow(dead_code)]
mod harness;
mod repository;

mod assertions;
mod bombs;
mod bugfix_and_testgen;
mod casestudy;
mod collect;
mod contracts;
mod correlate;
mod cut_and_sample;
mod damage;
mod data_verbs;
mod dedup;
mod dedup_bad_input;
mod dedup_odd_tables;
mod dedup_ports;
mod dedup_reuse;
mod exec_command;
mod exec_faults;
mod explain_codes;
mod galeras_workflow;
mod generate_faults;
mod generate_interrupted;
mod generate_limits;
mod generate_lock;
mod generate_ngram;
mod generate_openai;
mod generate_plan_errors;
mod generate_replay;
mod generate_reuse;
mod generate_secrets;
mod incremental;
mod inspect_verbs;
mod interruption;
mod invalid_references;
mod invalid_values;
mod invalid_yaml;
mod list_params;
mod lock_file;
mod logging;
mod manual_validation;
mod matrix;
mod matrix_of_mappings;
mod merge_keys;
mod mine_against_git;
mod mine_damage;
mod mine_files;
mod mine_history;
mod mine_hostile;
mod mine_methods;
mod mine_refused;
mod mine_remote;
mod mine_reuse;
mod mine_troubles;
mod named_checks;
mod open_references;
mod output_places;
mod outputs;
mod outputs_shown;
mod paper;
mod param_values;
mod prompt_mistakes;
mod prompt_templates;
mod python_files;
mod query_github;
mod query_github_faults;
mod quickstart;
mod read_files;
mod read_hostile;
mod read_pandas;
mod regress_columns;
mod regress_design;
mod regress_formulas;
mod regress_goldens;
mod regress_graph;
mod regress_implications;
mod regress_mistakes;
mod regress_paired;
mod regress_reasons;
mod regress_refusals;
mod regress_refuters;
mod regress_tables;
mod row_reuse;
mod scale;
mod score_goldens;
mod score_modes;
mod score_odd_texts;
mod score_ports_and_reuse;
mod secret_addresses;
mod sql_depth;
mod sql_rules;
mod staleness;
mod standard_output;
mod store_limits;
mod store_verbs;
mod stores_by_url;
mod strata_and_docstrings;
mod table3;
mod taxonomy_counts;
mod tokenizer;
mod trace;
mod trust;
mod union;
mod uses;
mod visible_text;
