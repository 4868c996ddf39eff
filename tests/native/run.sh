#!/bin/sh
# Builds the driver of the threaded kernels with the thread sanitizer and runs it.
#
#   tests/native/run.sh [PART OF A CASE'S NAME]
#
# Needs a compiler with the sanitizer's runtime library (g++ and clang++ both have one). Only what changed is compiled
# again; BUILD_ONLY=1 stops there. Inner loops are built for any machine: threads are started, and data shared, outside
# of them.
set -eu
cd "$(dirname "$0")/../.."
build=build/tsan
mkdir -p $build
flags="-std=c++20 -g -O1 -fno-omit-frame-pointer -fsanitize=thread -Icpp -Itests/native -DLT_ISA=portable -Wno-psabi"
make -s -j"${JOBS:-2}" -f - <<RULES
SOURCES := \$(wildcard cpp/kernels/*.cpp tests/native/*.cpp)
OBJECTS := \$(patsubst %.cpp,$build/%.o,\$(SOURCES))
$build/threads: \$(OBJECTS)
	@${CXX:-c++} -fsanitize=thread -pthread \$^ -o \$@
$build/%.o: %.cpp
	@mkdir -p \$(dir \$@)
	@${CXX:-c++} $flags -MMD -c \$< -o \$@
-include \$(OBJECTS:.o=.d)
RULES
[ -z "${BUILD_ONLY:-}" ] || exit 0
# The sanitizer of older compilers wants memory where newer kernels do not put it by themselves.
fixed=$(command -v setarch > /dev/null && setarch -R true 2> /dev/null && echo "setarch -R" || true)
TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" exec $fixed $build/threads "$@"
