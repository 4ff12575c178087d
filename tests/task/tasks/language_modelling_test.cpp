// The sets of texts that the task opens, and what it learns from them.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/data/loader/token_stream.h"
#include "lib/format/tokens/token_card.h"
#include "lib/format/tokens/token_mask.h"
#include "lib/recipe/describe.h"
#include "lib/task/task.h"
#include "tests/temporary_folder.h"

namespace scaletrain::task {
namespace {

constexpr std::int64_t kContext = 4;
constexpr std::int64_t kEndOfText = 9;

// A file for each split, of 41, 17 and 9 tokens: 1, 2, 3 and so on up to 9 and again.
class Texts {
 public:
  Texts() {
    recipe.task = "language_modelling";
    recipe.model.options["vocab_size"] = std::int64_t{10};
    recipe.data.context = kContext;
    recipe.data.train.tokens = {write("train", 41)};
    recipe.data.val.emplace().tokens = {write("val", 17)};
    recipe.data.test.emplace().tokens = {write("test", 9)};
  }

  // Says where the documents of a split's file end, and that a token stands for two bytes.
  void add_card(const std::string& name, std::int64_t tokens,
                std::int64_t end_of_text = kEndOfText) {
    format::TokenCard card{
        .tokenizer = "bytes", .vocab_size = 10, .end_of_text = end_of_text, .token_bytes = 2};
    card.files = {{.name = name + "-000000.bin", .tokens = tokens, .text_bytes = 2 * tokens}};
    folder.write(name + ".tokens.json", format::token_card_json(card).dump());
  }

  // Leaves out every second target.
  void add_mask(const std::string& name, std::size_t tokens) {
    std::vector<std::uint8_t> without_loss(tokens);
    for (std::size_t i = 0; i < tokens; i += 2) without_loss[i] = 1;
    folder.write(name + "-000000.bin.mask", format::encode_mask(without_loss));
  }

  // The first tokens of the windows that one reader gets of `split`, of a training the first ten.
  std::string windows(Task& task, Split split) const {
    const Reader reader{.slice = {.per_device = 2}, .stores = std::make_shared<storage::Stores>()};
    const OpenSet open = task.open(split, reader, *pool);
    std::string text = fmt::format("{} windows:", open.set->size());
    for (int batch = 0; batch < 5; ++batch) {
      const auto next = open.stream->next();
      if (!next) break;
      for (std::int64_t i = 0; i < next->count; ++i) {
        text += fmt::format(" {}", data::tokens_of(*next)[static_cast<std::size_t>(i * kContext)]);
      }
    }
    return text;
  }

  test::TemporaryFolder folder;
  recipe::Recipe recipe = recipe::blank_recipe();
  std::unique_ptr<core::BufferPool> pool = core::make_host_pool();

