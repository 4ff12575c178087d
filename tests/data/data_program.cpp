// What the Python tests ask of the data module:
//   data_program samples SHARD...      a line "SHARD KEY LABEL SHA-256-OF-IMAGE" for each sample
//   data_program fit SIZE FILE...      pixels of each image, fitted to SIZE, on standard output
//   data_program speed SIZE SHARD...   training samples a second with one thread
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/disk.h"
#include "lib/core/hash.h"
#include "lib/data/dataset.h"
#include "lib/data/decode.h"
#include "lib/data/loader.h"
#include "lib/data/resize.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

namespace {

std::shared_ptr<const data::Dataset> open_shards(const std::vector<std::string>& shards) {
  recipe::Source source;
  source.shards = shards;
  return data::open_dataset(source, "");
}

void print_samples(const std::vector<std::string>& shards) {
  const auto dataset = open_shards(shards);
  for (std::int64_t shard = 0; shard < dataset->shard_count(); ++shard) {
    for (std::int64_t i = 0; i < dataset->shard_size(shard); ++i) {
      const data::RawSample sample = dataset->read(shard, i);
      fmt::print("{} {} {} {}\n", sample.shard, sample.key, sample.label,
                 core::Sha256().update(sample.image).hex());
    }
  }
}

void print_fitted(std::int64_t size, const std::vector<std::string>& files) {
  data::Decoder decoder;
  data::Resizer resizer;
  data::Image image, fitted;
  for (const std::string& file : files) {
    decoder.decode(core::read_file(file, 1 << 26, core::ExitCode::kData), image);
    resizer.fit(image, size, fitted);
    std::fwrite(fitted.pixels.data(), 1, fitted.pixels.size(), stdout);
  }
}

void print_speed(std::int64_t size, const std::vector<std::string>& shards) {
  data::LoaderOptions options;
  options.image_size = size;
  options.num_classes = 1000;
  recipe::Component crop;
  crop.name = "random_crop";
  crop.options["padding"] = std::int64_t{4};
  options.augment = {crop};
  const auto pool = core::make_host_pool();
  data::TrainLoader loader(open_shards(shards), options, {.per_device = 32}, *pool);
  const core::SteadyTime start = core::now();
  std::int64_t samples = 0;
  while (core::seconds_since(start) < 2) samples += loader.next().count;
  fmt::print("{:.0f}\n", static_cast<double>(samples) / core::seconds_since(start));
}

}  // namespace

int main(int count, char** values) {
  try {
    std::vector<std::string> arguments(values + 1, values + count);
    const std::string command = arguments.at(0);
    arguments.erase(arguments.begin());
    if (command == "samples") {
      print_samples(arguments);
      return 0;
    }
    const std::int64_t size = std::stoll(arguments.at(0));
    arguments.erase(arguments.begin());
    if (command == "fit") print_fitted(size, arguments);
    if (command == "speed") print_speed(size, arguments);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
