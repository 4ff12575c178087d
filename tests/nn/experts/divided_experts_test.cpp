#include "lib/nn/experts/divided_experts.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

namespace scaletrain::nn {
namespace {

using at::Tensor;
using Counts = units::ExpertCut::Counts;

Tensor rows_of(const std::vector<float>& numbers) { return at::tensor(numbers).unsqueeze(1); }

Counts numbers_of(const Tensor& rows) {
  Counts numbers;
  for (std::int64_t i = 0; i < rows.size(0); ++i)
    numbers.push_back(rows[i][0].item<std::int64_t>());
  return numbers;
}

}  // namespace

TEST_CASE("experts take the rows of all ranks at once, and the answers go back by rank") {
  // The second of two ranks with two experts each. It has a row for expert 0, two for 1, two for 2
  // and one for 3; the other rank has two for expert 2.
  std::string said;
  int moves = 0;
  const units::ExpertCut cut{
      .rank = 1,
      .ranks = 2,
      .exchange_counts =
          [](const Tensor& counts) {
            CHECK(at::equal(counts, at::tensor({1, 2, 2, 1}, at::kLong).view({2, 2})));
            return at::tensor({2, 0, 2, 1}, at::kLong).view({2, 2});
          },
      .move =
          [&](const Tensor& rows, const Counts& send, const Counts& receive) {
            said += fmt::format("move {} send {} receive {}\n", numbers_of(rows), send, receive);
            return moves++ == 0 ? rows_of({10, 11, 3, 4, 5}) : rows_of({100, 101, 102, 6, 8, 10});
          }};
  const Tensor answers = answers_of_ranks(
      rows_of({0, 1, 2, 3, 4, 5}), {1, 2, 2, 1}, cut, [&](std::size_t expert, const Tensor& rows) {
        said += fmt::format("expert {} takes {}\n", expert, numbers_of(rows));
        return rows * static_cast<double>(expert);
      });
  CHECK(said ==
        "move [0, 1, 2, 3, 4, 5] send [3, 3] receive [2, 3]\n"
        "expert 2 takes [10, 11, 3, 4]\n"
        "expert 3 takes [5]\n"
        "move [20, 22, 6, 8, 15] send [2, 3] receive [3, 3]\n");
  CHECK(numbers_of(answers) == Counts{100, 101, 102, 6, 8, 10});
}

TEST_CASE("an expert that nobody chooses is asked too, so that its weights have gradients") {
  const Tensor weight = at::ones({1}).requires_grad_();
  const units::ExpertCut cut{.rank = 0,
                             .ranks = 2,
                             .exchange_counts =
                                 [](const Tensor& /*counts*/) {
                                   return at::zeros({2, 1}, at::kLong);
                                 },
                             .move = [](const Tensor& rows, const Counts& /*send*/,
                                        const Counts& /*receive*/) { return rows; }};
  const Tensor answers =
      answers_of_ranks(at::ones({0, 3}), {0, 0}, cut,
                       [&](std::size_t /*expert*/, const Tensor& rows) { return rows * weight; });
  CHECK(answers.sizes() == at::IntArrayRef{0, 3});
  answers.sum().backward();
  CHECK(at::equal(weight.grad(), at::zeros({1})));
}

}  // namespace scaletrain::nn
