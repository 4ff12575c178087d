#include "lib/exchange/companion_files.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/hashed_file.h"
#include "tests/exchange/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::exchange {
namespace {

using Files = std::map<std::string, std::string>;

constexpr const char* kConfig =
    R"({"model_type": "llama", "bos_token_id": 3, "eos_token_id": [5], "pad_token_id": null})";

}  // namespace

TEST_CASE("tokenizer, chat template and ids of a Hugging Face folder are its companions") {
  const test::TemporaryFolder folder;
  folder.write("model.safetensors", "");
  folder.write("config.json", kConfig);
  folder.write("generation_config.json", "{}");
  folder.write("chat_template.jinja", "chat");
  const Companions found = companions_of_weights(folder.path);
  CHECK(found.files == Files{{"chat_template.jinja", "chat"}, {"generation_config.json", "{}"}});
  CHECK(found.special_tokens == nlohmann::json({{"bos_token_id", 3}, {"eos_token_id", {5}}}));
  CHECK(companions_of_weights(folder.file("model.safetensors")).files == found.files);
  CHECK(files_to_keep(found).at(kSpecialTokensFile) ==
        "{\n \"bos_token_id\": 3,\n \"eos_token_id\": [\n  5\n ]\n}\n");
  CHECK(companions_of_weights("https://host/model").empty());
  CHECK(companions_of_weights(folder.file("absent/model.bin")).empty());
}

TEST_CASE("a git-lfs pointer in place of a companion is named") {
  for (const char* const name : {"tokenizer.model", "generation_config.json", "config.json"}) {
    const test::TemporaryFolder folder;
    folder.write(name, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n");
    CHECK_THROWS_WITH_AS(companions_in(folder.path),
                         doctest::Contains("is a git-lfs pointer, not the file itself"),
                         core::CheckpointError);
  }
}

TEST_CASE("a run keeps its companions, else they are those of its weights") {
  const test::TemporaryFolder folder;
  folder.write("hf/config.json", kConfig);
  const recipe::Recipe recipe =
      test::token_recipe(fmt::format(R"({{"name": "gpt2", "weights": "{}"}})", folder.file("hf")));
  CHECK(companions_of_run(folder.path / "run", recipe).special_tokens.at("bos_token_id") == 3);
  folder.write("run/tokenizer/special_token_ids.json", R"({"bos_token_id": 4})");
  CHECK(companions_of_run(folder.path / "run", recipe).special_tokens.at("bos_token_id") == 4);
  // A later run may start from that run, or from one of its checkpoints.
  folder.write("run/checkpoints/step-00000001/model.safetensors", "");
  for (const char* const weights : {"run", "run/checkpoints/step-00000001"}) {
    CHECK(companions_of_weights(folder.file(weights)).special_tokens.at("bos_token_id") == 4);
  }
}

TEST_CASE("a tokenizer that the training tokens are not of stays behind, with its ids") {
  const test::TemporaryFolder folder;
  const std::string sum = format::sha256_of(folder.write("tokenizer.json", "{}"));
  folder.write("generation_config.json", "{}");
  folder.write("config.json", kConfig);
  Companions same = companions_in(folder.path);
  keep_tokenizer(same, "tokenizer.json " + sum);
  CHECK(same.files.size() == 2);
  CHECK(same.special_tokens.size() == 2);
  Companions other = companions_in(folder.path);
  keep_tokenizer(other, "bytes");
  CHECK(other.files == Files{{"generation_config.json", "{}"}});
  CHECK(other.special_tokens.empty());
}

}  // namespace scaletrain::exchange
