// A small deterministic fuzzer, so that every build tries the targets without libFuzzer.
//   fuzz_NAME RUNS           the seeds, then so many inputs mutated from them
//   fuzz_NAME seeds FOLDER   writes the seeds as files, a corpus for libFuzzer
//   fuzz_NAME file PATH      one input, such as a crash that libFuzzer kept
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

void mutate_once(std::string& input, const std::vector<std::string>& seeds, Random& random) {
  constexpr std::size_t kBlock = 512;
  const std::size_t at = below(random, input.size());
  switch (below(random, 8)) {
    case 0:  // one bit
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << below(random, 8)));
      break;
    case 1:  // one byte, often a telling one
      if (!input.empty()) input[at] = "\0 07/.{\"\x80\xff"[below(random, 10)];
      break;
    case 2:
      input.erase(at, below(random, 16) + 1);
      break;
    case 3:
      input.insert(at, input.substr(below(random, input.size()), below(random, 64)));
      break;
    case 4:  // cut off
      input.resize(at);
      break;
    case 5: {  // a block of zeros, or of another place
      const std::size_t block = at / kBlock * kBlock;
      const std::size_t from = below(random, input.size()) / kBlock * kBlock;
      const std::string piece =
          below(random, 2) == 0 ? std::string(kBlock, '\0') : input.substr(from, kBlock);
      if (block + piece.size() <= input.size()) input.replace(block, piece.size(), piece);
      break;
    }
    case 6: {  // the end of another seed
      const std::string& other = seeds[below(random, seeds.size())];
      input = input.substr(0, at) + other.substr(below(random, other.size()));
      break;
    }
    default:  // a number grows or shrinks
      if (!input.empty())
        input[at] = static_cast<char>(input[at] + (below(random, 2) == 0 ? 1 : -1));
  }
}

void run_one(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc), seeds = fuzz_seeds();
  if (arguments.size() == 2 && arguments[0] == "seeds") {
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream(arguments[1] + "/seed-" + std::to_string(i), std::ios::binary) << seeds[i];
    }
    return 0;
  }
  if (arguments.size() == 2 && arguments[0] == "file") {
    std::ifstream file(arguments[1], std::ios::binary);
    run_one({std::istreambuf_iterator<char>(file), {}});
    return 0;
  }
  if (arguments.size() != 1) {
    std::fprintf(stderr, "usage: %s RUNS | seeds FOLDER | file PATH\n", argv[0]);
    return 2;
  }
  const std::int64_t runs = std::atoll(arguments[0].c_str());
  for (const std::string& seed : seeds) run_one(seed);
  Random random(1);  // NOLINT(cert-msc51-cpp): the same inputs every time
  for (std::int64_t i = 0; i < runs; ++i) {
    std::string input = seeds[below(random, seeds.size())];
    for (std::size_t k = below(random, 6) + 1; k > 0; --k) mutate_once(input, seeds, random);
    run_one(input);
  }
  std::printf("%zu seeds and %lld mutations\n", seeds.size(), static_cast<long long>(runs));
  return 0;
}
