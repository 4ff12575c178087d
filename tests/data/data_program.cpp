// What the Python tests ask of the data module:
//   data_program samples SHARD...      a line "SHARD KEY LABEL SHA-256-OF-IMAGE" for each sample
//   data_program read SHARD...         seconds to read all samples, as a loader's thread reads one
//   data_program windows CONTEXT FILE...   a line "FILE TOKEN ... -> TARGET ..." for
//                                      each window
//   data_program content RECIPE RANKS THREADS FIRST STEPS   a line "EPOCH POSITION LABEL HASH" for
//                                      each sample of STEPS steps from FIRST on, as all ranks get
//                                      it
//   data_program trained RECIPE STEPS   a line "TOKEN ... -> TARGET ..." for each window of STEPS
//                                      steps, in the order of training
//   data_program scale SAMPLES FOLDER SHARDS   opens so many sparse shards of SAMPLES samples with
//                                      real indexes, which it makes in FOLDER, and looks samples up
// and, with pixels on standard output:
//   data_program pixels RECIPE RANKS THREADS FIRST STEPS   those of the samples of `content`
//   data_program fit SIZE FILE...      each image, fitted to SIZE
//   data_program view SIZE FILTER X Y WIDTH HEIGHT FILE    the box, resized to SIZE
//   data_program op NAME VALUE SAMPLING FILE               the image after one operation
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/philox.h"
#include "lib/core/text/hash.h"
#include "lib/data/augment/ops/blur.h"
#include "lib/data/augment/ops/colour.h"
#include "lib/data/augment/ops/image_op.h"
#include "lib/data/augment/ops/mirror.h"
#include "lib/data/augment/sampling_name.h"
#include "lib/data/image/decode.h"
#include "lib/data/image/filter_name.h"
#include "lib/data/image/resize.h"
#include "lib/data/loader/image_stream.h"
#include "lib/data/loader/token_stream.h"
#include "lib/data/order/order.h"
#include "lib/data/set/open_dataset.h"
#include "lib/data/set/token_set.h"
#include "lib/format/tar/shard_index.h"
#include "lib/recipe/load.h"
#include "lib/storage/storage.h"
#include "lib/storage/stores.h"

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

std::string read_image(const std::string& file) {
  return core::read_file(file, 1 << 26, core::ExitCode::kData);
}

void print_pixels(const data::Image& image) {
  std::fwrite(image.pixels.data(), 1, image.pixels.size(), stdout);
}

void print_fitted(std::int64_t size, const std::vector<std::string>& files) {
  data::Decoder decoder;
  data::Image out;
  for (const std::string& file : files) {
    decoder.decode_view(
        read_image(file),
        [&](auto width, auto height) { return data::fitted(width, height, size, size); }, out);
    print_pixels(out);
  }
}

void print_view(std::int64_t size, const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i) { return std::stoll(arguments.at(i)); };
  const data::Box box{{number(1), number(3)}, {number(2), number(4)}};
  const data::View view = data::resized(box, size, data::filter_named(arguments.at(0)));
  data::Decoder decoder;
  data::Image out;
  decoder.decode_view(
      read_image(arguments.at(5)), [&](auto, auto) { return view; }, out);
  print_pixels(out);
}

void apply_op(const std::string& name, double value, const std::string& sampling,
              data::Image& image, data::Scratch& scratch) {
  if (const auto op = data::image_op_named(name)) {
    const data::Movement movement{data::sampling_named(sampling), {10, 20, 30}};
    return data::apply_image_op(*op, value, movement, image, scratch);
  }
  if (name == "mirror") return data::mirror(image, scratch);
  if (name == "grayscale") return data::to_grey(image);
  if (name == "hue") return data::turn_hue(value, image);
  if (name.starts_with("blur")) {  // blur23: a kernel of 23
    return data::gaussian_blur(std::stoll(name.substr(4)), value, image, scratch);
  }
  throw std::invalid_argument("no operation is called " + name);
}

void print_op(const std::vector<std::string>& arguments) {
  data::Image image;
  data::Scratch scratch;
  data::Decoder().decode(read_image(arguments.at(3)), image);
  apply_op(arguments.at(0), std::stod(arguments.at(1)), arguments.at(2), image, scratch);
  print_pixels(image);
}

