#!/usr/bin/env bash
# RUSTC_WRAPPER of benches/fuzz.sh: compiles what is fuzzed (our crates, and the parsers of others
# that inputs reach) with libFuzzer's counters, everything else as it is.
#
# These are flags of stable rustc. They are not in RUSTFLAGS, because there they would count every
# branch of DataFusion, too, and clearing all those counters would cost more than most inputs.
set -euo pipefail
rustc="$1"
shift

counted() {
    case " $* " in *" proc-macro "*) return 1 ;; esac
    case "${CARGO_CRATE_NAME:-}" in build_script_*) return 1 ;; esac
    case "${CARGO_PKG_NAME:-}" in
        galeras*) ;;
        granit-parser | serde-saphyr | minijinja | sqlparser | datafusion-sql) ;;
        parquet | arrow-csv | arrow-json | csv-core | zlib-rs | encoding_rs) ;;
        gix-actor | gix-config | gix-date | gix-diff | gix-object | gix-odb | gix-pack) ;;
        gix-packetline | gix-protocol | gix-ref | gix-transport | gix-traverse | gix-validate) ;;
        *) return 1 ;;
    esac
}

if counted "$@"; then
    exec "$rustc" "$@" \
        -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares \
        -Cllvm-args=-sanitizer-coverage-stack-depth \
        -Cllvm-args=-simplifycfg-branch-fold-threshold=0
fi
exec "$rustc" "$@"
