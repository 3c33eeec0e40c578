// One float at a time: what every compiler and machine can do. Compiled without automatic vectorisation.
namespace {
constexpr int kWidth = 1;
constexpr int kRowsAtOnce = 2;
}
#include "kernel.inc"

namespace crisptree {
const Kernel scalar_kernel = {"scalar", route, values_of, take, score_at, route_block};
}
