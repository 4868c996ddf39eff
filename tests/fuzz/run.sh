#!/bin/sh
# Builds the fuzz target with address and undefined-behaviour sanitizers and runs it.
#
#   tests/fuzz/run.sh [SECONDS] [more libFuzzer options]       default: 600 seconds
#
# Needs clang with its runtime libraries (Debian: apt-get install clang). The corpus it collects stays in
# build/fuzz/corpus, so that a later run goes on where this one stopped; an input that fails is left in build/fuzz.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
[ $# -gt 0 ] && shift
mkdir -p build/fuzz/corpus
kernels="text/xc_parse text/xc_rows text/xc_write text/pair_lines text/decimal base/growing base/parallel base/cpu_quota"
${CXX:-clang++} -std=c++20 -g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all \
  -fsanitize=fuzzer,address,undefined -Icpp tests/fuzz/fuzz_xc.cpp \
  $(for name in $kernels; do echo "cpp/kernels/$name.cpp"; done) -pthread -o build/fuzz/fuzz_xc
exec build/fuzz/fuzz_xc -max_total_time="$seconds" -max_len=512 -dict=tests/fuzz/xc.dict -print_final_stats=1 \
  -artifact_prefix=build/fuzz/ "$@" build/fuzz/corpus tests/fuzz/corpus/xc
