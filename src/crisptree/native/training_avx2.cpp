// Training compiled for the avx2 instruction set.
#if defined(__GNUC__) && defined(__x86_64__)
#include "training.inc"

namespace crisptree {
const TrainingKernels avx2_training = kTraining;
}
#endif
