#include "launcher/commands/queue/grid.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using Texts = std::vector<std::string>;

std::string axis_refusal(const std::string& text) {
  try {
    parse_axis(text);
  } catch (const core::UsageError& error) {
    return error.found();
  }
  return "no error";
}

TEST_CASE("the values of a list stay as they were written") {
  CHECK(parse_axis("optimizer.lr=[1e-4, 3e-4]").key == "optimizer.lr");
  CHECK(parse_axis("optimizer.lr=[1e-4, 3e-4]").values == Texts{"1e-4", "3e-4"});
  CHECK(parse_axis("a=[\"x,y\",{\"b\":[1,2]},[3,4]]").values ==
        Texts{"\"x,y\"", "{\"b\":[1,2]}", "[3,4]"});
  CHECK(parse_axis("a=[\"\\\",\"]").values == Texts{"\"\\\",\""});
  CHECK(parse_axis("model=resnet18").values == Texts{"resnet18"});
}

TEST_CASE("what is no list of values is refused") {
  CHECK(axis_refusal("lr") == "\"lr\" is not KEY=[VALUES]");
  CHECK(axis_refusal("lr=0.1,0.2") == "\"lr=0.1,0.2\" has values without brackets");
  CHECK(parse_axis(R"(mix={"mixup": 1, "cutmix": 1})").values.size() == 1);
  CHECK(axis_refusal("=[1]") == "\"=[1]\" is not KEY=[VALUES]");
  CHECK(axis_refusal("lr=") == "\"lr=\" has no value");
  CHECK(axis_refusal("lr=[]") == "\"lr=[]\" has no value");
  CHECK(axis_refusal("lr=[1,]") == "\"lr=[1,]\" is not a JSON list");
  CHECK(axis_refusal("lr=[1,1]") == "\"lr=[1,1]\" has a value twice");
}

TEST_CASE("every combination once, the last key fastest") {
  std::string all;
  for (const auto& values : combinations({{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}})) {
    all += values[0].second + values[1].second + " ";
  }
  CHECK(all == "1x 1y 1z 2x 2y 2z ");
  CHECK(combinations({}).size() == 1);
  CHECK_THROWS_AS(combinations({{"a", {"1"}}, {"a", {"2"}}}), core::UsageError);
  const Texts many(101, "v");
  CHECK_THROWS_AS(combinations({{"a", many}, {"b", many}}), core::UsageError);
}

TEST_CASE("a name comes from the values, and different values have different names") {
  CHECK(combination_name({{"optimizer.lr", "1e-4"}, {"batch.per_device", "16"}}) ==
        "lr-1e-4_per_device-16");
  const std::string one = combination_name({{"model", "{\"name\":\"a/b\"}"}});
  const std::string other = combination_name({{"model", "{\"name\":\"ab\"}"}});
  CHECK(one.starts_with("model-nameab_"));
  CHECK(one != other);
  const std::string longest = combination_name({{"k", std::string(300, 'x')}});
  CHECK(longest.size() == 80 + 9);
  CHECK(longest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos);
}

}  // namespace
}  // namespace scaletrain::launcher
