// The numbers that PyTorch's, timm's and the papers' optimizers give, which
// tests/parity/optimizers_test.py compares at length: here in the unit tests, so that no line of an
// optimizer can change without one of them failing.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::optim {
namespace {

struct KnownSteps {
  std::string name;  // the row's, and what is special
  std::map<std::string, recipe::Component::Value> options;
  bool centralized;
  // A weight [2, 2] and a bias [2] after eight steps with the gradients of gradient_at().
  std::vector<double> values;
};

const std::vector<KnownSteps> kKnownSteps{
    {"sgd",
     {{"momentum", 0.9}, {"nesterov", true}},
     false,
     {0.391930, -0.310839, 0.761781, 0.157740, 0.246343, -0.419553}},
    {"adam",
     {{"beta1", 0.8}, {"eps", 1e-06}},
     false,
     {0.390496, -0.342653, 0.748780, 0.186399, 0.262818, -0.378672}},
    {"adamw", {}, false, {0.388302, -0.361385, 0.770950, 0.204750, 0.274177, -0.377022}},
    {"nadam", {}, false, {0.458712, -0.306270, 0.756604, 0.123579, 0.218235, -0.383852}},
    {"nadam decoupled",
     {{"decoupled", true}, {"momentum_decay", 0.1}, {"beta2", 0.9}},
     false,
     {0.465941, -0.311324, 0.765994, 0.126680, 0.219359, -0.383752}},
    {"radam", {}, false, {0.457836, -0.322530, 0.796430, 0.132699, 0.229968, -0.401793}},
    {"radam decoupled",
     {{"decoupled", true}, {"beta2", 0.9}, {"beta1", 0.7}},
     false,
     {0.461144, -0.313012, 0.791801, 0.125872, 0.222417, -0.403826}},
    {"radam with an eps that counts",
     {{"decoupled", false}, {"beta2", 0.9}, {"beta1", 0.7}, {"eps", 0.01}},
     false,
     {0.461487, -0.31343, 0.792576, 0.12607, 0.222449, -0.403817}},
    {"lamb", {}, false, {0.383304, -0.328758, 0.768051, 0.182300, 0.274177, -0.377022}},
    {"lamb clipped",
     {{"always_adapt", true}, {"trust_clip", true}},
     false,
     {0.415394, -0.336993, 0.795310, 0.178126, 0.239937, -0.407605}},
    {"lars", {}, false, {0.499875, -0.300011, 0.799958, 0.100068, 0.254646, -0.414968}},
    {"lars nesterov",
     {{"nesterov", true},
      {"always_adapt", true},
      {"trust_clip", true},
      {"trust_coefficient", 0.02}},
     false,
     {0.451328, -0.299059, 0.778048, 0.122291, 0.231912, -0.407861}},
    {"lion", {}, false, {0.589588, -0.293058, 0.784137, 0.097026, 0.300000, -0.400000}},
    {"rmsprop", {}, false, {0.266778, -0.364335, 0.501409, 0.233441, 0.374600, -0.221515}},
    {"rmsprop centered",
     {{"centered", true}, {"momentum", 0.8}},
     false,
     {-0.603603, -0.956711, -0.183868, 0.923648, 1.405020, 0.515066}},
    {"rmsprop_tf", {}, false, {0.490721, -0.283664, 0.787854, 0.096085, 0.191672, -0.408080}},
    {"rmsprop_tf momentum",
     {{"momentum", 0.9}, {"centered", true}, {"eps", 0.001}},
     false,
     {0.386556, -0.317648, 0.762524, 0.162711, 0.252864, -0.419150}},
    {"adagrad", {}, false, {0.469290, -0.310782, 0.765616, 0.120409, 0.217679, -0.382034}},
    {"adagrad decayed",
     {{"lr_decay", 0.1}, {"initial_accumulator_value", 0.5}},
     false,
     {0.481293, -0.303661, 0.794632, 0.110284, 0.209051, -0.404386}},
    {"adamw centralized", {}, true, {0.498466, -0.302431, 0.713882, 0.168275, 0.274177, -0.377022}},
    {"lars centralized", {}, true, {0.499858, -0.299895, 0.799752, 0.100080, 0.254646, -0.414968}},
    {"muon", {}, false, {0.437763, -0.285004, 0.768001, 0.164720, 0.274177, -0.377022}},
    {"muon plain",
     {{"nesterov", false},
      {"ns_steps", std::int64_t{3}},
      {"momentum", 0.8},
      {"adamw_lr", 0.003},
      {"adjust_lr_fn", std::string("match_rms_adamw")}},
     false,
     {0.467360, -0.285998, 0.775209, 0.121110, 0.204451, -0.398621}},
    {"adafactor", {}, false, {0.489969, -0.289075, 0.795617, 0.101912, 0.197637, -0.398325}},
    {"adafactor keys",
     {{"beta2_decay", -0.5}, {"eps", 0.9}, {"clip_threshold", 1.02}},
     false,
     {0.487674, -0.288123, 0.809519, 0.106997, 0.199014, -0.402164}},
    {"schedule_free_adamw",
     {},
     false,
     {0.474727, -0.316201, 0.776230, 0.122202, 0.220741, -0.386195}},
    {"schedule_free_adamw keys",
     {{"beta1", 0.7}, {"beta2", 0.9}, {"eps", 0.001}, {"weight_lr_power", 0.0}},
     false,
     {0.481050, -0.309366, 0.776625, 0.115251, 0.214600, -0.389280}},
    {"adamw_8bit",
     {{"min_8bit_size", std::int64_t{0}}},
     false,
     {0.388903, -0.361313, 0.771173, 0.205399, 0.273133, -0.377396}},
    {"adamw_8bit small",
     {{"min_8bit_size", std::int64_t{1000}}},
     false,
     {0.388302, -0.361385, 0.770950, 0.204750, 0.274177, -0.377022}},
    {"soap", {}, false, {0.380745, -0.367043, 0.770951, 0.212053, 0.280469, -0.376146}},
    {"soap one side",
     {{"max_dim", std::int64_t{6}}, {"frequency", std::int64_t{8}}},
     false,
     {0.380745, -0.367043, 0.770951, 0.212053, 0.280469, -0.376146}},
    {"soap no side",  // before its first renewal soap is the same
     {{"max_dim", std::int64_t{1}}, {"frequency", std::int64_t{1}}},
     false,
     {0.380745, -0.367043, 0.770951, 0.212053, 0.280469, -0.376146}},
    {"soap often",
     {{"frequency", std::int64_t{2}}},
     false,
     {0.384536, -0.360939, 0.76388, 0.216899, 0.280469, -0.376146}},
    {"lion_8bit",
     {{"min_8bit_size", std::int64_t{0}}},
     false,
     {0.589588, -0.293058, 0.784137, 0.097026, 0.300000, -0.400000}},
    {"lion_8bit small",
     {{"min_8bit_size", std::int64_t{1000}}},
     false,
     {0.589588, -0.293058, 0.784137, 0.097026, 0.300000, -0.400000}},
};

std::string row_of(const KnownSteps& known) { return known.name.substr(0, known.name.find(' ')); }

double gradient_at(int step, int element) { return 0.5 * std::sin(1 + element + 2.3 * step); }

recipe::Optimizer config_of(const KnownSteps& known) {
  recipe::Optimizer config;
  recipe::choose(config, *recipe::optimizers().find(row_of(known)));
  for (const auto& [key, value] : known.options) config.options.at(key) = value;
  config.centralize_gradients = known.centralized;
  config.lr = 0.05;
  config.weight_decay = 0.05;
  return config;
}

}  // namespace

