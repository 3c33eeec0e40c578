// Four floats at a time: SSE2 or NEON, whichever the machine's base line is.
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
namespace {
constexpr int kWidth = 4;
constexpr int kRowsAtOnce = 4;
}
#include "kernel.inc"

namespace crisptree {
#if defined(__aarch64__)
const Kernel vector128_kernel = {"neon", route, values_of, take, score_at, route_block};
#else
const Kernel vector128_kernel = {"sse2", route, values_of, take, score_at, route_block};
#endif
}
#endif
