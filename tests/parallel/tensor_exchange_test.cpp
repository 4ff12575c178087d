#include "lib/parallel/tensor_exchange.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using testing::run_ranks;

constexpr int kRanks = 2;

// [batch, tokens, features], other numbers on each rank.
at::Tensor input_of(int rank, std::int64_t tokens = 4) {
  at::manual_seed(static_cast<std::uint64_t>(rank));
  return at::randn({3, tokens, 2}).requires_grad_();
}

at::Tensor sum_of_all(std::int64_t tokens = 4) {
  at::Tensor sum = at::zeros({3, tokens, 2});
  for (int rank = 0; rank < kRanks; ++rank) sum = sum + input_of(rank, tokens).detach();
  return sum;
}

at::Tensor joined() { return at::cat({input_of(0).detach(), input_of(1).detach()}, 1); }

at::Tensor own_tokens(const at::Tensor& all, int rank) {
  const std::int64_t tokens = all.size(1) / kRanks;
  return all.narrow(1, rank * tokens, tokens);
}

// "" where `exchange` gives `output` of this rank's input, and backward of `upper` `gradient`.
std::string wrong(const units::Exchange& exchange, const at::Tensor& input,
                  const at::Tensor& output, const at::Tensor& upper, const at::Tensor& gradient) {
  const at::Tensor given = exchange(input);
  std::string text;
  if (!given.detach().equal(output)) text += "forward ";
  given.backward(upper);
  if (!input.grad().equal(gradient)) text += "backward ";
  return text;
}

using Body = std::function<std::string(dist::Group&)>;

void check_on_ranks(const Body& body) {
  for (const auto& result : run_ranks({.world_size = kRanks}, [&](const core::WorkerEnv& env) {
         dist::Group group(env, at::kCPU, 30s);
         std::string text = body(group);
         group.end("the end");
         return text;
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

TEST_CASE("without divided tokens one exchange sums in backward, the other in forward") {
  check_on_ranks([](dist::Group& group) {
    const at::Tensor upper = input_of(group.rank()).detach();
    return wrong(parallel::entry_exchange(group, false), input_of(group.rank()),
                 input_of(group.rank()).detach(), upper, sum_of_all()) +
           wrong(parallel::sum_exchange(group, false), input_of(group.rank()), sum_of_all(), upper,
                 upper);
  });
}

TEST_CASE("what ranks have counted is summed in forward and in backward") {
  check_on_ranks([](dist::Group& group) {
    const at::Tensor upper = input_of(group.rank()).detach();
    return wrong(parallel::count_exchange(group), input_of(group.rank()), sum_of_all(), upper,
                 sum_of_all());
  });
}

TEST_CASE("with divided tokens they are gathered and their sums scattered, and in backward too") {
  check_on_ranks([](dist::Group& group) {
    const int rank = group.rank();
    const at::Tensor wide = input_of(rank, 8).detach();
    const at::Tensor scattered = own_tokens(sum_of_all(8), rank);
    return wrong(parallel::entry_exchange(group, true), input_of(rank), joined(), wide, scattered) +
           wrong(parallel::sum_exchange(group, true), input_of(rank, 8), scattered,
                 input_of(rank).detach(), joined());
  });
}

TEST_CASE("units between the first and the last see some of the tokens") {
  check_on_ranks([](dist::Group& group) -> std::string {
    std::vector<std::int64_t> seen;
    const auto looks = [&seen](units::Flow flow, const units::Context&) {
      seen.push_back(flow[0].size(1));
      return units::Flow{flow[0] * 2};
    };
    std::vector<units::Unit> units;
    for (const char* const name : {"stem", "first", "second", "head"}) {
      units.push_back({.name = name, .tensors = {}, .run = looks});
    }
    units = parallel::with_divided_tokens(std::move(units), group);
    const at::Tensor input = input_of(0);
    const units::Flow output = units::run(units, {input}, {});
    output[0].backward(at::ones({3, 4, 2}));
    const bool right = output[0].equal(input * 16) && input.grad().eq(16).all().item<bool>() &&
                       seen == std::vector<std::int64_t>{4, 2, 2, 4};
    return right ? "" : "wrong";
  });
}

TEST_CASE("with nothing between the first unit and the last all see all tokens") {
  check_on_ranks([](dist::Group& group) -> std::string {
    const auto same = [](units::Flow flow, const units::Context&) { return flow; };
    std::vector<units::Unit> units;
    for (const char* const name : {"stem", "head"}) {
      units.push_back({.name = name, .tensors = {}, .run = same});
    }
    units = parallel::with_divided_tokens(std::move(units), group);
    if (units.size() != 2) return "units are gone";
    return units[0].run({input_of(0)}, {})[0].size(1) == 4 ? "" : "divided";
  });
}

TEST_CASE("tokens that ranks cannot divide evenly are refused") {
  check_on_ranks([](dist::Group& group) -> std::string {
    const auto same = [](units::Flow flow, const units::Context&) { return flow; };
    const std::vector<units::Unit> units = parallel::with_divided_tokens(
        std::vector<units::Unit>(3, {.name = "unit", .tensors = {}, .run = same}), group);
    const std::vector<std::function<void()>> uses{
        [&] { parallel::sum_exchange(group, true)(input_of(0, 5)); },
        [&] { units.front().run({input_of(0, 5)}, {}); }};
    for (const auto& use : uses) {
      try {
        use();
        return "nothing was thrown";
      } catch (const core::RecipeError& error) {
        const std::string expected =
            "/parallel/sequence: 2 ranks cannot divide 5 tokens evenly\n"
            "  use a multiple of \"tensor\", or leave it out";
        if (error.what() != expected) return error.what();
      }
    }
    return "";
  });
}

TEST_CASE("ranks that have some of the classes each sum and compare what they have of them") {
  check_on_ranks([](dist::Group& group) -> std::string {
    const units::ClassCut cut = parallel::class_cut(group, 3 * group.rank(), 6);
    if (cut.first != 3 * group.rank() || cut.classes != 6) return "other classes";
    const at::Tensor sums = at::full({2}, group.rank() + 1.0);
    cut.sum(sums);
    const at::Tensor highest = at::full({2}, group.rank() - 5.0);
    cut.max(highest);
    return sums.eq(3).all().item<bool>() && highest.eq(-4).all().item<bool>() ? "" : "wrong";
  });
}

TEST_CASE("a gradient that ranks have of their tokens alone becomes the sum of theirs") {
  check_on_ranks([](dist::Group& group) -> std::string {
    const at::Tensor parameter = at::ones({2}).requires_grad_();
    parallel::sum_gradient(parameter, group);
    (parameter * (group.rank() + 1)).sum().backward();
    (parameter * (group.rank() + 1)).sum().backward();  // another micro-step
    return parameter.grad().eq(6).all().item<bool>() ? "" : "wrong";
  });
}

}  // namespace
