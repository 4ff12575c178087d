// Ranks that each have some tokens of a sequence against at::scaled_dot_product_attention on all of
// them.
#include "lib/parallel/context_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <optional>
#include <string>

#include "lib/core/error.h"
#include "lib/units/memory_meter.h"
#include "tests/dist/ranks.h"

namespace scaletrain::parallel {
namespace {

using namespace std::chrono_literals;
using at::Tensor;
using testing::run_ranks;

constexpr double kMostOff = 1e-5;  // of the largest number

std::vector<std::int64_t> numbers(const Tensor& tensor) {
  return {tensor.const_data_ptr<std::int64_t>(),
          tensor.const_data_ptr<std::int64_t>() + tensor.numel()};
}

TEST_CASE("each rank has a chunk of the first half and the one as far from the end") {
  CHECK(numbers(places_on_ring(12, 0, 3)) == std::vector<std::int64_t>{0, 1, 10, 11});
  CHECK(numbers(places_on_ring(12, 1, 3)) == std::vector<std::int64_t>{2, 3, 8, 9});
  CHECK(numbers(places_on_ring(12, 2, 3)) == std::vector<std::int64_t>{4, 5, 6, 7});
  CHECK_THROWS_WITH_AS(places_on_ring(10, 0, 2),
                       "/parallel/context: 2 ranks divide a sequence into 4 chunks, and it has 10 "
                       "tokens\n  use a multiple of 4",
                       core::RecipeError);
}

struct AttentionCase {
  const char* name;
  std::int64_t tokens = 16, heads = 4, key_heads = 4;
  bool documents = false;
};

core::MeshPlan context_plan(int ranks, int context) {
  return core::MeshPlan(ranks, {.pipe = 1, .replica = {}, .shard = 1, .context = context});
}

struct Drawn {
  Tensor queries, keys, values, gradient, documents;
};

Drawn draw(const AttentionCase& one) {
  at::manual_seed(7);
  Drawn drawn{.queries = at::randn({2, one.heads, one.tokens, 8}),
              .keys = at::randn({2, one.key_heads, one.tokens, 8}),
              .values = at::randn({2, one.key_heads, one.tokens, 8}),
              .gradient = at::randn({2, one.heads, one.tokens, 8}),
              .documents = {}};
  // Of about four tokens each; both samples have others.
  if (one.documents) {
    drawn.documents = at::rand({2, one.tokens}).lt(0.25).to(at::kLong).cumsum(1);
  }
  return drawn;
}

// Queries, keys and values as leaves, and what attention gave of them.
struct Answer {
  Tensor queries, keys, values, output;
};

Answer on_one_rank(const AttentionCase& one, const Drawn& drawn) {
  Answer answer{.queries = drawn.queries.clone().requires_grad_(),
                .keys = drawn.keys.clone().requires_grad_(),
                .values = drawn.values.clone().requires_grad_(),
                .output = {}};
  std::optional<Tensor> sees;
  if (one.documents) {
    sees = drawn.documents.unsqueeze(2).eq(drawn.documents.unsqueeze(1)).tril().unsqueeze(1);
  }
  const std::int64_t times = one.heads / one.key_heads;
  answer.output =
      at::scaled_dot_product_attention(answer.queries, answer.keys.repeat_interleave(times, 1),
                                       answer.values.repeat_interleave(times, 1), sees, 0.0, !sees);
  answer.output.backward(drawn.gradient);
  return answer;
}

Answer on_ring(const units::TokenCut& cut, const Drawn& drawn) {
  const Tensor places = cut.places(drawn.queries.size(2));
  const auto own = [&](const Tensor& all) { return all.index_select(2, places); };
  Answer answer{.queries = own(drawn.queries).requires_grad_(),
                .keys = own(drawn.keys).requires_grad_(),
                .values = own(drawn.values).requires_grad_(),
                .output = {}};
  answer.output = cut.attention(drawn.documents)(answer.queries, answer.keys, answer.values);
  answer.output.backward(own(drawn.gradient));
  return answer;
}

std::string compare(const AttentionCase& one, const units::TokenCut& cut) {
  const Drawn drawn = draw(one);
  const Answer whole = on_one_rank(one, drawn), part = on_ring(cut, drawn);
  const Tensor places = cut.places(one.tokens);
  std::string wrong;
  const auto look = [&](const char* what, const Tensor& own, const Tensor& all) {
    const double distance = (own - all.index_select(2, places)).abs().max().item<double>() /
                            all.abs().max().item<double>();
    if (distance < kMostOff) return;
    wrong += fmt::format("{}: {} is off by {:.1e}; ", one.name, what, distance);
  };
  look("the output", part.output, whole.output);
  look("the gradient of queries", part.queries.grad(), whole.queries.grad());
  look("the gradient of keys", part.keys.grad(), whole.keys.grad());
  look("the gradient of values", part.values.grad(), whole.values.grad());
  return wrong;
}

TEST_CASE("a ring of ranks attends as one rank that has all tokens, forward and backward") {
  for (const auto& result :
       run_ranks({.world_size = 4, .limit_s = 120}, [](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         dist::Group world(env, at::kCPU, 60s);
         dist::Mesh by_2(world, context_plan(4, 2)), by_4(world, context_plan(4, 4));
         std::string text;
         for (dist::Mesh* const mesh : {&by_2, &by_4}) {
           const units::TokenCut cut = token_cut(
               std::make_shared<dist::Ring>(dist::open_ring(*mesh, core::Axis::kContext)));
           for (const AttentionCase& one :
                {AttentionCase{"plain"}, AttentionCase{"long", 2400, 2, 2},
                 AttentionCase{"served heads", 16, 6, 2},
                 AttentionCase{"documents", 32, 4, 4, true},
                 AttentionCase{"documents and served heads", 32, 4, 2, true}}) {
             text += compare(one, cut);
           }
         }
         by_4.end("the end");
         return text;
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

TEST_CASE("a rank that is lost while keys go around is missed in seconds") {
  const auto results = run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) -> std::string {
    at::set_num_threads(1);
    dist::Group world(env, at::kCPU, 60s);
    dist::Mesh mesh(world, context_plan(3, 3));
    const units::TokenCut cut =
        token_cut(std::make_shared<dist::Ring>(dist::open_ring(mesh, core::Axis::kContext)));
    const Drawn drawn = draw({"", 12});
    on_ring(cut, drawn);
    if (world.rank() == 1) std::raise(SIGKILL);
    on_ring(cut, drawn);
    return "went on";
  });
  for (const std::size_t rank : {0, 2}) {
    CAPTURE(results[rank].text);
    CHECK(results[rank].status == 75);
    CHECK(results[rank].text.find("keys and values") != std::string::npos);
    CHECK(results[rank].seconds - results[1].seconds < 10);
  }
}

}  // namespace
}  // namespace scaletrain::parallel
