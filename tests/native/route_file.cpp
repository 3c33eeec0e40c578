// Reads a tree and rows from a file and prints the leaf of every row for each kernel that this machine has.
// Made for machines that only an emulator offers; see check_neon.py.
#include <cstdio>
#include <vector>

#include "../../src/crisptree/native/router.h"

template <class Value>
std::vector<Value> read(std::FILE* file, size_t n) {
  std::vector<Value> values(n);
  if (std::fread(values.data(), sizeof(Value), n, file) != n) std::abort();
  return values;
}

int main(int, char** arguments) {
  std::FILE* file = std::fopen(arguments[1], "rb");
  const auto size = read<int64_t>(file, 3);  // splits, features, rows
  const auto left = read<int32_t>(file, size[0]), right = read<int32_t>(file, size[0]);
  const auto weight = read<float>(file, size[0] * size[1]), bias = read<float>(file, size[0]);
  const auto data = read<float>(file, size[2] * size[1]);
  const crisptree::Router router(left.data(), right.data(), weight.data(), bias.data(), size[0], size[1]);
  const crisptree::Rows rows = {data.data(), crisptree::Element::kFloat, size[2], size[1], 1};
  std::vector<int64_t> leaves(size[2]);
  for (const crisptree::Kernel* kernel : crisptree::available_kernels()) {
    if (!router.route(rows, leaves.data(), 2, true, *kernel)) return 1;
    std::printf("%s", kernel->name);
    for (const int64_t leaf : leaves) std::printf(" %lld", static_cast<long long>(leaf));
    std::printf("\n");
  }
}
