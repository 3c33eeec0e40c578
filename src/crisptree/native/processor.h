// Which instruction sets the processor runs; both modules choose among the same.
#pragma once

namespace crisptree {

#if defined(__GNUC__) && defined(__x86_64__)
inline bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
#endif

}  // namespace crisptree
