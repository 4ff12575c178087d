#include "lib/observe/summary.h"

#include <doctest/doctest.h>

#include "tests/observe/measures.h"

namespace scaletrain::observe {

namespace {

RunSummary a_finished_run() {
  return {.name = "digits-resnet18",
          .stopped = "",
          .step = 430,
          .trained_s = 83,
          .samples_per_s = 512.3,
          .best = RunSummary::Best{.measured = measured("image_classification", "top1", 0.99),
                                   .step = 387},
          .test = RunSummary::Test{.measures = image_measures(0.98477, 1, 0.0812),
                                   .count = 197,
                                   .counted = "samples",
                                   .step = 387},
          .checkpoint = "runs/digits-resnet18/checkpoints/step-00000430",
          .run = "runs/digits-resnet18",
          .resume = "scaletrain resume runs/digits-resnet18 --nproc 2"};
}

}  // namespace

TEST_CASE("the summary of a finished run") {
  CHECK(summary_text(a_finished_run()) ==
        "digits-resnet18: done, 430 steps in 1m 23s, 512 samples/s\n"
        "  best top-1   99.00 % on val at step 387\n"
        "  test top-1   98.48 %, top-5 100.00 %, loss 0.0812 (197 samples, step 387)\n"
        "  checkpoint   runs/digits-resnet18/checkpoints/step-00000430\n"
        "  next         scaletrain report runs/digits-resnet18\n");
}

TEST_CASE("the summary of a run that is done early says why") {
  RunSummary summary = a_finished_run();
  summary.early = "top-1 was no better than 98.00 % in 5 validations";
  CHECK(summary_text(summary).starts_with(
      "digits-resnet18: done, as top-1 was no better than 98.00 % in 5 validations, 430 steps in "
      "1m 23s, 512 samples/s\n"));
}

TEST_CASE("the summary of a language model has tokens a second") {
  RunSummary summary = a_finished_run();
  summary.tokens_per_s = 131072;
  CHECK(summary_text(summary).starts_with(
      "digits-resnet18: done, 430 steps in 1m 23s, 131072 tokens/s\n"));
}

TEST_CASE("the summary has the speed of the model where its FLOPs are counted") {
  RunSummary summary = a_finished_run();
  summary.model_speed = "2 GFLOP a step";
  CHECK(summary_text(summary).find("step 387)\n  model FLOPs  2 GFLOP a step\n  checkpoint") !=
        std::string::npos);
}

TEST_CASE("the summary says why a run was slow and what would help") {
  RunSummary summary = a_finished_run();
  summary.slow = {"waited for data 62 % of the time: raise data.threads"};
  CHECK(summary_text(summary).find("\n  slow         waited for data 62 % of the time: raise "
                                   "data.threads\n") != std::string::npos);
}

TEST_CASE("the summary has a table of the time ledger, without rows below half a percent") {
  RunSummary summary = a_finished_run();
  summary.times = {.wall_s = 100, .attempts = 2};
  summary.times.seconds = {6, 0.4, 0, 25, 50, 3.6, 5, 0, 0, 0, 8, 2};
  CHECK(summary_text(summary).find(
            "\n  time         1m 40s in 2 attempts, goodput 84.0 %\n"
            "               backward              50.0 %   forward               25.0 %\n"
            "               restart                8.0 %   start-up               6.0 %\n"
            "               optimizer              5.0 %   exposed communication  3.6 %\n"
            "               lost work              2.0 %\n") != std::string::npos);
}

TEST_CASE("the summary has the peak memory of a rank where it is known") {
  RunSummary summary = a_finished_run();
  CHECK(summary_text(summary).find("peak memory") == std::string::npos);
  summary.peak_bytes = 1'140'000'000;
  CHECK(summary_text(summary).find("\n  peak memory  1.14 GB a rank\n") != std::string::npos);
}

TEST_CASE("the summary says how often something beside training failed") {
  RunSummary summary = a_finished_run();
  summary.housekeeping_failures = 3;
  CHECK(summary_text(summary).find("\n  not done     3 times something beside training failed: see "
                                   "the warnings\n") != std::string::npos);
}

TEST_CASE("the summary says if replicas were equal whenever they were compared") {
  RunSummary summary = a_finished_run();
  summary.comparisons = 20;
  CHECK(summary_text(summary).find("\n  replicas     were equal in 20 comparisons\n") !=
        std::string::npos);
  summary.differences = 1;
  CHECK(summary_text(summary).find("\n  replicas     differed in 1 of 20 comparisons: "
                                   "runs/digits-resnet18/journal.jsonl\n") != std::string::npos);
}

TEST_CASE("the summary says how the recipe differs from the weights that the run started from") {
  RunSummary summary = a_finished_run();
  summary.weights_differences = "mean [1, 1, 1], not [0, 0, 0]";
  CHECK(summary_text(summary).find("\n  weights      were trained with mean [1, 1, 1], not [0, 0, "
                                   "0]\n") != std::string::npos);
}

TEST_CASE("the summary of a run that was stopped before its first validation") {
  RunSummary summary = a_finished_run();
  summary.stopped = "SIGTERM";
  summary.step = 12;
  summary.best.reset();
  summary.test.reset();
  summary.skipped_steps = 2;
  summary.skipped_samples = 31;
  summary.empty_steps = 3;
  summary.checkpoint = "runs/digits-resnet18/checkpoints/step-00000012";
  CHECK(summary_text(summary) ==
        "digits-resnet18: stopped by SIGTERM, 12 steps in 1m 23s, 512 samples/s\n"
        "  skipped      2 steps: not finite, a spike, or taken back by a rollback\n"
        "  no targets   3 steps learned nothing: masks left out their targets\n"
        "  bad samples  31 were skipped: runs/digits-resnet18/bad_samples\n"
        "  checkpoint   runs/digits-resnet18/checkpoints/step-00000012\n"
        "  resume       scaletrain resume runs/digits-resnet18 --nproc 2\n");
}

TEST_CASE("without a checkpoint there is nothing to resume") {
  RunSummary summary = a_finished_run();
  summary.best.reset();
  summary.test.reset();
  summary.checkpoint.clear();
  CHECK(summary_text(summary) ==
        "digits-resnet18: done, 430 steps in 1m 23s, 512 samples/s\n"
        "  checkpoint   none was saved\n");
}

TEST_CASE("the command that resumes can be pasted, and names cannot change the terminal") {
  RunSummary summary = a_finished_run();
  summary.name = "a\x1b[2J";
  summary.stopped = "SIGTERM";
  summary.best.reset();
  summary.test.reset();
  summary.checkpoint = "my runs/it's/checkpoints/step-00000430";
  summary.resume = "scaletrain resume 'my runs/it'\\''s'\x1b";
  CHECK(summary_text(summary) ==
        "a\\x1b[2J: stopped by SIGTERM, 430 steps in 1m 23s, 512 samples/s\n"
        "  checkpoint   my runs/it's/checkpoints/step-00000430\n"
        "  resume       scaletrain resume 'my runs/it'\\''s'\\x1b\n");
}

}  // namespace scaletrain::observe
