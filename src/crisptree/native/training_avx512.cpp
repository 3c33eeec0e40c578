// Training compiled for the avx512 instruction set.
#if defined(__GNUC__) && defined(__x86_64__)
#include "training.inc"

namespace crisptree {
const TrainingKernels avx512_training = kTraining;
}
#endif