void print_read_time(const std::vector<std::string>& shards) {
  const auto dataset = open_shards(shards);  // with their indexes
  data::RawSample sample;
  std::int64_t samples = 0, bytes = 0, touched = 0;  // that they were really read
  const core::SteadyTime start = core::now();
  for (std::int64_t shard = 0; shard < dataset->shard_count(); ++shard) {
    for (std::int64_t i = 0; i < dataset->shard_size(shard); ++i) {
      dataset->read_into(shard, i, sample);
      ++samples;
      bytes += std::ssize(sample.image);
      touched += sample.image.front() + sample.image.back();
    }
  }
  fmt::print(R"({{"samples": {}, "bytes": {}, "touched": {}, "seconds": {}}})"
             "\n",
             samples, bytes, touched, core::seconds_since(start));
}

void print_windows(std::int64_t context, const std::vector<std::string>& files) {
  const data::TokenSet set(files, {.context = context});
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(context)), targets = tokens;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (std::int64_t i = 0; i < set.window_counts()[file]; ++i) {
      set.read(static_cast<std::int64_t>(file), i, tokens, targets);
      fmt::print("{} {} -> {}\n", set.name(static_cast<std::int64_t>(file)), fmt::join(tokens, " "),
                 fmt::join(targets, " "));
    }
  }
}

void print_trained(const recipe::Recipe& recipe, std::int64_t steps) {
  const recipe::BatchPlan plan = recipe::divide_batch(recipe.batch, 1);
  const auto set = std::make_shared<const data::TokenSet>(
      recipe.data.train.tokens, data::TokenOptions{.context = recipe.data.context});
  const auto pool = core::make_host_pool();
  const auto stream =
      data::train_windows(set, {.seed = recipe.seed, .shuffle_files = recipe.data.shuffle_shards},
                          {.per_device = plan.per_device, .accumulate = plan.accumulate}, *pool);
  const auto context = static_cast<std::size_t>(recipe.data.context);
  for (std::int64_t i = 0; i < steps * plan.accumulate; ++i) {
    const data::Batch batch = *stream->next();
    for (std::size_t begin = 0; begin < data::tokens_of(batch).size(); begin += context) {
      fmt::print("{} -> {}\n", fmt::join(data::tokens_of(batch).subspan(begin, context), " "),
                 fmt::join(data::next_of(batch).subspan(begin, context), " "));
    }
  }
}

using BatchPrinter = void (*)(const data::Batch& batch);

void print_lines(const data::Batch& batch) {
  const std::size_t bytes = data::pixels_of(batch).size() / data::labels_of(batch).size();
  for (std::size_t sample = 0; sample < data::labels_of(batch).size(); ++sample) {
    const auto pixels = std::as_bytes(data::pixels_of(batch).subspan(sample * bytes, bytes));
    fmt::print("{} {} {} {:016x}\n", batch.epoch,
               batch.position + static_cast<std::int64_t>(sample), data::labels_of(batch)[sample],
               core::xxh3_64(pixels));
  }
}

void print_batch_pixels(const data::Batch& batch) {
  std::fwrite(data::pixels_of(batch).data(), 1, data::pixels_of(batch).size(), stdout);
}

void print_content_of_rank(const recipe::Recipe& recipe, const data::LoaderOptions& options,
                           const data::ReaderSlice& slice, std::int64_t first, std::int64_t steps,
                           BatchPrinter print) {
  const auto stores = std::make_shared<const storage::Stores>(recipe.storage, recipe.data.cache);
  const auto pool = core::make_host_pool();
  const auto loader =
      data::train_images(data::open_dataset(recipe.data.train, recipe.data.index_cache,
                                            {.lazy = options.streamed,
                                             .stores = stores,
                                             .label = recipe.data.label,
                                             .skip_bad = options.skip_bad}),
                         options, slice, *pool);
  loader->seek({first / loader->steps_per_epoch(), first % loader->steps_per_epoch()});
  for (std::int64_t i = 0; i < steps * slice.accumulate; ++i) print(*loader->next());
}

