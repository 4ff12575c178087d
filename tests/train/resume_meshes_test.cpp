// Decoders that are saved in mid-epoch on one mesh and go on on another, without a conversion,
// against one rank that was left alone: mesh x mesh, a line for each mesh.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/train/moved_runs.h"

namespace scaletrain::testing {
namespace {

const std::vector<MovedMesh>& dense_meshes() {
  static const std::vector<MovedMesh> all{
      {"one", 1, "{}"},
      {"shard 2", 2, R"({"shard": 2, "shard_level": "optimizer"})"},
      {"shard 4", 4, R"({"shard": 4})"},
      {"replica 2 x shard 2", 4, R"({"shard": 2, "shard_level": "gradients"})"},
      {"tensor 2", 2, R"({"tensor": 2})"},
      {"tensor 4", 4, R"({"tensor": 4})", 1, /*is_short=*/false},
      {"pipeline 2", 2, R"({"pipeline": 2, "schedule": "zero_bubble"})"},
      {"pipeline 4", 4, R"({"pipeline": 4})", 1, /*is_short=*/false},
      {"shard 2 x tensor 2", 4, R"({"shard": 2, "tensor": 2, "sequence": true})"},
      {"pipeline 2 x shard 2", 4, R"({"pipeline": 2, "shard": 2, "schedule": "interleaved"})"},
      {"pipeline 2 x tensor 2 x shard 2", 8,
       R"({"pipeline": 2, "tensor": 2, "shard": 2, "shard_level": "gradients"})"},
  };
  return all;
}

// And those whose ranks share experts: in the short form between them and the simplest of others.
std::vector<MovedMesh> mixture_meshes() {
  std::vector<MovedMesh> all = dense_meshes();
  for (MovedMesh& mesh : all) mesh.is_short = mesh.ranks <= 2;
  all.push_back({"expert 2", 2, R"({"expert": 2})"});
  all.push_back({"expert 4", 4, R"({"expert": 4})"});
  all.push_back({"expert 2 x shard 2", 4, R"({"expert": 2, "shard": 2})"});
  return all;
}

constexpr const char* kMovedLlama =
    R"(model={"name": "llama", "vocab_size": 52, "positions": 8, "dim": 16, "depth": 4, "heads": 4,
              "kv_heads": 4, "hidden": 24, "tied": false})";
constexpr const char* kMovedMixture =
    R"(model={"name": "mixtral", "vocab_size": 52, "positions": 8, "dim": 16, "depth": 4,
              "heads": 4, "kv_heads": 4, "hidden": 12, "experts": 4, "tied": true,
              "router_bias_rate": 0.01})";

void check_decoder(const char* model, const std::vector<MovedMesh>& meshes) {
  const test::TemporaryFolder folder;
  for (const auto& [name, tokens] : {std::pair("train.bin", 1000), std::pair("val.bin", 130)}) {
    std::ofstream file(folder.file(name), std::ios::binary);  // tokens of 2 bytes
    for (int i = 0; i < tokens; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
  }
  const auto tokens = [&](const char* set, const char* file) {
    return fmt::format(R"({}={{"tokens": "{}"}})", set, folder.file(file));
  };
  MovedRuns({model, "data.train=null", "data.val=null", "data.context=8",
             tokens("data.train", "train.bin"), tokens("data.val", "val.bin"),
             R"(batch={"global": 8, "per_device": 1})",
             R"(optimizer={"name": "adamw", "lr": 0.01, "eps": 1e-4})"},
            meshes)
      .check();
}

TEST_CASE("a decoder goes on from each mesh on the others, its optimizer and its mean too") {
  check_decoder(kMovedLlama, dense_meshes());
}

TEST_CASE("a mixture goes on from each mesh on the others, its optimizer and its mean too") {
  check_decoder(kMovedMixture, mixture_meshes());
}

}  // namespace
}  // namespace scaletrain::testing
