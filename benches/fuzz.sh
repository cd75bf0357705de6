#!/usr/bin/env bash
# Fuzzing by coverage: how many inputs every target took, and which of them broke it.
#
#   benches/fuzz.sh [SECONDS [TARGET…]]      (900 seconds for each of all targets)
#   benches/fuzz.sh list
#
# Two targets run at a time. Needs a C++ compiler, which builds libFuzzer; stable Rust suffices.
# Inputs that reach something new are kept from one run to the next in OUT/TARGET/corpus, those
# that break a target in OUT/TARGET/crashes, where OUT is $GALERAS_FUZZ_OUT or target/fuzz-out.
# Without targets of the engine DataFusion is not built. Exit code 1 if anything broke.
#
# To look at a crash: GALERAS_FUZZ_TARGET=NAME target/fuzz/release/galeras-fuzz FILE. When it is
# mended, FILE goes into fuzz/corpus/NAME, where `cargo test` runs it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

target_dir="${CARGO_TARGET_DIR:-$PWD/target}/fuzz"
out="${GALERAS_FUZZ_OUT:-$PWD/target/fuzz-out}"
# The program, copied: a build for other targets meanwhile changes nothing.
program="$out/galeras-fuzz"
# Restarts of a target that breaks again and again.
most_crashes=20

build() {
    # What is fuzzed is what is shipped.
    cp Cargo.lock fuzz/libfuzzer/Cargo.lock
    RUSTC_WRAPPER="$PWD/fuzz/libfuzzer/rustc.sh" CARGO_TARGET_DIR="$target_dir" \
        cargo build --quiet --release --manifest-path fuzz/libfuzzer/Cargo.toml "$@"
    mkdir -p "$out"
    install "$target_dir/release/galeras-fuzz" "$program"
}

names() {
    GALERAS_FUZZ_TARGET=list "$program"
}

# All names are read: a program whose reader has gone is a failure of the pipe.
is_target() {
    [ "$(names | grep -cx "$1")" -gt 0 ]
}

# How many inputs a run of libFuzzer took: as it says itself, or, if it could not, at least.
executions() {
    awk '/^stat::number_of_executed_units:/ { exact = $2 }
         /^#[0-9]+/ { least = substr($1, 2) }
         END { print (exact ? exact : least) + 0 }' "$1"
}

fuzz() {
    local name="$1" seconds="$2" folder="$out/$1"
    local total=0 crashes=0 begun=$SECONDS left status before
    mkdir -p "$folder/corpus" "$folder/crashes"
    # Files that targets write are in memory.
    local scratch
    scratch=$(mktemp -d -p /dev/shm galeras-fuzz.XXXXXX)
    local options=(-max_len=4096 -timeout=25 -rss_limit_mb=4096 -print_final_stats=1
        -artifact_prefix="$folder/crashes/" -verbosity=1)
    local words="fuzz/dictionaries/$name.dict"
    [ -f "$words" ] && options+=(-dict="$words")
    while left=$((seconds - (SECONDS - begun))) && [ "$left" -gt 0 ]; do
        before=$(find "$folder/crashes" -type f | wc -l)
        status=0
        # Certificates are not needed on loopback, and reading them takes long.
        GALERAS_FUZZ_TARGET="$name" GALERAS_FUZZ_LAST="$scratch/last" TMPDIR="$scratch" \
            SSL_CERT_FILE=/dev/null "$program" "${options[@]}" -max_total_time="$left" \
            "$folder/corpus" "fuzz/corpus/$name" >"$folder/log" 2>&1 || status=$?
        total=$((total + $(executions "$folder/log")))
        [ "$status" -eq 0 ] && break
        crashes=$((crashes + 1))
        cp "$folder/log" "$folder/crash-$crashes.log"
        # Not even libFuzzer saw it coming.
        if [ "$(find "$folder/crashes" -type f | wc -l)" -eq "$before" ]; then
            cp "$scratch/last" "$folder/crashes/ended-$status-$(date +%s)"
        fi
        [ "$crashes" -ge "$most_crashes" ] && break
    done
    rm -rf "$scratch"
    printf '%-18s %12d executions %3d crashes %6d inputs kept %6d seconds\n' "$name" "$total" \
        "$crashes" "$(find "$folder/corpus" -type f | wc -l)" "$((SECONDS - begun))"
    [ "$crashes" -eq 0 ]
}

if [ "${1:-}" = --one ]; then
    fuzz "$2" "$3"
    exit
fi
if [ "${1:-}" = list ]; then
    build --features engine
    names
    exit
fi
seconds="${1:-900}"
shift || true
if [ "$#" -eq 0 ]; then
    build --features engine
    mapfile -t chosen < <(names)
else
    chosen=("$@")
    build
    for name in "${chosen[@]}"; do
        if ! is_target "$name"; then
            build --features engine
            break
        fi
    done
fi
for name in "${chosen[@]}"; do
    is_target "$name" || { echo "there is no target $name; see: $0 list" >&2; exit 2; }
done
export GALERAS_FUZZ_OUT="$out"
printf '%s\n' "${chosen[@]}" | xargs -P 2 -I NAME "$0" --one NAME "$seconds" || exit 1
