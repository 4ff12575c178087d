#include "lib/local_sgd/replicas.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace {

using namespace scaletrain;

TEST_CASE(
    "synchronous replicas change nothing, know no other replica and stop by their own signal") {
  local_sgd::Replicas replicas;
  replicas.resume();
  replicas.start();
  replicas.decouple(
      3,
      []() -> std::string {
        FAIL("needs no address");
        return "";
      },
      [] { FAIL("is not decoupled"); });
  core::StopReason stop = core::StopReason::kNone;
  CHECK(replicas.before_step(stop));
  CHECK(stop == core::StopReason::kNone);
  const at::Tensor norm = at::full({}, 2.0), squares = at::full({}, 4.0);
  CHECK(replicas.mean_norm(norm, squares).is_same(norm));
  replicas.after_step(0);
  CHECK(replicas.is_synchronized());
  CHECK_FALSE(replicas.weights_differ());
  replicas.share(local_sgd::StateRequest::kSave);
  CHECK(replicas.states().empty());
  CHECK(replicas.state().empty());
  CHECK(replicas.membership().empty());
  CHECK_FALSE(replicas.stop_requested());
  CHECK(replicas.communicated_bytes() == 0);
  CHECK(replicas.traits().leads);
  stop = core::StopReason::kInterrupt;
  CHECK_FALSE(replicas.before_step(stop));
  CHECK(stop == core::StopReason::kInterrupt);
  replicas.stop();
  replicas.finish();
}

}  // namespace
