#include "lib/format/checkpoint/stored_tensors.h"

#include <doctest/doctest.h>

#include <numeric>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/weights/weight_set.h"
#include "tests/format/cut_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kStoredRemedy =
    "\n  use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete";

// A checkpoint with one tensor "w" of I32, whose elements are their numbers.
fs::path publish_numbers(const fs::path& run, std::int64_t step, const test::Shape& shape,
                         const test::Pieces& pieces) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(element_count(shape)));
  std::iota(numbers.begin(), numbers.end(), 0);
  core::Disk& disk = core::system_disk();
  return publish_checkpoint(
      disk, run, {.program = "test", .step = step}, 1, [&](const fs::path& folder) {
        FolderFiles written = FileEntries{
            {"model.safetensors",
             write_safetensors(disk, folder / "model.safetensors",
                               {{"w", "I32", shape, std::as_bytes(std::span(numbers))}}, {})}};
        if (!pieces.empty()) {
          test::cut_file(folder, "model.safetensors", written,
                         [&](const test::Shape&) { return pieces; });
        }
        return written;
      });
}

// What `wanted` of "w" holds.
test::Shape read_numbers(const StoredTensors& stored, const Piece& wanted) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(wanted.count()));
  stored.read(stored.tensors().at(0), wanted, std::as_writable_bytes(std::span(numbers)));
  return {numbers.begin(), numbers.end()};
}

std::string refused_at(const fs::path& checkpoint) {
  return test::message_of<core::CheckpointError>([&] { check_checkpoint(checkpoint); });
}

}  // namespace

TEST_CASE("what was stored by any of ten cuts is read by any of them, bit for bit") {
  const test::Shape shape{12, 7, 6};
  const std::vector<test::NamedCut> cuts = test::ten_cuts(shape);
  const test::TemporaryFolder run;
  std::set<std::string> digests{model_digest(publish_numbers(run.path, 99, shape, {}))};
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const fs::path checkpoint =
        publish_numbers(run.path, static_cast<std::int64_t>(i), shape, cuts[i].pieces);
    CHECK_NOTHROW(verify_checkpoint(checkpoint));
    const StoredTensors stored(checkpoint / "model.safetensors");
    for (const test::NamedCut& wanted : cuts) {
      CAPTURE(cuts[i].name);
      CAPTURE(wanted.name);
      for (const Piece& piece : wanted.pieces) {
        CHECK(read_numbers(stored, piece) == test::elements_of(piece, shape));
      }
    }
    digests.insert(model_digest(checkpoint));
  }
  CHECK(digests.size() == 1);  // it does not depend on who wrote what
}

TEST_CASE("slices of a file of full tensors are read, distant columns one by one") {
  const test::TemporaryFolder run;
  const test::Shape shape{3, 40000};
  const StoredTensors stored(publish_numbers(run.path, 1, shape, {}) / "model.safetensors");
  for (const Piece& piece : {test::box({0, 5}, {3, 4}), test::box({1, 0}, {2, 39990}),
                             range_piece(shape, 39999, 80001), whole_piece(shape)}) {
    CHECK(read_numbers(stored, piece) == test::elements_of(piece, shape));
  }
  std::int32_t one = 0;
  const auto out = std::as_writable_bytes(std::span(&one, 1));
  CHECK(test::message_of<core::InternalError>([&] {
          stored.read(stored.tensors().at(0), whole_piece(shape), out);
        }) == "StoredTensors::read: 4 bytes for 120000 elements of tensor \"w\"");
}

TEST_CASE("a checkpoint in pieces is checked, and used, as a whole one is") {
  const test::TemporaryFolder run;
  const fs::path whole = test::publish_sensible(run.path, 10);
  const fs::path checkpoint = test::publish_cut(run.path, test::Sensible(20), 20);
  CHECK(check_checkpoint(checkpoint).format == 2);
  CHECK(model_digest(checkpoint) == model_digest(whole));
  CHECK(!fs::exists(checkpoint / "model.safetensors"));
  CHECK(has_tensors(checkpoint / "model.safetensors"));
  CHECK(!has_tensors(checkpoint / "ema.safetensors"));
  CHECK(weights_file(checkpoint, "") == checkpoint / "model.safetensors");
  const StoredTensors stored(checkpoint / "model.safetensors");
  CHECK(stored.metadata() == std::map<std::string, std::string>{{"step", "20"}});
  float weight = 0;
  stored.read(stored.tensors().at(1), std::as_writable_bytes(std::span(&weight, 1)), 4);
  CHECK(weight == -1);
  for (const fs::path& path : {run.path, checkpoint, checkpoint / "model.safetensors"}) {
    const WeightSet set(path, "", [](const std::string&) {});
    CHECK(set.tensors().size() == 3);
    weight = 0;
    set.read(*set.find("fc.bias"), std::as_writable_bytes(std::span(&weight, 1)));
    CHECK(weight == -0.5F);
  }
}

