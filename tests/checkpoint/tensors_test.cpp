#include "lib/checkpoint/tensors.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

TEST_CASE("every dtype that safetensors and ATen share makes the way there and back") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong,
                                    at::kInt, at::kShort, at::kChar, at::kByte, at::kBool,
                                    at::kUInt16, at::kUInt32, at::kUInt64, at::kComplexFloat}) {
    CAPTURE(c10::toString(type));
    const test::TemporaryFolder folder;
    const at::Tensor tensor = at::tensor({1, 0, 1}, at::kFloat).to(type);
    const HostTensors host(units::full_shards({{"a", tensor}}));
    CHECK(host.bytes() == static_cast<std::int64_t>(tensor.nbytes()));
    host.write(core::system_disk(), folder.path / "a");
    const Tensors target{{"a", at::tensor({0, 0, 0}, at::kFloat).to(type)}};
    load_file(folder.path / "a", target);
    CHECK(at::equal(target.at("a"), tensor));
  }
}

TEST_CASE("floating tensors become those of another floating type where that is allowed") {
  const test::TemporaryFolder folder;
  const at::Tensor tensor = at::tensor({1.5F, -2.0F});
  HostTensors(units::full_shards({{"a", tensor}})).write(core::system_disk(), folder.path / "a");
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kDouble}) {
    const Tensors target{{"a", at::zeros({2}, type)}};
    CHECK(test::message_of<core::CheckpointError>([&] {
            load_file(folder.path / "a", target);
          }).find("of another dtype (a: F32 instead of ") != std::string::npos);
    load_file(folder.path / "a", target, {.casts_floats = true});
    CHECK((target.at("a").scalar_type() == type));
    CHECK(at::equal(target.at("a").to(at::kFloat), tensor));
  }
  const Tensors whole{{"a", at::zeros({2}, at::kLong)}};
  CHECK_THROWS_AS(load_file(folder.path / "a", whole, ReadOptions{.casts_floats = true}),
                  core::CheckpointError);
}

TEST_CASE("a dtype without a name is refused by the name of its tensor") {
  const test::TemporaryFolder folder;
  const HostTensors host(units::full_shards({{"a", at::zeros({1}, at::kComplexDouble)}}));
  CHECK(test::message_of<core::InternalError>(
            [&] { host.write(core::system_disk(), folder.path / "a"); }) ==
        "checkpoint::save: tensor \"a\" has the dtype ComplexDouble, which has no name in "
        "safetensors");
}

TEST_CASE("a contiguous tensor on the CPU is written from where it lies") {
  const test::TemporaryFolder folder;
  const at::Tensor tensor = at::zeros({2});
  const HostTensors host(units::full_shards({{"a", tensor}}));
  tensor.fill_(5);
  host.write(core::system_disk(), folder.path / "a");
  const Tensors target{{"a", at::zeros({2})}};
  load_file(folder.path / "a", target);
  CHECK(at::equal(target.at("a"), tensor));
}
