#include "lib/report/evaluation_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/report/report_support.h"

namespace scaletrain::report {

TEST_CASE("a person reads measures, confidence, classes and the frequent mistakes") {
  Evaluation evaluation = some_evaluation();
  evaluation.classes->calibration = {
      .error = 0.25, .temperature = 1.5, .loss_with = 0.75, .error_with = 0.125};
  CHECK(evaluation_text(evaluation) ==
        "runs/a/checkpoints/step-00000010 on test: 4 samples, 1 left out\n"
        "  top-1        50.00 %\n"
        "  confidence   25.00 % calibration error; by temperature 1.5000 12.50 %, loss 0.7500\n"
        "class  samples  right  accuracy\n"
        "cat    3        1      33.33 %\n"
        "d<g    1        1      100.00 %\n"
        "most frequent mistakes\n"
        "  cat taken for d<g: 2\n");
}

TEST_CASE("without classes there are the measures alone") {
  Evaluation evaluation = some_evaluation();
  evaluation.classes.reset();
  evaluation.skipped = 0;
  CHECK(evaluation_text(evaluation) ==
        "runs/a/checkpoints/step-00000010 on test: 4 samples\n  top-1        50.00 %\n");
  CHECK_FALSE(nlohmann::json::parse(evaluation_json(evaluation)).contains("classes"));
}

TEST_CASE("the report names the weights unless they are the model's") {
  Evaluation evaluation = some_evaluation();
  CHECK(nlohmann::json::parse(evaluation_json(evaluation))["weights"] == "model");
  evaluation.weights = "ema";
  CHECK(nlohmann::json::parse(evaluation_json(evaluation))["weights"] == "ema");
  CHECK(evaluation_text(evaluation)
            .starts_with("runs/a/checkpoints/step-00000010 (ema) on test: 4 samples"));
}

TEST_CASE("a program reads an object") {
  const auto json = nlohmann::json::parse(evaluation_json(some_evaluation()));
  CHECK(json["step"] == 10);
  CHECK(json["set"] == "test");
  CHECK(json["count"] == 4);
  CHECK(json["skipped"] == 1);
  CHECK(json["measures"].dump() == R"({"top1":0.5})");
  CHECK(json["classes"][2].dump() == R"({"accuracy":null,"count":0,"name":"2","right":0})");
  CHECK(json["confusion"].dump() == "[[0,0,1],[0,1,2],[1,1,1]]");
  CHECK(json["calibration"]["bins"] == 15);
}

TEST_CASE("predictions are a line each") {
  const std::vector<Prediction> one{{.label = 1,
                                     .top = {{.class_number = 0, .probability = 0.75},
                                             {.class_number = 2, .probability = 0.25}}}};
  CHECK(predictions_csv({"a,b"}, one, {"cat", "dog"}) ==
        "key,label,predicted,probability,predicted_2,probability_2\r\n"
        "\"a,b\",dog,cat,0.75,2,0.25\r\n");
  CHECK(predictions_csv({}, {}, {}) == "key,label,predicted,probability\r\n");
}

}  // namespace scaletrain::report