TEST_CASE("contents of pieces that make no sense are refused by the name of the whole") {
  const test::TemporaryFolder run;
  test::Sensible contents(20);
  contents.weights[1] = std::numeric_limits<float>::quiet_NaN();
  const fs::path checkpoint = test::publish_cut(run.path, contents, 20);
  CHECK(refused_at(checkpoint) ==
        (checkpoint / "model.safetensors").string() +
            ": the tensor \"fc.weight\" is not finite at its element 1\n  training had diverged "
            "when it was saved: use an earlier checkpoint, and a lower learning rate");
}

TEST_CASE(
    "a file of pieces that is changed, gone, empty or another's is named, an older one used") {
  const std::string first = "model-0.safetensors", second = "model-1.safetensors";
  using Damage = std::function<void(const fs::path& checkpoint)>;
  const std::vector<std::pair<std::string, Damage>> damages{
      {second + ": has the XXH3-128 ",
       [&](const fs::path& at) {
         std::string bytes = test::read_bytes(at / second);
         bytes.back() = static_cast<char>(bytes.back() ^ 1);
         test::write_bytes(at / second, bytes);
       }},
      {second + ": is missing", [&](const fs::path& at) { fs::remove(at / second); }},
      {"model-9.safetensors: is not in the manifest",
       [&](const fs::path& at) { fs::copy_file(at / first, at / "model-9.safetensors"); }},
      {"model.safetensors: is not in the manifest",
       [&](const fs::path& at) { fs::copy_file(at / first, at / "model.safetensors"); }},
      {second + ": has 0 bytes", [&](const fs::path& at) { test::write_bytes(at / second, ""); }},
      {first + ": has ",
       [&](const fs::path& at) {
         fs::rename(at / first, at / "other");
         fs::rename(at / second, at / first);
         fs::rename(at / "other", at / second);
       }},
      {first + ": is missing",
       [&](const fs::path& at) {
         for (const std::string& name : {first, second}) fs::remove(at / name);
       }},
  };
  for (const auto& row : damages) {
    const std::string& found = row.first;
    CAPTURE(found);
    const test::TemporaryFolder run;
    const fs::path older = test::publish_cut(run.path, test::Sensible(10), 10);
    const fs::path checkpoint = test::publish_cut(run.path, test::Sensible(20), 20);
    row.second(checkpoint);
    CHECK(refused_at(checkpoint).starts_with((checkpoint / "").string() + found));
    std::string reported;
    CHECK(find_checkpoint(run.path, [&](const std::string& text) { reported = text; }) == older);
    CHECK(reported.starts_with((checkpoint / "").string() + found));
  }
}

TEST_CASE("opening pieces without verifying checksums finds contradictions to the manifest") {
  const test::TemporaryFolder run;
  const fs::path checkpoint = test::publish_cut(run.path, test::Sensible(20), 20);
  const fs::path other = test::publish_cut(run.path, test::Sensible(30), 30);
  const auto opened = [&] {
    return test::message_of<core::CheckpointError>(
        [&] { const StoredTensors stored(checkpoint / "model.safetensors"); });
  };
  const fs::path second = checkpoint / "model-1.safetensors";
  fs::copy_file(other / "model-1.safetensors", second, fs::copy_options::overwrite_existing);
  CHECK(opened() == second.string() +
                        ": has other metadata than model-0.safetensors: it is of "
                        "another save" +
                        kStoredRemedy);
  const float value = 1;
  write_safetensors(core::system_disk(), second,
                    {{"fc.other", "F32", {1}, std::as_bytes(std::span(&value, 1))}}, {});
  CHECK(opened() == second.string() +
                        ": holds a tensor \"fc.other\" that is not the piece in "
                        "manifest.json" +
                        kStoredRemedy);
  write_safetensors(core::system_disk(), second, {}, {});
  CHECK(opened().starts_with(second.string() + ": holds 0 of the "));
  fs::remove(second);
  CHECK(opened().starts_with(second.string() + ": cannot be read: "));
}
