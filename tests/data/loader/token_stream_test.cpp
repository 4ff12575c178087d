#include "lib/data/loader/token_stream.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "lib/core/error.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;

namespace {

// Three files of 16-bit tokens: 40, 17 and 90 windows of 8 tokens.
class Tokens {
 public:
  Tokens() {
    std::vector<std::string> paths;
    int token = 0;
    for (const int windows : {40, 17, 90}) {
      std::string bytes;
      for (int i = 0; i < windows * 8 + 3; ++i, ++token) {
        bytes += static_cast<char>(token & 0xff);
        bytes += static_cast<char>(token >> 8);
      }
      paths.push_back(folder.write(std::to_string(windows) + ".bin", bytes));
    }
    set = std::make_shared<const TokenSet>(paths, TokenOptions{.context = 8});
  }

  scaletrain::test::TemporaryFolder folder;
  std::shared_ptr<const TokenSet> set;
  std::unique_ptr<core::BufferPool> pool = core::make_host_pool();
};

std::vector<std::int64_t> first_tokens(const Batch& batch) {
  CHECK(batch.targets == batch.count * 8);
  CHECK(tokens_of(batch).size() == static_cast<std::size_t>(batch.count * 8));
  std::vector<std::int64_t> firsts;
  for (std::int64_t i = 0; i < batch.count; ++i) {
    firsts.push_back(tokens_of(batch)[static_cast<std::size_t>(i * 8)]);
    for (std::int64_t j = 0; j < 8; ++j) {
      CHECK(tokens_of(batch)[static_cast<std::size_t>(i * 8 + j)] == firsts.back() + j);
      CHECK(next_of(batch)[static_cast<std::size_t>(i * 8 + j)] == firsts.back() + j + 1);
    }
  }
  return firsts;
}

}  // namespace

TEST_CASE("windows come in the same order at any number of ranks and threads") {
  const Tokens tokens;
  const auto run = [&](int ranks, std::int64_t accumulate, int threads) {
    std::map<std::int64_t, std::multiset<std::vector<std::int64_t>>> batches;
    std::uint64_t digest = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loader =
          train_windows(tokens.set, {.seed = 5, .shuffle_files = 2, .threads = threads},
                        {rank, ranks, 3, accumulate}, *tokens.pool);
      CHECK(loader->steps_per_epoch() == 12);  // 147 / 12
      for (std::int64_t i = 0; i < 30 * accumulate; ++i) {
        const Batch batch = *loader->next();
        CHECK(batch.epoch == i / accumulate / 12);
        batches[i / accumulate].insert(first_tokens(batch));
        digest += batch.digest;
      }
    }
    return std::pair(batches, digest);
  };
  const auto one = run(1, 4, 1);
  CHECK(run(2, 2, 3) == one);
  CHECK(run(4, 1, 2) == one);
  std::multiset<std::int64_t> epoch;
  for (std::int64_t step = 0; step < 12; ++step) {
    for (const auto& batch : one.first.at(step)) epoch.insert(batch.begin(), batch.end());
  }
  CHECK(epoch.size() == 144);
  CHECK(std::set(epoch.begin(), epoch.end()).size() == 144);
}

TEST_CASE("a window's key is its file and its number there") {
  const Tokens tokens;
  const auto loader = train_windows(tokens.set, {.seed = 5}, {0, 1, 12, 1}, *tokens.pool);
  const std::map<std::string, std::int64_t> begins{
      {"40.bin", 0}, {"17.bin", 40 * 8 + 3}, {"90.bin", 57 * 8 + 6}};
  const Batch batch = *loader->next();
  const std::vector<std::int64_t> firsts = first_tokens(batch);
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const std::string key = loader->key(batch.epoch, batch.position + i);
    CAPTURE(key);
    const std::size_t slash = key.find('/');
    CHECK(begins.at(key.substr(0, slash)) + 8 * std::stoll(key.substr(slash + 1)) ==
          firsts[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("seek continues exactly") {
  const Tokens tokens;
  const ReaderSlice slice{1, 2, 3, 2};
  const auto straight = train_windows(tokens.set, {.seed = 5, .threads = 2}, slice, *tokens.pool);
  std::vector<std::vector<std::int64_t>> batches;
  for (int i = 0; i < 40; ++i) batches.push_back(first_tokens(*straight->next()));
  const auto sought = train_windows(tokens.set, {.seed = 5}, slice, *tokens.pool);
  for (const std::int64_t step : {13, 0, 7}) {
    sought->seek({step / 12, step % 12});
    for (std::int64_t i = 2 * step; i < 2 * step + 4; ++i) {
      CHECK(first_tokens(*sought->next()) == batches[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_CASE("evaluation sees every window once") {
  const Tokens tokens;
  std::multiset<std::int64_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    const auto loader = eval_windows(tokens.set, {.threads = 2}, {rank, 3, 4, 1}, *tokens.pool);
    for (int round = 0; round < 2; ++round) {
      while (const auto batch = loader->next()) {
        const auto firsts = first_tokens(*batch);
        if (round == 0) seen.insert(firsts.begin(), firsts.end());
      }
      loader->seek({});
    }
  }
  CHECK(seen.size() == 147);
  CHECK(std::set(seen.begin(), seen.end()).size() == 147);
}

TEST_CASE("fewer windows than a global batch are reported") {
  const Tokens tokens;
  CHECK_THROWS_AS(train_windows(tokens.set, {}, {0, 2, 40, 2}, *tokens.pool), core::RecipeError);
}