void print_content(const std::vector<std::string>& arguments, BatchPrinter print) {
  const recipe::Recipe recipe = recipe::load_recipe(arguments.at(0));
  const int ranks = std::stoi(arguments.at(1));
  const recipe::BatchPlan plan = recipe::divide_batch(recipe.batch, ranks);
  data::LoaderOptions options = data::loader_options(recipe.data);
  options.num_classes = recipe.model.num_classes;
  options.seed = recipe.seed;
  options.threads = std::stoi(arguments.at(2));
  for (int rank = 0; rank < ranks; ++rank) {
    print_content_of_rank(recipe, options,
                          {.reader = rank,
                           .readers = ranks,
                           .per_device = plan.per_device,
                           .accumulate = plan.accumulate},
                          std::stoll(arguments.at(3)), std::stoll(arguments.at(4)), print);
  }
}

// Bytes of the process's memory that no file holds.
std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Sparse files of the size of real shards; only their indexes have bytes.
std::vector<std::string> make_sparse_shards(const std::string& folder, std::int64_t shards,
                                            std::int64_t samples) {
  std::vector<format::IndexEntry> entries;
  for (std::int64_t i = 0; i < samples; ++i) {
    entries.push_back({static_cast<std::uint32_t>(4 * i), 512, 600, 0});
  }
  std::vector<std::string> paths;
  for (std::int64_t i = 0; i < shards; ++i) {
    paths.push_back(fmt::format("{}/{:06}.tar", folder, i));
    const int fd = ::open(paths.back().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (fd < 0 || ::ftruncate(fd, samples * 2048 + 1024) != 0) throw std::bad_alloc();
    ::close(fd);
    const storage::Identity identity = storage::file_storage().open(paths.back())->identity();
    std::ofstream(paths.back() + ".idx", std::ios::binary)
        << format::encode_index(entries, {identity.bytes, identity.mtime_ns});
  }
  return paths;
}

double lookup_seconds(const data::IndexedOrder& order, std::int64_t epoch) {
  constexpr int kLookups = 100000;
  order.at(epoch, 0);  // what an epoch's first look-up does besides
  core::Philox draws(1, core::DrawPurpose::kInit, 0, 0);
  const core::SteadyTime start = core::now();
  for (int i = 0; i < kLookups; ++i) {
    order.at(epoch,
             static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(order.size()))));
  }
  return core::seconds_since(start) / kLookups;
}

void print_scale(std::int64_t samples, const std::string& folder, std::int64_t shards) {
  const std::vector<std::string> paths = make_sparse_shards(folder, shards, samples);
  const std::int64_t before = anonymous_bytes();
  const core::SteadyTime start = core::now();
  const auto dataset = open_shards(paths);
  const double open_s = core::seconds_since(start);
  const data::IndexedOrder order(1, data::shard_sizes(*dataset), 0);
  const data::IndexedOrder groups(1, data::shard_sizes(*dataset), 16);
  const double first = lookup_seconds(order, 0), grouped = lookup_seconds(groups, 0);
  const std::int64_t opened = anonymous_bytes() - before;
  for (std::int64_t epoch = 1; epoch < 100; ++epoch) {
    groups.at(epoch, 0);
    order.at(epoch, 0);
  }
  fmt::print(
      R"({{"samples": {}, "open_s": {}, "memory_bytes": {}, "grown_bytes": {}, "lookup_s": {}, )"
      R"("late_lookup_s": {}, "grouped_lookup_s": {}}})"
      "\n",
      dataset->size(), open_s, opened, anonymous_bytes() - before - opened, first,
      lookup_seconds(order, 1'000'000), grouped);
}

}  // namespace

int main(int count, char** values) {
  try {
    std::vector<std::string> arguments(values + 1, values + count);
    const std::string command = arguments.at(0);
    arguments.erase(arguments.begin());
    if (command == "samples") return print_samples(arguments), 0;
    if (command == "read") return print_read_time(arguments), 0;
    if (command == "op") return print_op(arguments), 0;
    if (command == "trained") {
      return print_trained(recipe::load_recipe(arguments.at(0)), std::stoll(arguments.at(1))), 0;
    }
    if (command == "content") return print_content(arguments, print_lines), 0;
    if (command == "pixels") return print_content(arguments, print_batch_pixels), 0;
    const std::int64_t size = std::stoll(arguments.at(0));
    arguments.erase(arguments.begin());
    if (command == "windows") print_windows(size, arguments);
    if (command == "scale") print_scale(size, arguments.at(0), std::stoll(arguments.at(1)));
    if (command == "fit") print_fitted(size, arguments);
    if (command == "view") print_view(size, arguments);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
