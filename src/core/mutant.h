// Seeded faults for testing the tests: a suite that stays green with one of them in is too weak.
// In a normal build mutant() is constexpr false and nothing of them is compiled. With the CMake option
// FMHC_MUTANTS, fmhc_test_set_mutant (exported by that build alone) chooses one at run time.
#pragma once

namespace fmhc {

#define FMHC_MUTANT_LIST(X)                                                 \
  X(1, kProjectionScaled, "projection times 1.5")                           \
  X(2, kRmsOverHidden, "mean square over H instead of n*H")                 \
  X(3, kRmsEpsOutsideRoot, "rms eps outside the root")                      \
  X(4, kSquaresOfOneStream, "sum of squares of one stream only")            \
  X(5, kSplitDropped, "last split dropped")                                 \
  X(6, kChunkTwice, "a stale chunk counted twice")                          \
  X(7, kTreeFollowsTokens, "reduction tree follows the token count")        \
  X(8, kOneRoundLess, "one Sinkhorn round less")                            \
  X(9, kOneRoundMore, "one Sinkhorn round more")                            \
  X(10, kEndsOnRows, "Sinkhorn ends on rows")                               \
  X(11, kNoEpsAfterSoftmax, "eps dropped after the softmax")                \
  X(12, kNoEpsInDenominators, "eps dropped in the denominators")            \
  X(13, kCombTransposed, "comb transposed in post")                         \
  X(14, kPostMultOne, "post multiplier 1")                                  \
  X(15, kNoPreEps, "pre eps dropped")                                       \
  X(16, kEpsInPost, "pre eps added to post")                                \
  X(17, kNoRowMaximum, "softmax without the row maximum")                   \
  X(18, kTruncatingStore, "truncating bf16 store")                          \
  X(19, kPartialsInBf16, "partial sums in bf16")                            \
  X(20, kCoefficientsInBf16, "coefficients in bf16")                        \
  X(21, kUnroundedStatistic, "statistic of the unrounded residual in seam") \
  X(22, kNeighbourCoefficients, "coefficients of the neighbour token")      \
  X(23, kTailUnmasked, "last column left out")                              \
  X(24, kScratchForOneSplit, "scratch sized for one split")

enum class Mutant : int {
  kNone = 0,
#define FMHC_MUTANT_ENUMERATOR(number, name, text) name = number,
  FMHC_MUTANT_LIST(FMHC_MUTANT_ENUMERATOR)
#undef FMHC_MUTANT_ENUMERATOR
};

#if defined(FMHC_MUTANTS)

extern Mutant active_mutant;
inline bool mutant(Mutant which) {
  return active_mutant == which;
}

#else

constexpr bool mutant(Mutant) {
  return false;
}

#endif

}  // namespace fmhc
