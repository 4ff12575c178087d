#include "launcher/commands/explain/pipeline_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/plan/schedule_proof.h"

namespace scaletrain::launcher {

std::vector<Explained> pipeline_rows(const recipe::Parallel& parallel,
                                     const recipe::BatchPlan& batch) {
  if (parallel.pipeline == 1) return {};
  const core::PipelineShape shape = parallel.pipeline_shape(batch.accumulate);
  const core::ScheduleProof proof =
      core::prove(core::make_schedule(parallel.pipeline_kind(), shape), shape);
  const auto row = [](const char* name, std::string value, const char* from) {
    return Explained{.name = name, .value = std::move(value), .from = from};
  };
  const std::string chunks =
      shape.chunks > 1 ? fmt::format(", {} of each rank", shape.chunks) : std::string();
  return {row("pipeline stages", fmt::format("{}{}", shape.stages(), chunks),
              "parallel.pipeline, parallel.chunks"),
          row("micro-batches of a step", std::to_string(shape.micros), "batch, nproc, nnodes"),
          row("pipeline idle share", fmt::format("{:.1f} %", 100 * proof.idle_share),
              "parallel.schedule, where backward takes twice as long as forward"),
          row("micro-batches held by rank", fmt::format("{}", fmt::join(proof.held, " ")),
              shape.chunks > 1 ? "parallel.schedule, of one stage each" : "parallel.schedule")};
}

}  // namespace scaletrain::launcher
