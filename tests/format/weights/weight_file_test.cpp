#include "lib/format/weights/weight_file.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/pt/pt_support.h"
#include "tests/format/weights/weights_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("a file of either kind gives its tensors") {
  const test::TemporaryFolder folder;
  const test::NamedText tensors{{"a", "one"}, {"b.weight", "seven!!"}};
  for (const std::string& path : {test::write_weights(folder, "any.name", tensors),
                                  test::write_pt(folder, "other.name", tensors)}) {
    const auto file = open_weight_file(path, "");
    REQUIRE(file->tensors().size() == 2);
    const WeightTensor& tensor = file->tensors()[1];
    CHECK(tensor.name == "b.weight");
    CHECK(tensor.dtype == "U8");
    CHECK(tensor.shape == std::vector<std::int64_t>{7});
    CHECK(tensor.bytes == 7);
    CHECK(tensor.file == path);
    std::string text(7, '\0');
    file->read(tensor, std::as_writable_bytes(std::span(text)), 0);
    CHECK(text == "seven!!");
    file->read(tensor, std::as_writable_bytes(std::span(text).first(2)), 5);
    CHECK(text == "!!ven!!");
    CHECK(file->part().name.empty());
    CHECK(file->part().others.empty());
  }
}

TEST_CASE("a part of a file of torch.save is named as it lies in the model") {
  const test::TemporaryFolder folder;
  const std::string view = test::pickled_view({});
  const std::string pickle =
      test::pickle_of(test::pickled_dict({{"optimizer", test::pickled_dict({{"x", view}})},
                                          {"model", test::pickled_dict({{"module.w", view}})}}));
  const std::string path = folder.write("a.pt", test::pt_of(pickle, {{"0", std::string(24, 'f')}}));
  const auto file = open_weight_file(path, "");
  REQUIRE(file->tensors().size() == 1);
  CHECK(file->tensors()[0].name == "w");
  CHECK(file->part().name == "model");
  CHECK(file->part().stripped == "module.");
  CHECK(file->part().others == std::vector<std::string>{"optimizer"});
  CHECK(open_weight_file(path, "optimizer")->tensors()[0].name == "x");
}

TEST_CASE("a safetensors file has no parts") {
  const test::TemporaryFolder folder;
  const std::string path = test::write_weights(folder, "a", {{"a", "1"}});
  CHECK_THROWS_WITH_AS(
      open_weight_file(path, "model"),
      (path + ": is not a file of torch.save, and has no part \"model\"\n  leave the part out")
          .c_str(),
      core::CheckpointError);
}