TEST_CASE("every optimizer has numbers of its source here") {
  std::set<std::string> rows;
  for (const KnownSteps& known : kKnownSteps) rows.insert(row_of(known));
  for (const recipe::Row& row : recipe::optimizers().rows) {
    CAPTURE(row.name);
    CHECK(rows.contains(row.name));
  }
}

TEST_CASE("eight steps of every optimizer give the numbers of its source") {
  for (const KnownSteps& known : kKnownSteps) {
    CAPTURE(known.name);
    const at::Tensor weight = at::tensor({0.5F, -0.3F, 0.8F, 0.1F}).view({2, 2}).requires_grad_();
    const at::Tensor bias = at::tensor({0.2F, -0.4F}).requires_grad_();
    const auto optimizer = make_optimizer(config_of(known), {{"weight", weight}, {"bias", bias}});
    for (int step = 0; step < 8; ++step) {
      std::vector<double> gradient;
      for (int i = 0; i < 6; ++i) gradient.push_back(gradient_at(step, i));
      const at::Tensor all = at::tensor(gradient).to(at::kFloat);
      weight.mutable_grad() = all.narrow(0, 0, 4).view({2, 2}).clone();
      bias.mutable_grad() = all.narrow(0, 4, 2).clone();
      optimizer->step(0.05);
    }
    const at::Tensor values = at::cat({weight.detach().flatten(), bias.detach()});
    for (std::size_t i = 0; i < known.values.size(); ++i) {
      CAPTURE(i);
      CHECK(values[static_cast<std::int64_t>(i)].item<double>() ==
            doctest::Approx(known.values[i]).epsilon(2e-5));
    }
  }
}

// The weights z that take the steps go down by the learning rate each time, as the gradient stays:
// to 0.9 and 0.8. Their mean x is 0.85, and gradients are taken at x + 0.1 (z - x), beta1 being
// 0.9.
TEST_CASE("schedule_free_adamw evaluates the mean of the weights that take its steps") {
  recipe::Optimizer config;
  recipe::choose(config, *recipe::optimizers().find("schedule_free_adamw"));
  config.options.at("beta1") = 0.9;
  const at::Tensor weight = at::ones({2, 2}).requires_grad_();
  const auto optimizer = make_optimizer(config, {{"weight", weight}});
  for (int step = 0; step < 2; ++step) {
    weight.mutable_grad() = at::full({2, 2}, 0.5);
    optimizer->step(0.1);
  }
  const auto evaluated = optimizer->evaluation_weights();
  REQUIRE(evaluated.size() == 1);
  CHECK(evaluated.at("weight")[0][0].item<double>() == doctest::Approx(0.85).epsilon(1e-5));
  CHECK(weight[0][0].item<double>() == doctest::Approx(0.845).epsilon(1e-5));
  CHECK((at::equal(optimizer->state().at("y/weight").tensor, weight.detach())));
}

}  // namespace scaletrain::optim
