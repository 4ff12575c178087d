// The learning rates that PyTorch and Transformers give, which tests/parity/schedule_test.py
// compares at every step: here in the unit tests, so that no line of a schedule can change without
// one of them failing.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/optim/schedule.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::optim {
namespace {

struct KnownRates {
  std::string name, row;
  std::map<std::string, recipe::Component::Value> options;
  std::int64_t warmup_steps;
  std::vector<double> rates;  // at kSteps
};

constexpr ScheduleSpan kSixEpochs{.total_steps = 60, .steps_per_epoch = 10};
constexpr double kPeak = 0.4;
const std::vector<std::int64_t> kSteps{0, 1, 13, 27, 44, 59};

const std::vector<KnownRates> kKnownRates{
    {"constant", "constant", {}, 0, {0.4, 0.4, 0.4, 0.4, 0.4, 0.4}},
    {"constant", "constant", {}, 8, {0.05, 0.1, 0.4, 0.4, 0.4, 0.4}},
    {"cosine",
     "cosine",
     {},
     0,
     {0.4, 0.399725906951, 0.355429192291, 0.231286893008, 0.0661738787282, 0.000274093049085}},
    {"cosine",
     "cosine",
     {},
     8,
     {0.05, 0.1, 0.390944173302, 0.282082561091, 0.0863870506538, 0.000364889155337}},
    {"cosine to a tenth",
     "cosine",
     {{"final_factor", 0.1}},
     0,
     {0.4, 0.399753316256, 0.359886273062, 0.248158203707, 0.0995564908554, 0.0402466837442}},
    {"cosine to a tenth",
     "cosine",
     {{"final_factor", 0.1}},
     8,
     {0.05, 0.1, 0.391849755972, 0.293874304981, 0.117748345588, 0.0403284002398}},
    {"step",
     "step",
     {{"every_epochs", 1.5}, {"gamma", 0.3}},
     0,
     {0.4, 0.4, 0.4, 0.12, 0.036, 0.0108}},
    {"step",
     "step",
     {{"every_epochs", 1.5}, {"gamma", 0.3}},
     8,
     {0.05, 0.1, 0.4, 0.12, 0.036, 0.0108}},
    {"multi_step",
     "multi_step",
     {{"milestones", std::vector<double>{1.5, 3.0, 5.0}}, {"gamma", 0.3}},
     0,
     {0.4, 0.4, 0.4, 0.12, 0.036, 0.0108}},
    {"multi_step",
     "multi_step",
     {{"milestones", std::vector<double>{1.5, 3.0, 5.0}}, {"gamma", 0.3}},
     8,
     {0.05, 0.1, 0.4, 0.12, 0.036, 0.0108}},
    {"polynomial",
     "polynomial",
     {{"power", 2.0}},
     0,
     {0.4, 0.386777777778, 0.245444444444, 0.121, 0.0284444444444, 0.000111111111111}},
    {"polynomial",
     "polynomial",
     {{"power", 2.0}},
     8,
     {0.05, 0.1, 0.326775147929, 0.161094674556, 0.0378698224852, 0.000147928994083}},
    {"cosines",
     "cosine_restarts",
     {{"cycle_epochs", 1.2}, {"final_factor", 0.1}},
     0,
     {0.4, 0.393866648732, 0.393866648732, 0.347279220614, 0.13, 0.046133351268}},
    {"cosines",
     "cosine_restarts",
     {{"cycle_epochs", 1.2}, {"final_factor", 0.1}},
     8,
     {0.05, 0.1, 0.266587428118, 0.173412571882, 0.4, 0.347279220614}},
    {"longer and longer cosines",
     "cosine_restarts",
     {{"cycle_epochs", 0.5}, {"cycle_factor", 2.0}},
     0,
     {0.4, 0.361803398875, 0.038196601125, 0.138196601125, 0.35208119312, 0.138196601125}},
    {"longer and longer cosines",
     "cosine_restarts",
     {{"cycle_epochs", 0.5}, {"cycle_factor", 2.0}},
     8,
     {0.05, 0.1, 0.4, 0.361803398875, 0.399383466747, 0.261803398875}},
    {"lower and lower cosines",  // 0.4 * 0.5^cycle * (1 + cos(pi * way)) / 2
     "cosine_restarts",
     {{"cycle_epochs", 1.0}, {"cycle_decay", 0.5}},
     0,
     {0.4, 0.390211303259, 0.158778525229, 0.0206107373854, 0.0163627124297, 0.000305896773155}},
    {"linear", "linear", {{"final_factor", 0.25}}, 0, {0.4, 0.395, 0.335, 0.265, 0.18, 0.105}},
    {"linear",
     "linear",
     {{"final_factor", 0.25}},
     8,
     {0.05, 0.1, 0.371153846154, 0.290384615385, 0.192307692308, 0.105769230769}},
    {"exponential",
     "exponential",
     {{"gamma", 0.3486784401000001}},
     0,
     {0.4, 0.36, 0.101674633133, 0.0232598948012, 0.00387909491915, 0.000798671244406}},
    {"exponential",
     "exponential",
     {{"gamma", 0.3486784401000001}},
     8,
     {0.05, 0.1, 0.236196, 0.0540340687069, 0.00901135981798, 0.00185535907464}},
    {"inverse_sqrt",
     "inverse_sqrt",
     {{"timescale", std::int64_t{7}}},
     0,
     {0.4, 0.374165738677, 0.236643191324, 0.181497042595, 0.148191714727, 0.130267789456}},
    {"inverse_sqrt",
     "inverse_sqrt",
     {{"timescale", std::int64_t{7}}},
     8,
     {0.05, 0.1, 0.30550504633, 0.207549808665, 0.161389316957, 0.138961666756}},
    {"warmup_stable_decay",
     "warmup_stable_decay",
     {{"decay_share", 0.4}, {"final_factor", 0.1}},
     0,
     {0.4, 0.4, 0.4, 0.4, 0.28, 0.055}},
    {"warmup_stable_decay",
     "warmup_stable_decay",
     {{"decay_share", 0.4}, {"final_factor", 0.1}},
     8,
     {0.05, 0.1, 0.4, 0.4, 0.28, 0.055}},
    {"warmup_stable_decay, a half",
     "warmup_stable_decay",
     {{"decay_share", 0.5}},
     0,
     {0.4, 0.4, 0.4, 0.4, 0.213333333333, 0.0133333333333}},
    {"warmup_stable_decay, cosine",
     "warmup_stable_decay",
     {{"decay_share", 0.2}, {"shape", std::string("cosine")}},
     0,
     {0.4, 0.4, 0.4, 0.4, 0.4, 0.00681483474219}},
    {"warmup_stable_decay, cosine",
     "warmup_stable_decay",
     {{"decay_share", 0.2}, {"shape", std::string("cosine")}},
     8,
     {0.05, 0.1, 0.4, 0.4, 0.4, 0.00681483474219}},
    {"warmup_stable_decay, 1-sqrt",
     "warmup_stable_decay",
     {{"decay_share", 0.3}, {"shape", std::string("1-sqrt")}},
     0,
     {0.4, 0.4, 0.4, 0.4, 0.266666666667, 0.011269873677}},
    {"warmup_stable_decay, 1-sqrt",
     "warmup_stable_decay",
     {{"decay_share", 0.3}, {"shape", std::string("1-sqrt")}},
     8,
     {0.05, 0.1, 0.4, 0.4, 0.266666666667, 0.011269873677}},
    {"one_cycle",
     "one_cycle",
     {},
     0,
     {0.016, 0.0192691648607, 0.349889712106, 0.346610587924, 0.113224399283, 1.6e-06}},
    {"one_cycle, flat",
     "one_cycle",
     {{"rise_share", 0.5}, {"div_factor", 4.0}, {"final_div_factor", 2.0}},
     0,
     {0.1, 0.100879306427, 0.225732700517, 0.396493083357, 0.225, 0.05}},
    {"line",
     "polynomial",
     {{"power", 1.0}},
     0,
     {0.4, 0.393333333333, 0.313333333333, 0.22, 0.106666666667, 0.00666666666667}},
    {"line",
     "polynomial",
     {{"power", 1.0}},
     8,
     {0.05, 0.1, 0.361538461538, 0.253846153846, 0.123076923077, 0.00769230769231}},
    {"inverse_sqrt by default",
     "inverse_sqrt",
     {},
     0,
     {0.4, 0.3999800015, 0.399740253226, 0.399461091045, 0.399122893393, 0.398825195959}},
    {"inverse_sqrt of its warmup",
     "inverse_sqrt",
     {},
     8,
     {0.05, 0.1, 0.313785816221, 0.217732421581, 0.170560573084, 0.147291938864}},
};

}  // namespace

TEST_CASE("every schedule has rates of its source here") {
  std::set<std::string> rows;
  for (const KnownRates& known : kKnownRates) rows.insert(known.row);
  for (const recipe::Row& row : recipe::schedules().rows) {
    CAPTURE(row.name);
    CHECK(rows.contains(row.name));
  }
}

TEST_CASE("every schedule gives the rates of its source") {
  for (const KnownRates& known : kKnownRates) {
    CAPTURE(known.name);
    CAPTURE(known.warmup_steps);
    recipe::Schedule config;
    recipe::choose(config.decay, *recipe::schedules().find(known.row));
    for (const auto& [key, value] : known.options) config.decay.options.at(key) = value;
    if (known.warmup_steps > 0) {
      config.warmup =
          recipe::Duration{recipe::Duration::Unit::kSteps, static_cast<double>(known.warmup_steps)};
    }
    const Schedule schedule(config, kPeak, kSixEpochs);
    for (std::size_t i = 0; i < kSteps.size(); ++i) {
      CAPTURE(kSteps[i]);
      CHECK(schedule.lr(kSteps[i]) == doctest::Approx(known.rates[i]).epsilon(1e-9));
    }
  }
}

}  // namespace scaletrain::optim
