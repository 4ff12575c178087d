#include "launcher/plan/step_time.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

using doctest::Approx;

constexpr DeviceSpeed kSpeed{.flops_per_s = 100,
                             .memory_bytes_per_s = 50,
                             .inside = {.latency_s = 0.5, .bytes_per_s = 10},
                             .between = {.latency_s = 1, .bytes_per_s = 2}};

}  // namespace

TEST_CASE("computation is FLOPs over speed, with the bubble of a pipeline on top") {
  const StepWork work{
      .forward_flops = 1000, .backward_flops = 2000, .optimizer_bytes = 100, .idle_share = 0.25};
  const StepTime time = predict_step_time(work, {}, kSpeed);
  CHECK(time.forward == Approx(10));
  CHECK(time.backward == Approx(20));
  CHECK(time.idle == Approx(10));  // 30 s are three quarters of 40 s
  CHECK(time.optimizer == Approx(2));
  CHECK(time.total() == Approx(42));
}

TEST_CASE("collectives take latency and bytes on their link, and are hidden where they overlap") {
  const StepWork work{.forward_flops = 1000, .backward_flops = 2000};
  // 4 x 0.5 s + 80 / 10 s, of which one call of 2.5 s is exposed.
  const StepExchange gradients{.calls = 4, .sent_bytes = 80, .overlaps = true};
  CHECK(predict_step_time(work, {gradients}, kSpeed).communication == Approx(10));
  CHECK(predict_step_time(work, {gradients}, kSpeed).exposed == Approx(2.5));
  // 2 x 1 s + 20 / 2 s between nodes.
  const StepExchange activations{.calls = 2, .sent_bytes = 20, .between_nodes = true};
  CHECK(predict_step_time(work, {activations}, kSpeed).exposed == Approx(12));
  CHECK(predict_step_time(work, {gradients, activations}, kSpeed).total() == Approx(30 + 14.5));
}

TEST_CASE("communication that takes longer than the computation is exposed") {
  const StepWork work{.forward_flops = 100, .backward_flops = 200};
  const StepExchange gradients{.calls = 10, .sent_bytes = 950, .overlaps = true};
  // 5 s + 95 s, behind 3 s of computation.
  CHECK(predict_step_time(work, {gradients}, kSpeed).exposed == Approx(97));
}

}  // namespace scaletrain::launcher
