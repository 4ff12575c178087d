// Keys of a list's row (lib/recipe/catalog/models.def explains them): expanded in namespace
// scaletrain::recipe, where the types of lib/recipe/catalog/lists.h are known.
#pragma once

#define KEY_INT(key, standard, range, help) \
  Option { #key, std::int64_t{standard }, range, help }
#define KEY_NUM(key, standard, range, help) \
  Option { #key, double{standard }, range, help }
#define KEY_FLAG(key, standard, help) \
  Option { #key, bool{standard }, {}, help }
#define KEY_CHOICE(key, help, ...) choice_option(#key, help, {__VA_ARGS__})
#define KEY_FILE(key, help) \
  Option { #key, std::string{}, {}, help }
#define KEY_NUMBERS(key, range, help) \
  Option { #key, std::vector < double>{}, range, help }
#define SUM_CLASSES_KEY        \
  KEY_FLAG(sum_classes, false, \
           "Sums the loss over classes instead of averaging it. Default: false.")
#define KEY_DIVIDES(key, other) \
  Rule { Rule::Kind::kDivides, #key, #other }
#define KEY_DIVIDES_INTO_EVEN(key, other) \
  Rule { Rule::Kind::kDividesIntoEven, #key, #other }
#define KEY_DIVIDES_IMAGE_SIZE(key) \
  Rule { Rule::Kind::kDividesImageSize, #key, "" }
#define KEY_FITS_IMAGE_SIZE(key, times) \
  Rule { Rule::Kind::kFitsImageSize, #key, #times }
#define KEY_COVERS_IMAGE_SIZE(key) \
  Rule { Rule::Kind::kCoversImageSize, #key, "" }
#define HAS_BATCH_NORM \
  Rule { Rule::Kind::kBatchNorm }
#define HAS_UNITS(key, more) \
  Rule { Rule::Kind::kUnits, #key, #more }
#define HAS_UNITS_FIXED(number) \
  Rule { Rule::Kind::kUnits, "", #number }
#define IS_ONE_UNIT \
  Rule { Rule::Kind::kOneUnit }
#define HAS_FIXED_IMAGE_SIZE \
  Rule { Rule::Kind::kFixedImageSize }
#define TENSOR_RANKS_SHARE(key) \
  Rule { Rule::Kind::kTensorRanksShare, #key, "" }
#define TENSOR_RANKS_SHARE_TIMES(key, factor) \
  Rule { Rule::Kind::kTensorRanksShare, #key, #factor }
#define SEQUENCE_RANKS_SHARE \
  Rule { Rule::Kind::kSequenceRanksShare }
#define CONTEXT_RANKS_SHARE \
  Rule { Rule::Kind::kContextRanksShare }
#define IS_MEAN_OF_WEIGHTS \
  Rule { Rule::Kind::kIsMean }
#define LOOKS_AT_WHOLE_TENSORS \
  Rule { Rule::Kind::kWholeTensors }
#define PUBLISHED(source, parameters, top1, weights) \
  Published { source, parameters, top1, weights }
#define FOR_TASK(name) \
  ForTask { #name }
#define KEY_AT_MOST(key, other) \
  Rule { Rule::Kind::kAtMost, #key, #other }
#define KEY_NEEDS_ABOVE_ZERO(key, other) \
  Rule { Rule::Kind::kNeedsAboveZero, #key, #other }