 private:
  std::string write(const std::string& name, int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += {static_cast<char>(1 + i % 9), '\0'};
    return folder.write(name + "-000000.bin", bytes);
  }
};

}  // namespace

TEST_CASE("each split of a text has its own windows, those of a training in an order of the seed") {
  Texts texts;
  const auto task = make_task(texts.recipe, at::kCPU);
  CHECK(texts.windows(*task, Split::kVal) == "4 windows: 1 5 9 4");
  CHECK(texts.windows(*task, Split::kTest) == "2 windows: 1 5");
  const std::string trained = texts.windows(*task, Split::kTrain);
  CHECK(trained.starts_with("10 windows: "));
  CHECK(trained != "10 windows: 1 5 9 4 8 3 7 2 6 1");  // the order of the file
  texts.recipe.seed = 7;
  CHECK(texts.windows(*make_task(texts.recipe, at::kCPU), Split::kTrain) != trained);
}

TEST_CASE("a step has a fixed number of targets, unless the text that is trained on has a mask") {
  Texts texts;
  const auto task = make_task(texts.recipe, at::kCPU);
  texts.add_mask("val", 17);
  (void)texts.windows(*task, Split::kTrain);
  (void)texts.windows(*task, Split::kVal);
  CHECK(task->fixed_targets(6) == 6 * kContext);
  texts.add_mask("train", 41);
  (void)texts.windows(*task, Split::kTrain);
  CHECK(task->fixed_targets(6) == 0);
}

TEST_CASE("bits per byte are measured of the sets that say how long their text is") {
  Texts texts;
  texts.add_card("val", 17);
  const auto task = make_task(texts.recipe, at::kCPU);
  for (const Split split : {Split::kVal, Split::kTest}) (void)texts.windows(*task, split);
  const std::vector<double> sums{6, 3};  // a loss of 2 a target
  const auto measured = task->finish(Split::kVal, sums, {});
  REQUIRE(measured.size() == 3);
  CHECK(std::string(measured[2].measure->name) == "bits_per_byte");
  CHECK(measured[2].value == doctest::Approx(2 / std::log(2) / 2));  // two bytes a token
  CHECK(task->finish(Split::kTest, sums, {}).size() == 2);
}

TEST_CASE("document attention uses the same end-of-text token in all sets") {
  Texts texts;
  texts.add_card("train", 41);
  texts.add_card("val", 17);
  const auto prepare = [&](Task& task) {
    const Reader reader{.slice = {.per_device = 4}, .stores = std::make_shared<storage::Stores>()};
    const auto batch = task.open(Split::kVal, reader, *texts.pool).stream->next();
    const Example example = task.prepare(*batch, /*training=*/false);
    CHECK(example.input[2][0].item<std::int64_t>() == kEndOfText);
    CHECK(example.target[2][0].item<std::int64_t>() == 1);
    return example.context;
  };
  CHECK_FALSE(prepare(*make_task(texts.recipe, at::kCPU)).positions.defined());
  texts.recipe.data.document_attention = true;
  const auto task = make_task(texts.recipe, at::kCPU);
  (void)texts.windows(*task, Split::kTrain);
  const units::Context context = prepare(*task);
  CHECK(at::equal(context.positions[2], at::tensor({0, 0, 1, 2}, at::kLong)));

  texts.add_card("test", 9, 8);
  try {
    (void)texts.windows(*task, Split::kTest);
    FAIL("opened");
  } catch (const core::DataError& error) {
    CHECK(error.found() == "has documents that end with token 8, and another set with 9");
  }
}

TEST_CASE("a token that the model does not have is refused") {
  Texts texts;
  texts.recipe.model.options["vocab_size"] = std::int64_t{9};
  const auto task = make_task(texts.recipe, at::kCPU);
  CHECK_THROWS_AS((void)texts.windows(*task, Split::kVal), core::DataError);
}

TEST_CASE("a context-parallel rank gets its own tokens, targets and positions") {
  Texts texts;
  texts.add_card("train", 41);
  texts.add_card("val", 17);
  for (const bool apart : {false, true}) {
    texts.recipe.data.document_attention = apart;
    const auto task = make_task(texts.recipe, at::kCPU);
    at::Tensor seen;
    const at::Tensor places = at::tensor({1, 2}, at::kLong);
    task->share_sequences({.places =
                               [&](std::int64_t tokens) {
                                 CHECK(tokens == kContext);
                                 return places;
                               },
                           .attention = [&](const at::Tensor& documents) -> units::SharedAttention {
                             seen = documents;
                             return [](const at::Tensor& queries, const at::Tensor&,
                                       const at::Tensor&) { return queries; };
                           }});
    const Reader reader{.slice = {.per_device = 4}, .stores = std::make_shared<storage::Stores>()};
    const auto batch = task->open(Split::kVal, reader, *texts.pool).stream->next();
    const Example example = task->prepare(*batch, /*training=*/false);
    // The third window is 9, 1, 2, 3 and 4 behind it.
    CHECK(at::equal(example.input[2], at::tensor({1, 2}, at::kLong)));
    CHECK(at::equal(example.target[2], at::tensor({2, 3}, at::kLong)));
    CHECK(at::equal(example.context.places, places));
    CHECK(static_cast<bool>(example.context.attend));
    const at::Tensor positions = example.context.positions.expand({4, 2})[2];
    CHECK(at::equal(positions, at::tensor({apart ? 0 : 1, apart ? 1 : 2}, at::kLong)));
    CHECK(seen.defined() == apart);
    if (apart) CHECK(at::equal(seen[2], at::tensor({0, 1, 1, 1}, at::kLong)));
  }
}

}  // namespace scaletrain::task
