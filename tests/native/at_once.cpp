// Many threads route rows through one tree, and take the moments of its scores, at the same time; built with a thread sanitizer
// (`make test-races`), which ends the program where two of them meet. What they find must be what one thread finds.
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "router.h"

using namespace crisptree;

namespace {

constexpr int kCallers = 4, kRounds = 1;
constexpr int64_t kFeatures = 40, kRows = 30000;

std::vector<float> normal(int64_t n, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> draw;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = draw(random);
  return values;
}

// A complete tree: the children of split i are 2i + 1 and 2i + 2, or leaves.
struct Planted {
  std::vector<int32_t> left, right;
  std::vector<float> weight, bias;

  explicit Planted(int32_t n) : weight(normal(n * kFeatures, 1)), bias(normal(n, 2)) {
    for (int32_t i = 0; i < n; ++i) {
      left.push_back(2 * i + 1 < n ? 2 * i + 1 : ~(2 * i + 1 - n));
      right.push_back(2 * i + 2 < n ? 2 * i + 2 : ~(2 * i + 2 - n));
    }
  }
};

struct Answer {
  std::vector<int64_t> leaves = std::vector<int64_t>(kRows);
  std::vector<double> moments;
  bool operator==(const Answer& other) const { return leaves == other.leaves && moments == other.moments; }
};

Answer ask(const Router& router, const std::vector<float>& rows, const std::vector<double>& weight, int n_threads, const Kernel& kernel) {
  Answer answer;
  answer.moments.assign(3 * router.n_splits(), 0.0);
  router.route({rows.data(), crisptree::Element::kFloat, kRows, kFeatures, 1}, answer.leaves.data(), n_threads, true, kernel);
  router.score_moments(rows.data(), kRows, weight.data(), answer.moments.data(), n_threads, kernel);
  return answer;
}

}  // namespace

int main() {
  const Planted tree(15);
  const Router router(tree.left.data(), tree.right.data(), tree.weight.data(), tree.bias.data(), 15, kFeatures);
  const std::vector<float> rows = normal(kRows * kFeatures, 3);
  const std::vector<double> weight(kRows, 0.5);
  int different = 0;
  for (const Kernel* kernel : available_kernels()) {
    const Answer expected = ask(router, rows, weight, 1, *kernel);
    std::vector<int> wrong(kCallers, 0);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&, caller] {
        for (int round = 0; round < kRounds; ++round) wrong[caller] += !(ask(router, rows, weight, 1 + caller, *kernel) == expected);
      });
    }
    for (std::thread& caller : callers) caller.join();
    for (const int number : wrong) different += number;
  }
  std::printf("%d answers differ from those of one thread\n", different);
  return different != 0;
}
