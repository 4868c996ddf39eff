#!/bin/sh
# Builds the driver of the threaded kernels and runs it: with the thread sanitizer, or for another processor.
#
#   tests/native/run.sh [tsan|arm] [PART OF A CASE'S NAME]
#
# tsan (the default) needs a compiler with the sanitizer's runtime library (g++ and clang++ both have one); arm needs a
# cross compiler and an emulator (on Debian: g++-aarch64-linux-gnu, qemu-user). Only what changed is compiled again;
# BUILD_ONLY=1 stops there. Inner loops are built for any machine of the kind.
set -eu
cd "$(dirname "$0")/../.."
target=tsan
case "${1:-}" in tsan | arm) target=$1 && shift ;; esac
build=build/$target
mkdir -p "$build"
flags="-std=c++20 -Icpp -Itests/native -DLT_ISA=portable -Wno-psabi"
if [ "$target" = tsan ]; then
  compiler=${CXX:-c++}
  flags="$flags -g -O1 -fno-omit-frame-pointer -fsanitize=thread"
  link="-fsanitize=thread"
else
  compiler=aarch64-linux-gnu-g++
  flags="$flags -O2 -ffp-contract=fast -fno-math-errno -fno-trapping-math"
  link="-static"
fi
make -s -j"${JOBS:-2}" -f - <<RULES
SOURCES := \$(shell find cpp/kernels tests/native -name '*.cpp')
OBJECTS := \$(patsubst %.cpp,$build/%.o,\$(SOURCES))
$build/threads: \$(OBJECTS)
	@$compiler $link -pthread \$^ -o \$@
$build/%.o: %.cpp
	@mkdir -p \$(dir \$@)
	@$compiler $flags -MMD -MP -c \$< -o \$@
-include \$(OBJECTS:.o=.d)
RULES
[ -z "${BUILD_ONLY:-}" ] || exit 0
[ "$target" = tsan ] || exec qemu-aarch64 $build/threads "$@"
# The sanitizer of older compilers wants memory where newer kernels do not put it by themselves.
fixed=$(command -v setarch > /dev/null && setarch -R true 2> /dev/null && echo "setarch -R" || true)
TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" exec $fixed $build/threads "$@"
