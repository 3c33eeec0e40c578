// Eight floats at a time; run only where the processor says it can.
#if defined(__GNUC__) && defined(__x86_64__)
namespace {
constexpr int kWidth = 8;
constexpr int kRowsAtOnce = 8;
}
#include "kernel.inc"

namespace crisptree {
const Kernel avx2_kernel = {"avx2", route, values_of, take, score_at, route_block};
}
#endif
