#include "lib/recipe/sections/parallel/compress.h"

#include <fmt/format.h>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Compress>& value) {
  return optional(value, [](Compress& inner) {
    auto keys = std::make_unique<Object>();
    keys->require(
            "name",
            choice(inner.name,
                   {{"bf16", "Gradients as bfloat16: half the bytes."},
                    {"fp16", "Gradients as float16: half the bytes."},
                    {"powersgd",
                     "PowerSGD: two low-rank factors of each matrix, with error feedback."},
                    {"onebit",
                     "1-bit SGD: the sign of each element and two means per 512 elements, a 28th "
                     "of the bytes, with error feedback."},
                    {"int8", "8-bit integers, a quarter of the bytes, with error feedback."}}),
            "Compression method. For example \"bf16\".")
        .add("rank", integer(inner.rank, from(1).to(1024)),
             "Rank of PowerSGD's factors (matrix_approximation_rank of PyTorch's hook). Default: "
             "4. More is more exact and sends more bytes.")
        .add("warmup", integer(inner.warmup, from(0).to(kMostCount)),
             "Number of first steps without compression. Default: 0. For example a fifth of all "
             "steps for onebit.")
        .set_short_for("name");
    return keys;
  });
}

void check(const std::optional<Compress>& compress, const CompressedWith& with, const Node& tree,
           Problems& problems) {
  if (!compress) return;
  const auto refuse = [&](const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"compress"}), "/compress", found, remedy);
  };
  if (with.precision.name == "fp64") {
    refuse("rounds gradients, and precision fp64 is to keep them exact", "leave one of them out");
  }
  if (with.sync.name == "periodic" || with.sync.is_async()) {
    refuse(fmt::format("replicas communicate weights instead of gradients: sync is {}",
                       with.sync.name),
           "leave one of them out, or use diloco");
    return;
  }
  if (!compress->feeds_back()) return;
  if (with.sync.name == "diloco") {
    refuse(fmt::format("{} compresses gradients, and diloco communicates pseudo-gradients",
                       compress->name),
           "use bf16 or fp16");
    return;
  }
  if (with.parallel.expert > 1) {
    refuse(fmt::format("the error feedback of {} would differ among the ranks of "
                       "\"expert\": {} for replicated parameters",
                       compress->name, with.parallel.expert),
           "use bf16 or fp16");
  }
  if (with.parallel.tensor > 1 && compress->name == "powersgd") {
    refuse(fmt::format("powersgd needs full matrices, and each rank of \"tensor\": {} "
                       "has a slice of each",
                       with.parallel.tensor),
           "use bf16, fp16, int8 or onebit");
  }
  if (with.parallel.pipeline > 1 && with.parallel.shard > 1) {
    refuse(fmt::format("the error feedback of {} would differ among the stages of "
                       "\"pipeline\": {} for a tied tensor, with \"shard\"",
                       compress->name, with.parallel.pipeline),
           "use bf16 or fp16");
  }
  if (with.parallel.shard > 1 && compress->name == "powersgd") {
    refuse(fmt::format("powersgd needs full matrices, and each of \"shard\": {} ranks has flat "
                       "ranges of their elements",
                       with.parallel.shard),
           "use bf16, fp16, int8 or onebit");
  }
  if (with.precision.name == "fp16") {
    refuse(fmt::format(
               "{} adds its error feedback to the next step, which may have another loss scale",
               compress->name),
           "use bf16 as precision, or as compress");
  }
  if (with.sam) {
    refuse(fmt::format("{} adds its error feedback to the next gradients, and sam alternates "
                       "between two kinds of gradients",
                       compress->name),
           "leave one of them out, or use bf16");
  }
}

}  // namespace scaletrain::recipe
