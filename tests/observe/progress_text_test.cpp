#include "lib/observe/progress_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/observe/measures.h"

namespace scaletrain::observe {

namespace {

constexpr ProgressGoal kTextGoal{.total_steps = 430, .steps_per_epoch = 43};
const ProgressState kState{.step = 215,
                           .loss = 0.43214,
                           .lr = 0.00098,
                           .samples_per_s = 512.4,
                           .data_share = 0.031,
                           .left_s = 123};

}  // namespace

TEST_CASE("a line shows epoch, step, loss, learning rate, rate, data share and time left") {
  CHECK(train_text(kState, kTextGoal) ==
        "epoch 5/10  step 215/430  loss 0.4321  lr 0.00098  512 samples/s  data 3%  left 2m 03s");
}

TEST_CASE("a language model shows tokens a second in place of samples") {
  ProgressState state = kState;
  state.tokens_per_s = 131072;
  const std::string text = train_text(state, {.total_steps = 430});
  CHECK(text == "step 215/430  loss 0.4321  lr 0.00098  131072 tokens/s  data 3%  left 2m 03s");
}

TEST_CASE("a line shows MFU where the peak of the device is known") {
  ProgressState state = kState;
  state.mfu = 0.4127;
  CHECK(train_text(state, {.total_steps = 430}) ==
        "step 215/430  loss 0.4321  lr 0.00098  512 samples/s  MFU 41.3%  data 3%  left 2m 03s");
}

TEST_CASE("a line leaves out what is not known yet") {
  CHECK(train_text({.step = 1, .loss = 2.3, .lr = 1e-5}, {}) == "step 1  loss 2.3000  lr 1e-05");
  CHECK(train_text({.step = 44, .loss = 2.3, .lr = 1e-5}, {.steps_per_epoch = 43}) ==
        "epoch 2  step 44  loss 2.3000  lr 1e-05");
}

TEST_CASE("the shown epoch follows the present length of epochs after a change of the data") {
  // After step 25, half way in epoch 3, an epoch has 8 steps instead of 10.
  const ProgressGoal goal{.total_steps = 36, .steps_per_epoch = 8, .epoch_shift = 21 - 25};
  CHECK(train_text({.step = 28}, goal) == "epoch 3/4  step 28/36  loss 0.0000  lr 0");
  CHECK(train_text({.step = 29}, goal) == "epoch 4/4  step 29/36  loss 0.0000  lr 0");
}

TEST_CASE("during a batch size ramp the shown epoch has more steps") {
  // Five steps of the first epoch, then two each.
  const core::StepPlan growing(
      core::BatchSizes(12, core::BatchRamp{.start = 4, .increment = 4, .samples = 24}), 30);
  const ProgressGoal goal{.total_steps = 9, .steps_per_epoch = 2, .growing = &growing};
  CHECK(train_text({.step = 5}, goal) == "epoch 1/3  step 5/9  loss 0.0000  lr 0");
  CHECK(train_text({.step = 6}, goal) == "epoch 2/3  step 6/9  loss 0.0000  lr 0");
  CHECK(train_text({.step = 9}, goal) == "epoch 3/3  step 9/9  loss 0.0000  lr 0");
  CHECK(train_text({.step = 6}, {.steps_per_epoch = 2, .growing = &growing}) ==
        "epoch 2  step 6  loss 0.0000  lr 0");
}

TEST_CASE("what is left takes as long for each step, or each sample of a batch that grows") {
  CHECK(seconds_left({.total_steps = 6}, 1, 3, 8) == 12);
  // Of 4, 4, 4, 8, 8 and 12 samples a step: 8 of steps 2 and 3, and 28 behind them.
  const core::StepPlan growing(
      core::BatchSizes(12, core::BatchRamp{.start = 4, .increment = 4, .samples = 24}), 30);
  CHECK(seconds_left({.total_steps = 6, .growing = &growing}, 1, 3, 8) == 28);
  CHECK(seconds_left({.total_steps = 6, .growing = &growing}, 1, 6, 8) == 0);
}

TEST_CASE("a step belongs to the epoch that it ends, and a broken last epoch counts") {
  CHECK(train_text({.step = 43}, kTextGoal) == "epoch 1/10  step 43/430  loss 0.0000  lr 0");
  CHECK(train_text({.step = 0}, kTextGoal) == "epoch 1/10  step 0/430  loss 0.0000  lr 0");
  CHECK(train_text({.step = 100}, {.total_steps = 100, .steps_per_epoch = 43}) ==
        "epoch 3/3  step 100/100  loss 0.0000  lr 0");
}

TEST_CASE("a loss that is not finite is shown as it is") {
  CHECK(train_text({.step = 1, .loss = std::nan("")}, {}) == "step 1  loss nan  lr 0");
  CHECK(train_text({.step = 1, .loss = HUGE_VAL}, {}) == "step 1  loss inf  lr 0");
}

TEST_CASE("a wide terminal shows a bar in the columns that are left") {
  CHECK(bar_text(kState, kTextGoal, 100) ==
        "[=====>     ] epoch 5/10  step 215/430  loss 0.4321  lr 0.00098  512 samples/s  data 3%  "
        "left 2m 03s");
  CHECK(bar_text({.step = 430}, kTextGoal, 60) ==
        "[=============] epoch 10/10  step 430/430  loss 0.0000  lr 0");
  CHECK(bar_text({.step = 0}, kTextGoal, 60) ==
        "[>               ] epoch 1/10  step 0/430  loss 0.0000  lr 0");
}

TEST_CASE("without a known end there is no bar") {
  CHECK(bar_text({.step = 7}, {}, 200) == "step 7  loss 0.0000  lr 0");
}

TEST_CASE("a narrow terminal drops what matters least first") {
  CHECK(bar_text(kState, kTextGoal, 86) ==
        "epoch 5/10  step 215/430  loss 0.4321  lr 0.00098  512 samples/s  data 3%  left 2m 03s");
  CHECK(bar_text(kState, kTextGoal, 85) ==
        "epoch 5/10  step 215/430  loss 0.4321  lr 0.00098  512 samples/s  left 2m 03s");
  CHECK(bar_text(kState, kTextGoal, 70) ==
        "epoch 5/10  step 215/430  loss 0.4321  512 samples/s  left 2m 03s");
  CHECK(bar_text(kState, kTextGoal, 50) == "epoch 5/10  step 215/430  loss 0.4321  left 2m 03s");
  CHECK(bar_text(kState, kTextGoal, 30) == "step 215/430  loss 0.4321");
  CHECK(bar_text(kState, kTextGoal, 15) == "step 215/430");
  CHECK(bar_text(kState, kTextGoal, 6) == "step 2");
  CHECK(bar_text(kState, kTextGoal, 0).empty());
}

TEST_CASE("a bar never has more columns than the terminal") {
  for (int width = 0; width < 200; ++width) {
    CHECK(static_cast<int>(bar_text(kState, kTextGoal, width).size()) <= width);
  }
}

TEST_CASE("an evaluation says split, measures, count and where") {
  const EvalRecord record{.split = "val",
                          .step = 430,
                          .epoch = 9,
                          .measures = image_measures(0.985, 1, 0.08124),
                          .count = 200,
                          .counted = "samples"};
  CHECK(eval_text(record, kTextGoal) ==
        "val: top-1 98.50 %, top-5 100.00 %, loss 0.0812 (200 samples, epoch 10/10, step 430/430)");
  CHECK(eval_text(record, {}) ==
        "val: top-1 98.50 %, top-5 100.00 %, loss 0.0812 (200 samples, step 430)");
  const EvalRecord text{.split = "test",
                        .step = 8,
                        .measures = {measured("language_modelling", "loss", 1.5),
                                     measured("language_modelling", "perplexity", 4.4817)},
                        .count = 4096,
                        .counted = "tokens"};
  CHECK(eval_text(text, {}) == "test: loss 1.5000, perplexity 4.4817 (4096 tokens, step 8)");
}

TEST_CASE("a duration has two units at most") {
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(12.4) == "12s");
  CHECK(format_duration(59.6) == "1m 00s");
  CHECK(format_duration(200) == "3m 20s");
  CHECK(format_duration(3599.5) == "1h 00m");
  CHECK(format_duration(3725) == "1h 02m");
  CHECK(format_duration(100 * 3600.0) == "100h 00m");
  CHECK(format_duration(-5) == "0s");  // a clock never goes back, a subtraction of ours might
  CHECK(format_duration(std::numeric_limits<double>::infinity()) == "?");
}

}  // namespace scaletrain::observe
